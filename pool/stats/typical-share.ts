/**
 * The work of a typical share of the pool: half of the work of this hour and the last came in shares at least as large.
 * Weighted by work, so that any number of small shares moves it only as far as the hashes behind them.
 */
import type { Transaction } from '../database/connect.ts';
import { unpackBucket, type WorkSum } from './packed-work.ts';

const SETTING = 'typical_share_work';
const HOUR = 3600;

export function typicalShare(sums: Iterable<WorkSum>): bigint {
  const sizes = [...sums]
    .filter(({ shares }) => shares > 0)
    .map(({ shares, work }) => ({ size: work / BigInt(shares), work }))
    .sort((a, b) => (a.size < b.size ? 1 : a.size > b.size ? -1 : 0));
  let left = sizes.reduce((sum, { work }) => sum + work, 0n) / 2n;
  for (const { size, work } of sizes) {
    left -= work;
    if (left <= 0n) return size;
  }
  return 0n;
}

/** Of two hours: the first shares of an hour may all be a stranger's. */
export async function noteTypicalShare(transaction: Transaction): Promise<void> {
  const rows = await transaction<{ packed: Buffer }[]>`select packed from stats_recent where tier = ${HOUR}
    order by bucket desc limit 2`;
  if (rows.length === 0) return;
  const work = typicalShare(rows.flatMap(({ packed }) => [...unpackBucket(packed).values()]));
  await transaction`insert into settings values (${SETTING}, ${String(work)})
    on conflict (name) do update set value = excluded.value`;
}

/** 0 in a new pool. */
export async function typicalShareWork(transaction: Transaction): Promise<bigint> {
  const [row] = await transaction<{ value: string }[]>`select value from settings where name = ${SETTING}`;
  return BigInt(row?.value ?? 0);
}
