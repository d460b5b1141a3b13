/** Books that fall twice (books rule 11): a slice that was published twice opens with the terms that it was published with last. */
import { expect, onTestFinished, test } from 'vitest';
import type { Sql } from '../../pool/database/connect.ts';
import { TermsNotes } from '../../pool/feed/terms-notes.ts';
import { decodeRecord, encodeRecord, type JournalRecord } from '../../pool/journal/journal-record.ts';
import { type BooksBed, openBooks, SLICE_CUTS } from '../pool/books-bed.ts';
import { ownDatabases } from '../pool/ready-cluster.ts';

const feesOf = (ppm: bigint) => new Map([0, 1].map((service) => [service, ppm]));

/** A front end's notes, over whichever database is at its address. */
function notesOf(first: BooksBed, boot: string) {
  let books = first;
  const records: JournalRecord[] = [];
  const through = (...args: never[]) => (books.sql as unknown as (...args: never[]) => unknown)(...args);
  const begin = (...args: never[]) => (books.sql.begin as (...args: never[]) => unknown)(...args);
  const sql = Object.assign(through, { begin }) as unknown as Sql;
  const append = async (encoded: readonly Uint8Array[]) => {
    const at = records.length;
    records.push(...encoded.map(decodeRecord));
    return at;
  };
  const notes = new TermsNotes({ sql, journal: { append, bootId: boot } as never, outbox: { push: () => undefined } });
  const over = (other: BooksBed) => {
    books = other;
  };
  return { records, boot, over, look: () => notes.look() };
}

const opened = async ({ sql }: BooksBed) =>
  (await sql<{ fee: number }[]>`select fee_ppm as fee from slices where service = 0 order by number`).map(
    ({ fee }) => fee,
  );

test('of two notes of a slice the newest counts, in whatever order the journals come', async () => {
  const before = await openBooks(ownDatabases);
  onTestFinished(() => before.close());
  await before.height(0, feesOf(10_000n));
  const away = notesOf(before, 'aa'.repeat(8));
  const steady = notesOf(before, 'bb'.repeat(8));
  await before.height(3 * SLICE_CUTS, feesOf(10_000n));
  await away.look();
  await steady.look();
  // The first fall, to before slice 1; the front end that is steady goes on, the other one is away.
  const between = await openBooks(ownDatabases);
  onTestFinished(() => between.close());
  await between.height(0, feesOf(10_000n));
  await between.height(4 * SLICE_CUTS, feesOf(20_000n));
  steady.over(between);
  await steady.look();
  expect(await opened(between)).toEqual([10_000, 20_000, 20_000, 20_000, 20_000]);
  // The second one.
  for (const journals of [
    [away, steady],
    [steady, away],
  ]) {
    const after = await openBooks(ownDatabases);
    onTestFinished(() => after.close());
    await after.height(0, feesOf(10_000n));
    for (const { records, boot } of journals) await after.take(records, boot);
    await after.height(5 * SLICE_CUTS, feesOf(33_000n));
    expect(await opened(after)).toEqual([10_000, 20_000, 20_000, 20_000, 20_000, 33_000]);
    expect(await after.sql`select 1 from noted_terms`).toHaveLength(0);
  }
});

test('a note is made once, and made again only after the books fell', async () => {
  const books = await openBooks(ownDatabases);
  onTestFinished(() => books.close());
  await books.height(0);
  const end = notesOf(books, 'aa'.repeat(8));
  await end.look();
  await end.look();
  expect(end.records).toHaveLength(2);
  await books.height(SLICE_CUTS);
  await end.look();
  expect(end.records).toHaveLength(4);
});

test('where the node is behind a note is believed as far as its mark, and one without a mark as far as the node is', async () => {
  for (const [mark, last] of [
    [8, 8],
    [undefined, 4],
    [2, 4],
  ] as const) {
    const books = await openBooks(ownDatabases);
    onTestFinished(() => books.close());
    await books.height(0, feesOf(10_000n));
    const record = encodeRecord({
      kind: 'terms',
      service: 'pplns',
      from: 0,
      through: 8,
      windowThousandths: 1_000,
      feePpm: 10_000,
      atMillis: 1_790_000_000_000,
    });
    const entry = { bootId: 'aa'.repeat(8), sequence: 0, record, ...(mark === undefined ? {} : { slice: mark }) };
    await books.fenced((transaction) => books.intake.take(transaction, [entry], 4));
    await books.height(9 * SLICE_CUTS, feesOf(20_000n));
    const fees = Array.from({ length: 10 }, (_, slice) => (slice <= last ? 10_000 : 20_000));
    expect(await opened(books)).toEqual(fees);
  }
});
