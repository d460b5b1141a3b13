/**
 * The hook for an index of the chain: its writes go into the same atomic batch as the cut itself, so after any crash
 * the index is exactly at the finalized head.
 */
import type { Bytes } from '../../protocol/bytes.ts';
import type { CutEffects } from '../ledger/effects.ts';
import type { BatchOp } from './batch.ts';

export type { BatchOp } from './batch.ts';

/** Synchronous reads as of the last finalized cut. An iterator sees a snapshot of the store. */
export interface StoreReader {
  get(key: Bytes): Uint8Array | undefined;
  /** Entries with from <= key < to, ascending unless `reverse`. */
  range(from: Bytes, to: Bytes, options?: RangeOptions): Promise<[Uint8Array, Uint8Array][]>;
  /** Only the values of such entries, which is half the work. */
  values(from: Bytes, to: Bytes, options?: RangeOptions): Promise<Uint8Array[]>;
}

export type RangeOptions = { readonly limit?: number; readonly reverse?: boolean };

export interface CutIndexer {
  /** A name of letters, digits and dashes; its keys have a separate prefix, which is not visible here. */
  readonly name: string;
  /**
   * The changes of the cut in this index. `reader` still shows the index after the previous cut. Called once per cut in
   * order of height, genesis included; pure apart from reads.
   */
  operations(effects: CutEffects, reader: StoreReader): readonly BatchOp[];
}
