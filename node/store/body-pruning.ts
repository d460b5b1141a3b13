/**
 * Deletes the bodies of old blocks; records, rewards and cuts stay. The progress is in the store, written with the last
 * deletion of each batch.
 */
import type { Bytes } from '../../protocol/bytes.ts';
import type { BatchOp } from './batch.ts';
import type { Database } from './database.ts';
import { KEYS } from './keys.ts';
import { decodeCutRecord } from './records.ts';

const BATCH_BODIES = 1_024;

/** The height stored under this key; -1 if there is none. */
export function markedHeight(db: Pick<Database, 'getSync'>, key: Bytes): number {
  const bytes = db.getSync(key);
  return bytes === undefined ? -1 : Number(Buffer.from(bytes).readBigUInt64BE());
}

export function markHeight(key: Bytes, height: number): BatchOp {
  const value = Buffer.alloc(8);
  value.writeBigUInt64BE(BigInt(height));
  return { type: 'put', key, value };
}

/** Prunes cuts after the last pruned one, up to this height. Returns the number of bodies. */
export async function pruneBodies(db: Database, height: number): Promise<number> {
  const done = markedHeight(db, KEYS.pruned);
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
    await db.batch([...operations, markHeight(KEYS.pruned, header.height)]);
    operations = [];
  }
  await db.batch([...operations, markHeight(KEYS.pruned, height)], { sync: true });
  return pruned;
}
