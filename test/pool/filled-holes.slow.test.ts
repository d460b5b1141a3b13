/** A hole of a damaged journal is reported until a copy of the journal fills it, and no longer. */
import { expect, onTestFinished, test } from 'vitest';
import { encodeRecord, type JournalRecord } from '../../pool/journal/journal-record.ts';
import { account, openBooks } from './books-bed.ts';
import { freshIdentity } from './fresh-identity.ts';

const [DAMAGED, COPY] = ['01'.repeat(8), '02'.repeat(8)];

const share = (): JournalRecord => ({
  kind: 'share',
  service: 'pplns',
  account: account('miner'),
  worker: 'rig',
  work: 10n,
  atMillis: Date.now(),
  identity: freshIdentity(0),
});

async function bed() {
  const books = await openBooks();
  onTestFinished(() => books.close());
  await books.height(0);
  const records = Array.from({ length: 12 }, () => encodeRecord(share()));
  const take = (bootId: string, sequences: readonly number[], after?: number) =>
    books.fenced((transaction) =>
      books.intake.take(
        transaction,
        sequences.map((sequence, i) => ({
          bootId,
          sequence,
          record: records[sequence] as Uint8Array,
          ...(i === 0 && after !== undefined ? { after } : {}),
        })),
      ),
    );
  const holes = async () => {
    const rows = await books.sql<{ after: number; until: number }[]>`select after::int, until::int from journal_holes
      order by after`;
    return rows.map(({ after, until }) => `${after} to ${until}`);
  };
  return { books, take, holes };
}

test('entries that a copy under another name has are booked and not reported as lost; those that it lacks still are', async () => {
  const { books, take, holes } = await bed();
  await take(DAMAGED, [0, 1]);
  await take(DAMAGED, [5, 6], 1);
  await take(DAMAGED, [10, 11], 6);
  expect(await holes()).toEqual(['1 to 5', '6 to 10']);
  // The copy ends within the second hole.
  expect(await take(COPY, [0, 1, 2, 3])).toMatchObject({ shares: 2, doubled: 2 });
  expect(await holes()).toEqual(['3 to 5', '6 to 10']);
  expect(await take(COPY, [4, 5, 6, 7, 8])).toMatchObject({ shares: 3, doubled: 2 });
  expect(await holes()).toEqual(['8 to 10']);
  const [row] = await books.sql<{ work: string }[]>`select sum(work)::text as work from open_work`;
  expect(row?.work).toBe('110');
});

test('a hole of what the books had from another journal before is none', async () => {
  const { take, holes } = await bed();
  await take(COPY, [0, 1, 2, 3, 4, 5, 6]);
  await take(COPY, [9], 6);
  await take(DAMAGED, [0, 1]);
  await take(DAMAGED, [5, 6], 1);
  await take(DAMAGED, [9, 10], 6);
  // What neither has is lost, by the word of both.
  expect(await holes()).toEqual(['6 to 9', '6 to 9']);
});
