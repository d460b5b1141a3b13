/**
 * The path from an accepted share to the books: the journal, the outbox of entries not yet in the books, and the
 * journal's retention.
 */
import { join } from 'node:path';
import type { Bytes } from '../../protocol/bytes.ts';
import { steadyMillis } from '../../runtime/clock/clock.ts';
import type { Sql } from '../database/connect.ts';
import { Journal } from '../journal/journal.ts';
import type { PoolValues } from '../options.ts';
import type { PoolDependencies } from '../start/pool-dependencies.ts';
import { JournalKeep } from './journal-keep.ts';
import { Outbox } from './outbox.ts';
import { positionsOf, sliceEndsOf } from './positions.ts';
import { endsAfterNotes, TermsNotes } from './terms-notes.ts';

export async function openFeed(
  values: PoolValues,
  { sql, bootId, log, started }: PoolDependencies & { readonly sql: Sql; readonly bootId: Bytes },
) {
  const directory = join(values.dataDir, 'journal');
  const journal = await Journal.open({ directory, bootId });
  started('journal', () => journal.close());
  const outbox = await Outbox.open({ directory, bootId: journal.bootId }, { log: log.child('feed') });
  const earlier = outbox.lines().map((line) => line.bootId);
  for (const [boot, through] of await positionsOf(sql)(earlier)) outbox.standAt(boot, through);
  const ends = endsAfterNotes(sliceEndsOf(sql), new TermsNotes({ sql, journal, outbox }));
  await outbox.marks.look(ends);
  const keep = new JournalKeep(
    { directory, keepMillis: values.journalKeep, maxBytes: values.journalKeepSize },
    { outbox, log: log.child('journal'), now: steadyMillis },
  );
  return { journal, outbox, ends, keep };
}
