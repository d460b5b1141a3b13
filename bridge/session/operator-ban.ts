/**
 * A ban that the operator set: of an address, a network or a mining address. Unlike a ban by score (ban-score.ts), which
 * falls on an address that many rigs may share and spares those that mine, it closes every connection that it covers.
 * The text of its key says which kind it is: a network with its bits, also for one address, or a mining address.
 */
import { isIPv4 } from 'node:net';
import { parseAddress } from '../../protocol/address.ts';
import { type Bytes, equalBytes } from '../../protocol/bytes.ts';
import { attempt } from '../../protocol/errors.ts';
import { addressBytes, addressList, clientKey, isLoopback } from '../../runtime/clients/client-address.ts';

export type Banned = { readonly address: string; readonly account: Bytes | null };

/** Wider networks are refused: one slip would close the pool. */
const LEAST_BITS = { ipv4: 8, ipv6: 16 } as const;
/** All addresses of IPv4 lie within one network of IPv6 (::ffff:0:0/96): one that covers this address covers them all. */
const SOME_IPV4 = '0.0.0.0';

const fullText = (address: string): string => {
  const bytes = addressBytes(address);
  return Array.from({ length: 8 }, (_, i) =>
    (((bytes[2 * i] as number) << 8) | (bytes[2 * i + 1] as number)).toString(16),
  ).join(':');
};

/** The key of a ban of what an operator wrote; undefined if that is neither an address, a network nor a mining address. */
export function operatorKey(written: string): string | undefined {
  if (attempt(() => parseAddress(written)).ok) return written;
  const [network = '', bits] = written.split('/');
  const single = clientKey(network);
  if (single === 'unknown' || single.startsWith('proxied-')) return undefined;
  // An address of IPv6 stands for its /64, as everywhere, and this machine for itself; the long form differs from the key of a ban by score.
  const [base, length, least, most] = isIPv4(single)
    ? [single, bits ?? '32', LEAST_BITS.ipv4, 32]
    : [fullText(network), bits ?? (isLoopback(network) ? '128' : '64'), LEAST_BITS.ipv6, 128];
  const isNetwork = /^\d{1,3}$/.test(length) && Number(length) >= least && Number(length) <= most;
  const key = `${base}/${Number(length)}`;
  return isNetwork && (isIPv4(single) || !addressList([key])(SOME_IPV4)) ? key : undefined;
}

/** Of a key of the operator: not of a mining address. */
export const isNetworkKey = (key: string): boolean => key.includes('/');

/** What a key of the operator covers; undefined for the key of a ban by score. */
export function coverOf(key: string): ((client: Banned) => boolean) | undefined {
  if (clientKey(key) === key) return undefined;
  const mining = attempt(() => parseAddress(key));
  if (mining.ok) return ({ account }) => account !== null && equalBytes(account, mining.value.payload);
  if (operatorKey(key) !== key) return undefined;
  const isIn = addressList([key]);
  return ({ address }) => isIn(address);
}
