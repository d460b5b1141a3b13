/** Records as journals hold them, by a miner's number and a block's name. */
import type { BlockRecord, JournalRecord } from '../../pool/journal/journal-record.ts';
import { targetOfWork } from '../../protocol/ledger/target.ts';
import { pattern } from '../../vectors/generate/pattern.ts';
import { account } from './books-bed.ts';
import { freshIdentity } from './fresh-identity.ts';

const AT = 1_767_225_600_000;

export const shareRecord = (service: 'pplns' | 'solo', miner: number, work: bigint): JournalRecord => ({
  kind: 'share',
  service,
  account: account(`miner ${miner}`),
  worker: 'w',
  work,
  atMillis: AT,
  identity: freshIdentity(),
});

export const blockRecord = (
  service: 'pplns' | 'solo',
  name: string,
  anchorHeight: number,
  miner: number,
): BlockRecord => ({
  kind: 'block',
  service,
  account: account(`miner ${miner}`),
  worker: 'w',
  blockId: pattern(name, 48),
  anchorHeight,
  target: targetOfWork(1000n),
  extranonce: pattern('extranonce', 20),
  atMillis: AT,
});
