/**
 * Whether a call may carry the token: it comes from this machine, or it came by TLS. TLS is indicated by a header that
 * any client can set, so it is trusted only from a proxy on this machine or from one that the operator listed. A call
 * forwarded by a proxy on this machine comes from another machine: without the header it does not count as TLS.
 */
import type { IncomingHttpHeaders } from 'node:http';
import type { TrustedProxies } from '../../runtime/clients/client-address.ts';
import { isSameMachine } from '../../runtime/clients/same-machine.ts';

export type CallOrigin = {
  readonly remote: string | undefined;
  readonly local: string | undefined;
  readonly headers: IncomingHttpHeaders;
};

/** Headers that proxies add to forwarded requests. */
const FORWARDED = [
  'x-forwarded-for',
  'x-forwarded-host',
  'x-forwarded-proto',
  'x-real-ip',
  'forwarded',
  'via',
] as const;

export function isSecureCall({ remote, local, headers }: CallOrigin, proxies: TrustedProxies): boolean {
  // Only one value: a list comes from several proxies, one of which may have been reached without TLS.
  const isTls = headers['x-forwarded-proto'] === 'https';
  if (isSameMachine(remote, local)) return isTls || !FORWARDED.some((name) => headers[name] !== undefined);
  return isTls && remote !== undefined && proxies.has(remote);
}
