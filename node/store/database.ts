/** The embedded database of a store, and a fixed view of it while cuts continue. */
import { ClassicLevel } from 'classic-level';
import type { Bytes } from '../../protocol/bytes.ts';
import type { BatchOp } from './batch.ts';
import { KEYS } from './keys.ts';

export type Database = ClassicLevel<Uint8Array, Uint8Array>;

/** 3: four levels of a trie in one record. 4: the same records, of chains whose every cut keeps ledger rule 43. */
export const FORMAT = '4';

/** Entries of every store: its format and its chain. */
export const originOperations = (genesisBytes: Bytes): BatchOp[] => [
  { type: 'put', key: KEYS.genesis, value: genesisBytes },
  { type: 'put', key: KEYS.format, value: Buffer.from(FORMAT) },
];

const MEBIBYTE = 1024 * 1024;

export async function openDatabase(directory: string): Promise<Database> {
  const db = new ClassicLevel<Uint8Array, Uint8Array>(directory, {
    keyEncoding: 'view',
    valueEncoding: 'view',
    cacheSize: 64 * MEBIBYTE,
    // A write waits while a full buffer is written out: with 16 MiB one of 100 candidates of 1 MiB did.
    writeBufferSize: 32 * MEBIBYTE,
    compression: false,
  });
  await db.open();
  return db;
}

/** A snapshot of the store. Close it: until then the database keeps overwritten data. */
export type FrozenStore = { get(key: Bytes): Uint8Array | undefined; close(): Promise<void> };

export function freeze(db: Database): FrozenStore {
  const snapshot = db.snapshot();
  return { get: (key) => db.getSync(key, { snapshot }), close: () => snapshot.close() };
}
