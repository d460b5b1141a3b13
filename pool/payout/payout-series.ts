/**
 * Names of a pool's payments at its wallet (books rule 16). They are numbered, from 1 on and without a gap, and the
 * series is named by the address that the pool's blocks pay: a database replaced by an older copy makes the same names
 * again, and a wallet pays each name once.
 */
import { createHash } from 'node:crypto';
import type { Bytes } from '../../protocol/bytes.ts';

export type PayoutSeries = {
  readonly payouts: string;
  readonly merges: string;
};

/** Padded, so that sorting as text sorts by number and a wallet lists them in order. */
const DIGITS = 12;

export function payoutSeries(poolAddress: Bytes): PayoutSeries {
  const name = createHash('sha256').update(poolAddress).digest('hex').slice(0, 16);
  return { payouts: `payout-${name}-`, merges: `merge-${name}-` };
}

export const requestIdOf = (prefix: string, number: number): string => prefix + String(number).padStart(DIGITS, '0');

/** Undefined for an id that is not of this series. */
export function numberOf(prefix: string, requestId: string): number | undefined {
  const digits = requestId.slice(prefix.length);
  if (!requestId.startsWith(prefix) || digits.length !== DIGITS || !/^\d+$/.test(digits)) return undefined;
  return Number(digits) > 0 ? Number(digits) : undefined;
}
