/**
 * Limits on incoming peers: few per address, not many per network, at once and one after the other, and when all places
 * are taken, a network with many peers gives way to one with fewer. Addresses of this machine are not counted.
 */
import { addressBytes, clientKey, isLoopback } from '../../../runtime/clients/client-address.ts';
import type { BucketRate } from '../../../runtime/clients/token-bucket.ts';

export type InboundLimits = { readonly places: number; readonly perAddress: number; readonly perSubnet: number };

export const INBOUND_LIMITS = { perAddress: 3, perSubnet: 8 } as const;

/** Peers of one network that come. Of what peers share each address has a part, and whoever has a network of IPv6 has 65,536 of them. */
export const COMING: BucketRate = { perSecond: 0.5, burst: 4 * INBOUND_LIMITS.perSubnet };

export type Inbound = { readonly id: number; readonly address: string; readonly subnet: string };

/** A network that one owner usually has: /24 of IPv4, /48 of IPv6. */
export function subnetOf(address: string): string {
  const key = clientKey(address);
  if (key === 'unknown' || isLoopback(key)) return key;
  const bytes = addressBytes(key.endsWith('/64') ? key.slice(0, -3) : key);
  return Buffer.from(bytes.subarray(0, bytes.length === 4 ? 3 : 6)).toString('hex');
}

export type Admission = { readonly admitted: false } | { readonly admitted: true; readonly evict?: number };

const REFUSED: Admission = { admitted: false };

/** `present` in the order of arrival. `isNear`: an address that is not counted. */
export function admitInbound(
  present: readonly Inbound[],
  address: string,
  { places, perAddress, perSubnet }: InboundLimits,
  isNear: (address: string) => boolean = isLoopback,
): Admission {
  const [key, subnet] = [clientKey(address), subnetOf(address)];
  const sameSubnet = present.filter((other) => other.subnet === subnet);
  if (!isNear(address)) {
    if (sameSubnet.filter((other) => other.address === key).length >= perAddress) return REFUSED;
    if (sameSubnet.length >= perSubnet) return REFUSED;
  }
  if (present.length < places) return { admitted: true };
  let crowd: readonly Inbound[] = [];
  for (const group of Map.groupBy(present, (other) => other.subnet).values())
    if (group.length > crowd.length) crowd = group;
  const youngest = crowd.at(-1);
  return youngest !== undefined && crowd.length > sameSubnet.length + 1
    ? { admitted: true, evict: youngest.id }
    : REFUSED;
}
