/**
 * Whether a call may carry the token: it comes from this machine, or it came by TLS. That it was TLS is said by a header which
 * anybody can write, so it is believed from a proxy on this machine or from one that the operator listed, and from nobody else.
 */
import type { TrustedProxies } from '../../runtime/client-address.ts';
import { isSameMachine } from '../../runtime/same-machine.ts';

export type CallOrigin = {
  readonly remote: string | undefined;
  readonly local: string | undefined;
  /** The header x-forwarded-proto. */
  readonly proto: string | readonly string[] | undefined;
};

export function isSecureCall({ remote, local, proto }: CallOrigin, proxies: TrustedProxies): boolean {
  if (isSameMachine(remote, local)) return proto === undefined || proto === 'https';
  return proto === 'https' && remote !== undefined && proxies.has(remote);
}
