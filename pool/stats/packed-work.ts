/** Work by worker as packed rows (pool/database/migrations/0002-stats.sql): one value for ten thousand workers. */
import { ByteReader, type Bytes, ByteWriter } from '../../protocol/bytes.ts';

/** Work of one worker in one minute. */
export type MinuteWork = {
  readonly workerId: number;
  readonly minute: number;
  readonly shares: number;
  readonly work: bigint;
};

export type WorkSum = { shares: number; work: bigint };

export function packPending(rows: readonly MinuteWork[]): Uint8Array<ArrayBuffer> {
  const writer = new ByteWriter(Math.max(32, rows.length * 28));
  for (const row of rows) writer.u32(row.workerId).u32(row.minute).u32(row.shares).u128(row.work);
  return writer.done();
}

export function unpackPending(bytes: Bytes): MinuteWork[] {
  const reader = new ByteReader(bytes);
  const rows: MinuteWork[] = [];
  while (reader.left > 0)
    rows.push({ workerId: reader.u32(), minute: reader.u32(), shares: reader.u32(), work: reader.u128() });
  return rows;
}

export function packBucket(sums: ReadonlyMap<number, WorkSum>): Uint8Array<ArrayBuffer> {
  const writer = new ByteWriter(Math.max(32, sums.size * 24));
  for (const [workerId, { shares, work }] of [...sums].sort(([a], [b]) => a - b))
    writer.u32(workerId).u32(shares).u128(work);
  return writer.done();
}

export function unpackBucket(bytes: Bytes): Map<number, WorkSum> {
  const reader = new ByteReader(bytes);
  const sums = new Map<number, WorkSum>();
  while (reader.left > 0) sums.set(reader.u32(), { shares: reader.u32(), work: reader.u128() });
  return sums;
}

export function addTo<K>(sums: Map<K, WorkSum>, key: K, shares: number, work: bigint): void {
  const sum = sums.get(key);
  if (sum === undefined) sums.set(key, { shares, work });
  else {
    sum.shares += shares;
    sum.work += work;
  }
}
