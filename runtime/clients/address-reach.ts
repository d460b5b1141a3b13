/**
 * The reach of an IP address: public, the same private network, this machine, or none. Addresses given by strangers are
 * dialled only if that does not make this node connect to its own network.
 */
import { isIPv4, isIPv6 } from 'node:net';
import { addressBytes, addressList, isLoopback } from './client-address.ts';

/** Not reachable by TCP, or only link-local. */
const NOWHERE = addressList([
  '0.0.0.0/8',
  '169.254.0.0/16',
  '192.0.0.0/24',
  '198.18.0.0/15',
  '224.0.0.0/3',
  'fe80::/10',
  'ff00::/8',
]);
const INNER_IPV4 = addressList(['10.0.0.0/8', '100.64.0.0/10', '172.16.0.0/12', '192.168.0.0/16']);
/** Public IPv6 addresses, except those with an embedded IPv4 address. */
const PUBLIC_IPV6 = addressList(['2000::/3']);
const HIDING_IPV6 = addressList(['2001::/32', '2002::/16']);
const INNER_IPV6 = addressList(['fc00::/7']);

export type Reach = 'public' | 'inner' | 'here' | 'nowhere';

/** The reach: public, the same private network, or this machine. */
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
