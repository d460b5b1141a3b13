/**
 * The state of this wallet's settled transactions after the history was read again. On the same chain nothing changes.
 * After a rollback the chain may not contain them: such a payment is no longer final. It may still be executed, because
 * others may have kept its bytes, until its last valid height; so it is open again, and its outputs stay reserved. The
 * same holds for one that was void: on this chain it has not expired yet, and its outputs may be unspent.
 */
import type { Book } from '../state/book.ts';
import { type OutgoingRecord, outpointOf } from '../state/records.ts';
import type { WalletStore } from '../state/store.ts';

type History = Pick<WalletStore, 'settledOutgoing' | 'historyOf'>;

/** Whether this chain can still execute a transaction: it has not expired, and no output that it spends was spent. */
async function isPossible({ validUntilHeight, inputs }: OutgoingRecord, book: Book, store: History): Promise<boolean> {
  if (book.meta.indexedHeight > validUntilHeight) return false;
  for (const key of inputs) {
    const isMade = (await store.historyOf(outpointOf(key).transaction)) !== undefined;
    if (isMade && !book.outputs.has(key)) return false;
  }
  return true;
}

/** The records that differ from what is on disk. */
export async function fatesOnThisChain(store: History, book: Book): Promise<OutgoingRecord[]> {
  const changed: OutgoingRecord[] = [];
  for await (const record of store.settledOutgoing()) {
    const height = (await store.historyOf(record.transaction))?.height;
    if (height === undefined && (record.state === 'finalized' || (await isPossible(record, book, store))))
      changed.push({ ...record, state: 'submitted', finalHeight: null, reason: null, reopened: true });
    else if (height !== undefined && (record.state !== 'finalized' || record.finalHeight !== height))
      changed.push({ ...record, state: 'finalized', finalHeight: height, reason: null });
  }
  return changed;
}
