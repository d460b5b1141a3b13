/** Figures of one miner: what its card says, so that it fits its table of workers and the time since it began. */
import type { MinerDocument, WorkersDocument } from '../../pool/api/documents.ts';
import { earnedPerDay, type Pace } from '../earnings.ts';
import { hashRate } from '../format.ts';

type Counted = Pick<MinerDocument, 'hash_rate' | 'accepted' | 'stale' | 'rejected' | 'last_share_millis'>;

/**
 * Card and table come with two answers, of two moments. Where the table has all workers, the card is its sum.
 */
export function countedOf(miner: MinerDocument, table: WorkersDocument | undefined, isFirstPage: boolean): Counted {
  if (table === undefined || table.workers.length === 0 || !isFirstPage || table.next_cursor !== undefined)
    return miner;
  const sum = (of: (worker: WorkersDocument['workers'][number]) => number): number =>
    table.workers.reduce((total, worker) => total + of(worker), 0);
  const lasts = table.workers.flatMap(({ last_share_millis: last }) => (last === null ? [] : [last]));
  return {
    hash_rate: {
      ten_minutes: sum(({ hash_rate }) => hash_rate.ten_minutes),
      hour: sum(({ hash_rate }) => hash_rate.hour),
      day: sum(({ hash_rate }) => hash_rate.day),
    },
    accepted: sum(({ accepted }) => accepted),
    stale: sum(({ stale }) => stale),
    rejected: sum(({ rejected }) => rejected),
    last_share_millis: lasts.length === 0 ? null : Math.max(...lasts),
  };
}

/** A rate over a longer time says more than one over `shorterSeconds` only when the miner is older than that. */
export const longRate = (rate: number, shorterSeconds: number, sinceMillis: number, now: number): string =>
  now - sinceMillis > shorterSeconds * 1000 ? hashRate(rate) : '–';

/** Atoms that a miner earns in a day, on average; one that is offline earns nothing, whatever it did an hour ago. */
export const perDayOf = (
  { online, hash_rate }: Pick<MinerDocument, 'online' | 'hash_rate'>,
  feePpm: number,
  pace: Pace,
): bigint | undefined => (online ? earnedPerDay(hash_rate.hour, feePpm, pace) : 0n);
