/** A hole of a damaged journal is reported until a copy of the journal fills it, and no longer; nothing else fills it. */
import { expect, onTestFinished, test } from 'vitest';
import { ensureSharePartitions } from '../../pool/books/partitions.ts';
import { doubledAfter } from '../../pool/journal/doubled-shares.ts';
import { fillHoles } from '../../pool/journal/filled-holes.ts';
import { encodeRecord, type JournalRecord } from '../../pool/journal/journal-record.ts';
import { account, openBooks } from './books-bed.ts';
import { freshIdentity } from './fresh-identity.ts';

const [DAMAGED, COPY, OTHER] = ['01'.repeat(8), '02'.repeat(8), '03'.repeat(8)];

const share = (): JournalRecord => ({
  kind: 'share',
  service: 'pplns',
  account: account('miner'),
  worker: 'rig',
  work: 10n,
  atMillis: Date.now(),
  identity: freshIdentity(0),
});

const upTo = (from: number, through: number) => Array.from({ length: through - from + 1 }, (_, i) => from + i);

async function bed() {
  const books = await openBooks();
  onTestFinished(() => books.close());
  await books.height(0);
  const records = Array.from({ length: 60 }, () => encodeRecord(share()));
  const take = (bootId: string, sequences: readonly number[], after?: number, own = records) =>
    books.fenced((transaction) =>
      books.intake.take(
        transaction,
        sequences.map((sequence, i) => ({
          bootId,
          sequence,
          record: own[sequence] as Uint8Array,
          ...(i === 0 && after !== undefined ? { after } : {}),
        })),
      ),
    );
  const holes = async () => {
    const rows = await books.sql<{ after: number; until: number }[]>`select after::int, until::int from journal_holes
      where after + 1 < until order by after, until`;
    return rows.map(({ after, until }) => `${after} to ${until}`);
  };
  return { books, records, take, holes };
}

test('entries that a copy under another name has are booked and not reported as lost; those that it lacks still are', async () => {
  const { books, take, holes } = await bed();
  await take(DAMAGED, [3, 4], -1);
  await take(DAMAGED, upTo(8, 30), 4);
  await take(DAMAGED, [50, 51], 30);
  expect(await holes()).toEqual(['-1 to 3', '4 to 8', '30 to 50']);
  // Too little to know it for a copy.
  expect(await take(COPY, upTo(0, 20))).toMatchObject({ shares: 6, doubled: 15 });
  expect(await holes()).toEqual(['-1 to 3', '4 to 8', '30 to 50']);
  expect(await take(COPY, upTo(21, 33))).toMatchObject({ shares: 3, doubled: 10 });
  expect(await holes()).toEqual(['33 to 50']);
  // In a hole that is longer than what the books take at once.
  await take(COPY, upTo(34, 40));
  await take(COPY, upTo(43, 45), 40);
  // The copy has a hole there itself, and neither has these: by the word of both.
  expect(await holes()).toEqual(['40 to 43', '40 to 50']);
  const [row] = await books.sql<{ work: string }[]>`select sum(work)::text as work from open_work`;
  expect(row?.work).toBe('460');
  expect([...(await doubledAfter(books.sql, COPY, -1))]).toEqual([3, 4, ...upTo(8, 30)]);
});

test('a hole of what the books had from another journal before is none', async () => {
  const { take, holes } = await bed();
  await take(COPY, upTo(0, 30));
  await take(COPY, upTo(34, 40), 30);
  await take(DAMAGED, [0, 1]);
  await take(DAMAGED, upTo(5, 24), 1);
  await take(DAMAGED, upTo(34, 36), 24);
  expect(await holes()).toEqual(['30 to 34', '30 to 34']);
});

test('shares of a miner in two journals under the same sequences are no copy: what is lost stays reported', async () => {
  const { records, take, holes } = await bed();
  await take(DAMAGED, upTo(0, 29));
  await take(DAMAGED, upTo(40, 59), 29);
  // Another front end's journal. Each second share is one of the damaged journal, and so are those around its hole.
  const own = records.map((record, i) => (i % 2 === 0 || (i > 26 && i < 43) ? record : encodeRecord(share())));
  for (let i = 30; i < 40; i++) own[i] = encodeRecord(share());
  for (let from = 0; from < 60; from += 7) await take(OTHER, upTo(from, Math.min(59, from + 6)), undefined, own);
  expect(await holes()).toEqual(['29 to 40']);
});

test('of a journal with however many shares that counted before each is known, as long as its ends are', async () => {
  const { books, take } = await bed();
  const known = Array.from({ length: 1_100 }, () => encodeRecord(share()));
  await take(OTHER, upTo(0, known.length - 1), undefined, known);
  const mixed = known.flatMap((record) => [record, encodeRecord(share())]);
  await take(COPY, upTo(0, 1_500), undefined, mixed);
  await take(COPY, upTo(1_501, mixed.length - 1), undefined, mixed);
  const places = async () => [...(await doubledAfter(books.sql, COPY, -1))];
  expect(await places()).toEqual(known.map((_, i) => 2 * i));
  await books.height(0);
  await books.sql`insert into slice_ends (slice, boot_id, through, at)
    values (0, ${Buffer.from(COPY, 'hex')}, 2000, now() - interval '31 days')`;
  await books.height(4);
  expect(await places()).toEqual(upTo(1_001, 1_099).map((i) => 2 * i));
});

test('shares that counted before are looked for among those of their time, not among all', async () => {
  const { books } = await bed();
  const { sql } = books;
  const start = Math.floor(Date.now() / 86_400_000) * 86_400_000;
  await sql.begin((transaction) => ensureSharePartitions(transaction, [start]));
  const many = 100_000;
  await sql`insert into shares (boot_id, sequence, service, account_id, worker_id, slice, work, at, identity, anchor_height)
    select ${Buffer.from(DAMAGED, 'hex')}, g, 0, 1, 1, 1, 100, to_timestamp(${start / 1000}::float8 + g * 0.2),
      sha256(int8send(g)), g / 10 from generate_series(0, ${many - 1}) g`;
  const [index] = await sql<{ name: string }[]>`select indexrelid::regclass::text as name from pg_index
    where indrelid = (select tableoid from shares limit 1) limit 1`;
  await sql`select brin_summarize_new_values(${index?.name as string}::text::regclass)`;
  await sql`analyze shares`;
  const rows = await sql<{ identity: Buffer; anchor: bigint; sequence: bigint }[]>`select identity,
    anchor_height as anchor, sequence from shares where sequence >= ${many - 20} order by sequence`;
  const taken = rows.map(({ identity, anchor, sequence }) => ({
    bootId: COPY,
    sequence: Number(sequence),
    identity: { bytes: new Uint8Array(identity), anchorHeight: Number(anchor) },
    isCounted: false,
  }));
  await sql.begin(async (transaction) => {
    const scans = () => transaction<{ rows: bigint }[]>`select sum(seq_tup_read)::bigint as rows
      from pg_stat_xact_user_tables where relname like 'shares%'`;
    await transaction`insert into journal_positions (boot_id, through) values (${Buffer.from(COPY, 'hex')}, ${many})`;
    const before = await scans();
    await fillHoles(transaction, taken, new Map());
    expect(await scans()).toEqual(before);
    expect(await transaction`select agreed from journal_positions where copy_of is not null`).toEqual([{ agreed: 20 }]);
  });
});
