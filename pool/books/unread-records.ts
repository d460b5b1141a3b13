/**
 * Records of journals that cannot be read: a damaged disk, a bug, or a compromised front end. They are stored unchanged
 * and count nothing. The books continue: one bad record must not delay all other shares.
 */
import { byteaTexts, type Transaction } from '../database/connect.ts';
import type { JournalEntry } from '../journal/journal.ts';

export type UnreadRecord = Pick<JournalEntry, 'bootId' | 'sequence' | 'record'> & { readonly reason: string };

export async function setAside(transaction: Transaction, records: readonly UnreadRecord[]): Promise<void> {
  if (records.length === 0) return;
  const hexOf = (record: UnreadRecord['record']) => Buffer.from(record).toString('hex');
  await transaction`insert into unread_records (boot_id, sequence, record, reason)
    select * from unnest(${byteaTexts(records.map(({ bootId }) => bootId))}::text[]::bytea[],
      ${records.map(({ sequence }) => sequence)}::bigint[],
      ${byteaTexts(records.map(({ record }) => hexOf(record)))}::text[]::bytea[],
      ${records.map(({ reason }) => reason)}::text[]) on conflict do nothing`;
}
