/**
 * Records the work of a batch of shares for statistics, in the transaction that takes them into the books: each share
 * counts once.
 */
import type { Transaction } from '../database/connect.ts';
import { addTo, type MinuteWork, packPending, type WorkSum } from './packed-work.ts';

export type TakenShare = { readonly workerId: number; readonly work: bigint; readonly atMillis: number };

const MAX_MINUTE = 0xffff_ffff;

export function minutesOf(shares: Iterable<TakenShare>): MinuteWork[] {
  const byWorker = new Map<number, Map<number, WorkSum>>();
  for (const { workerId, work, atMillis } of shares) {
    const minutes = byWorker.get(workerId) ?? new Map<number, WorkSum>();
    byWorker.set(workerId, minutes);
    addTo(minutes, Math.min(MAX_MINUTE, Math.floor(atMillis / 60_000)), 1, work);
  }
  return [...byWorker].flatMap(([workerId, minutes]) =>
    [...minutes].map(([minute, sum]) => ({ workerId, minute, ...sum })),
  );
}

export async function takeStats(transaction: Transaction, shares: readonly TakenShare[]): Promise<void> {
  if (shares.length === 0) return;
  await transaction`insert into stats_pending (packed) values (${Buffer.from(packPending(minutesOf(shares)))})`;
}
