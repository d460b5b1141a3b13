/** Deletes the bodies of old blocks; records, rewards and cuts stay. How far it came is in the store, written with the last deletion of each batch. */
import type { ClassicLevel } from 'classic-level';
import type { BatchOp } from './batch.ts';
import { KEYS } from './keys.ts';
import { decodeCutRecord } from './records.ts';

type Database = ClassicLevel<Uint8Array, Uint8Array>;

const BATCH_BODIES = 1_024;

/** The last cut whose bodies were deleted; -1 where none were. */
export function prunedThrough(db: Pick<Database, 'getSync'>): number {
  const bytes = db.getSync(KEYS.pruned);
  return bytes === undefined ? -1 : Number(Buffer.from(bytes).readBigUInt64BE());
}

function mark(height: number): BatchOp {
  const value = Buffer.alloc(8);
  value.writeBigUInt64BE(BigInt(height));
  return { type: 'put', key: KEYS.pruned, value };
}

/** Of the cuts after those that were pruned before, up to this height. Returns how many bodies there were. */
export async function pruneBodies(db: Database, height: number): Promise<number> {
  const done = prunedThrough(db);
  if (height <= done) return 0;
  let pruned = 0;
  let operations: BatchOp[] = [];
  for await (const value of db.values({ gte: KEYS.cut(done + 1), lte: KEYS.cut(height) })) {
    const { header, blockIds } = decodeCutRecord(value);
    for (const id of blockIds) {
      if (db.getSync(KEYS.body(id)) === undefined) continue;
      operations.push({ type: 'del', key: KEYS.body(id) });
      pruned++;
    }
    if (operations.length < BATCH_BODIES) continue;
    await db.batch([...operations, mark(header.height)]);
    operations = [];
  }
  await db.batch([...operations, mark(height)], { sync: true });
  return pruned;
}
