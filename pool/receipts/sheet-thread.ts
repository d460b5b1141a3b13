/** A thread of its own reads the journal, sums it up and builds the trees: a slice of ten thousand miners takes it a second. */
import { parentPort, workerData } from 'node:worker_threads';
import { receiptSheet } from '../../protocol/receipt.ts';
import { useNativeSha384 } from '../../runtime/native-sha384.ts';
import { readJournal } from '../journal.ts';
import type { Service } from '../journal-record.ts';
import { JournalTally, type SliceRange } from './tally.ts';

export type SheetOrder = {
  readonly directory: string;
  readonly bootId: string;
  readonly ranges: readonly SliceRange[];
  /** The newest sequence that is on disk for sure. */
  readonly last: number;
};

export type MadeSheet = {
  readonly service: Service;
  readonly slice: number;
  readonly root: Uint8Array;
  readonly count: number;
  /** Leaves one behind the other, to be kept. */
  readonly leaves: Uint8Array;
  /** Entries in shared memory, and where each begins. */
  readonly entries: Uint8Array;
  readonly offsets: Uint32Array;
};

export type SheetAnswer = { readonly sheets: readonly MadeSheet[]; readonly holed: readonly number[] };

async function make({ directory, bootId, ranges, last }: SheetOrder): Promise<SheetAnswer> {
  const tally = new JournalTally(ranges);
  const after = (ranges[0] as SliceRange).after;
  for await (const entries of readJournal(directory, bootId, after))
    for (const { sequence, record } of entries) if (sequence <= last) tally.take(sequence, record);
  const sheets = tally.leaves().map(({ service, slice, leaves }): MadeSheet => {
    const sheet = receiptSheet(leaves);
    return {
      service,
      slice,
      root: sheet.root,
      count: leaves.length,
      leaves: packed(sheet.leaves, () => new ArrayBuffer(lengthOf(sheet.leaves))),
      entries: packed(sheet.entries, () => new SharedArrayBuffer(lengthOf(sheet.entries))),
      offsets: offsetsOf(sheet.entries),
    };
  });
  return { sheets, holed: tally.holed };
}

const lengthOf = (parts: readonly Uint8Array[]): number => parts.reduce((sum, part) => sum + part.length, 0);

function packed(parts: readonly Uint8Array[], memory: () => ArrayBuffer | SharedArrayBuffer): Uint8Array {
  const bytes = new Uint8Array(memory());
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}

function offsetsOf(parts: readonly Uint8Array[]): Uint32Array {
  const offsets = new Uint32Array(new SharedArrayBuffer(4 * (parts.length + 1)));
  for (const [i, part] of parts.entries()) offsets[i + 1] = (offsets[i] as number) + part.length;
  return offsets;
}

useNativeSha384();
parentPort?.postMessage(await make(workerData as SheetOrder));
