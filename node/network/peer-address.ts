/**
 * Addresses of peers: multiaddrs of TCP, by IP or by name. Names come from the operator alone: whoever tells a stranger's node a name decides where that leads at the moment of the call, also into the node's own network. An address has
 * one form, so that limits by address and network count the same host once.
 */
import { isIPv4, isIPv6 } from 'node:net';
import { addressBytes, addressList, isLoopback } from '../../runtime/client-address.ts';

const MAX_LENGTH = 200;

/** The IP address in a multiaddr, if it names one. */
export const ipOf = (address: string): string | undefined => /^\/ip[46]\/([^/]+)(?:\/|$)/.exec(address)?.[1];

/** TCP by IP or by name, with or without the peer's identity: what an operator may name. */
export const isDialable = (address: string): boolean =>
  address.length <= MAX_LENGTH &&
  /^\/(?:ip4|ip6|dns|dns4|dns6)\/[0-9A-Za-z.:-]+\/tcp\/[1-9]\d{0,4}(?:\/p2p\/[1-9A-HJ-NP-Za-km-z]{40,64})?$/.test(
    address,
  );

/** Nobody can be reached there by TCP, or only this machine's links know who it is. */
const NOWHERE = addressList([
  ...['0.0.0.0/8', '169.254.0.0/16', '192.0.0.0/24', '198.18.0.0/15', '224.0.0.0/3'],
  ...['fe80::/10', 'ff00::/8'],
]);
const INNER_IPV4 = addressList(['10.0.0.0/8', '100.64.0.0/10', '172.16.0.0/12', '192.168.0.0/16']);
/** Of IPv6 only these are the public's, and not where an IPv4 address is hidden in them. */
const PUBLIC_IPV6 = addressList(['2000::/3']);
const HIDING_IPV6 = addressList(['2001::/32', '2002::/16']);
const INNER_IPV6 = addressList(['fc00::/7']);

export type Reach = 'public' | 'inner' | 'here' | 'nowhere';

/** Who can reach it: everybody, those of the same private network, this machine. */
export function reachOf(ip: string): Reach {
  if (isLoopback(ip)) return 'here';
  const isFour = addressBytes(ip).length === 4 || canonicalIp(ip)?.includes('.') === true;
  if (NOWHERE(ip)) return 'nowhere';
  if (isFour) return INNER_IPV4(ip) ? 'inner' : 'public';
  if (INNER_IPV6(ip)) return 'inner';
  return PUBLIC_IPV6(ip) && !HIDING_IPV6(ip) ? 'public' : 'nowhere';
}

/** An IPv4 address in its dotted form, also where it is written as IPv6; any other in eight groups. */
export function canonicalIp(text: string): string | undefined {
  if (isIPv4(text)) return text;
  if (!isIPv6(text) || text.includes('%')) return undefined;
  const bytes = addressBytes(text);
  const isMapped = bytes.subarray(0, 10).every((byte) => byte === 0) && bytes[10] === 255 && bytes[11] === 255;
  if (isMapped) return bytes.subarray(12).join('.');
  return Array.from({ length: 8 }, (_, i) =>
    (((bytes[2 * i] as number) << 8) | (bytes[2 * i + 1] as number)).toString(16),
  ).join(':');
}

export type HostPlace = { readonly ip: string; readonly port: number; readonly peer: string };

/** What a stranger may tell: an IP address, a port and the identity of who is there. */
export function placeOf(address: string): HostPlace | undefined {
  if (!isDialable(address)) return undefined;
  const [, kind, host = '', , port, , peer] = address.split('/');
  const ip = kind === 'ip4' || kind === 'ip6' ? canonicalIp(host) : undefined;
  const number = Number(port);
  return ip === undefined || peer === undefined || number > 65_535 ? undefined : { ip, port: number, peer };
}

export const addressOf = ({ ip, port, peer }: HostPlace): string =>
  `/${isIPv4(ip) ? 'ip4' : 'ip6'}/${ip}/tcp/${port}/p2p/${peer}`;

/** Whether a peer at `from` can know, and may say, that somebody is at `ip`: a stranger's word must not make this node knock at its neighbours. */
export function isWorthTelling(ip: string, from: string | undefined): boolean {
  const reach = reachOf(ip);
  if (reach === 'public') return true;
  if (reach === 'nowhere' || from === undefined) return false;
  const teller = reachOf(from);
  return teller === 'here' || (teller === 'inner' && reach === 'inner');
}
