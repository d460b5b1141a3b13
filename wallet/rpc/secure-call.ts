/**
 * Whether a call may carry the token: it comes from this machine, or it came by TLS. That it was TLS is said by a header which
 * anybody can write, so it is believed from a proxy on this machine or from one that the operator listed, and from nobody else.
 * A call from this machine that was forwarded comes from elsewhere: a proxy that does not say how is not believed to use TLS.
 */
import type { IncomingHttpHeaders } from 'node:http';
import type { TrustedProxies } from '../../runtime/client-address.ts';
import { isSameMachine } from '../../runtime/same-machine.ts';

export type CallOrigin = {
  readonly remote: string | undefined;
  readonly local: string | undefined;
  readonly headers: IncomingHttpHeaders;
};

/** What proxies write into the requests that they pass on. */
const FORWARDED = [
  'x-forwarded-for',
  'x-forwarded-host',
  'x-forwarded-proto',
  'x-real-ip',
  'forwarded',
  'via',
] as const;

export function isSecureCall({ remote, local, headers }: CallOrigin, proxies: TrustedProxies): boolean {
  // One value: a list would be what several proxies wrote, one of which may have been called without TLS.
  const isTls = headers['x-forwarded-proto'] === 'https';
  if (isSameMachine(remote, local)) return isTls || !FORWARDED.some((name) => headers[name] !== undefined);
  return isTls && remote !== undefined && proxies.has(remote);
}
