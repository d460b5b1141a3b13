/**
 * The state of this wallet's settled transactions after the history was read again. On the same chain nothing changes.
 * After a rollback the chain may not contain them: such a payment is no longer final. It may still be executed, because
 * others may have kept its bytes, until its last valid height; so it is open again, and its outputs stay reserved.
 */
import type { OutgoingRecord } from '../state/records.ts';
import type { WalletStore } from '../state/store.ts';

/** The records that differ from what is on disk. */
export async function fatesOnThisChain(
  store: Pick<WalletStore, 'settledOutgoing' | 'historyOf'>,
): Promise<OutgoingRecord[]> {
  const changed: OutgoingRecord[] = [];
  for await (const record of store.settledOutgoing()) {
    const height = (await store.historyOf(record.transaction))?.height;
    if (height === undefined && record.state === 'finalized')
      changed.push({ ...record, state: 'submitted', finalHeight: null, reason: null, reopened: true });
    else if (height !== undefined && (record.state !== 'finalized' || record.finalHeight !== height))
      changed.push({ ...record, state: 'finalized', finalHeight: height, reason: null });
  }
  return changed;
}
