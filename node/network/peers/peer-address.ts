/**
 * Addresses of peers: multiaddrs of TCP or QUIC, by IP or by name. Names are accepted only from the operator: a peer could make
 * a name resolve to an address in the node's own network. An address has one form, so that limits by address and
 * network count the same host once.
 */
import { isIPv4, isIPv6 } from 'node:net';
import { canonicalIp, reachOf } from '../../../runtime/clients/address-reach.ts';

const MAX_LENGTH = 200;
const MAX_PORT = 65_535;

/** The IP address in a multiaddr, if it names one. */
export const ipOf = (address: string): string | undefined => /^\/ip[46]\/([^/]+)(?:\/|$)/.exec(address)?.[1];

const FORM =
  /^\/(ip4|ip6|dns|dns4|dns6)\/([0-9A-Za-z.:-]+)\/(?:tcp\/([1-9]\d{0,4})|udp\/([1-9]\d{0,4})\/quic-v1)(?:\/p2p\/[1-9A-HJ-NP-Za-km-z]{40,64})?$/;

/** TCP or QUIC by IP or by name, with or without the peer's identity: what an operator may name. */
export function isDialable(address: string): boolean {
  if (address.length > MAX_LENGTH) return false;
  const [, kind = '', host = '', tcp, udp] = FORM.exec(address) ?? [];
  const isHost = kind === 'ip4' ? isIPv4(host) : kind === 'ip6' ? isIPv6(host) : kind !== '';
  return isHost && Number(tcp ?? udp) <= MAX_PORT;
}

export const isQuic = (address: string): boolean => /\/udp\/\d{1,5}\/quic-v1(?:\/|$)/.test(address);

export type HostPlace = { readonly ip: string; readonly port: number; readonly peer: string };

/**
 * The form accepted from strangers: an IP address, a port of TCP and the peer's identity. QUIC is for those whom an
 * operator told of it: `/svc/peers/1` has no word for it.
 */
export function placeOf(address: string): HostPlace | undefined {
  if (!isDialable(address) || isQuic(address)) return undefined;
  const [, kind, host = '', , port, , peer] = address.split('/');
  const ip = kind === 'ip4' || kind === 'ip6' ? canonicalIp(host) : undefined;
  return ip === undefined || peer === undefined ? undefined : { ip, port: Number(port), peer };
}

export const addressOf = ({ ip, port, peer }: HostPlace): string =>
  `/${isIPv4(ip) ? 'ip4' : 'ip6'}/${ip}/tcp/${port}/p2p/${peer}`;

/**
 * Whether a peer at `from` may announce a peer at `ip`: strangers must not make this node dial hosts of its own
 * network.
 */
export function isWorthTelling(ip: string, from: string | undefined): boolean {
  const reach = reachOf(ip);
  if (reach === 'public') return true;
  if (reach === 'nowhere' || from === undefined) return false;
  const teller = reachOf(from);
  return teller === 'here' || (teller === 'inner' && reach === 'inner');
}
