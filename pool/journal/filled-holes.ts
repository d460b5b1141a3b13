/**
 * Fills holes of a damaged journal by a copy of it that a person put back under another name (docs/operations.md,
 * JournalDamaged), whichever of the two the books take first. A journal is a copy of another if shares of it counted
 * before, from the other one and under the same sequences. What is missing in one and booked from the other is not reported
 * as lost.
 */
import { byteaTexts, type Transaction } from '../database/connect.ts';
import type { ShareIdentity } from './journal-record.ts';

/** A share that counted before. */
export type Doubled = { readonly bootId: string; readonly sequence: number; readonly identity: ShareIdentity };

/** Entries of a journal, all of which were taken. */
export type TakenRun = { readonly bootId: string; readonly from: number; readonly through: number };

export async function fillHoles(
  transaction: Transaction,
  doubled: readonly Doubled[],
  runs: readonly TakenRun[],
): Promise<void> {
  const rows = await transaction<{ copy: string; of: Buffer }[]>`select distinct d.copy, s.boot_id as of
    from unnest(${doubled.map(({ bootId }) => bootId)}::text[], ${doubled.map(({ sequence }) => sequence)}::bigint[],
      ${byteaTexts(doubled.map(({ identity }) => Buffer.from(identity.bytes).toString('hex')))}::text[]::bytea[],
      ${doubled.map(({ identity }) => identity.anchorHeight)}::bigint[]) as d(copy, sequence, identity, anchor)
    join shares s on s.anchor_height = d.anchor and s.identity = d.identity and s.sequence = d.sequence
    where s.boot_id <> decode(d.copy, 'hex')`;
  for (const { copy, of } of rows) {
    for (const { from, through } of runs.filter(({ bootId }) => bootId === copy)) {
      // A copy comes in the order of its sequences: a hole becomes smaller from its start.
      await transaction`update journal_holes set after = least(until - 1, ${through})
        where boot_id = ${of} and after + 1 >= ${from} and after < ${through}`;
      await transaction`delete from journal_holes where boot_id = ${of} and after + 1 = until`;
    }
    // The whole one came first: the books have had what the damaged one lacks.
    await transaction`delete from journal_holes h where h.boot_id = decode(${copy}, 'hex')
      and h.until - 1 <= (select through from journal_positions where boot_id = ${of})
      and not exists (select 1 from journal_holes o where o.boot_id = ${of} and o.after < h.until and o.until > h.after)
      and not exists (select 1 from unread_records u where u.boot_id = ${of} and u.sequence > h.after
        and u.sequence < h.until)`;
  }
}
