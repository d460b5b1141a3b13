/**
 * The books refuse a second (header, nonce) by themselves (docs/protocol/books.md, rule 14): in one batch, in another, from
 * another instance's journal, late, and after the accountant was started again; and the audit finds one that is there.
 */
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { audit } from '../../pool/audit/audit.ts';
import { Intake } from '../../pool/books/intake.ts';
import { encodeRecord, type ShareIdentity, type ShareRecord } from '../../pool/journal/journal-record.ts';
import { fromHex } from '../../protocol/bytes.ts';
import { account, type BooksBed, openBooks, SLICE_CUTS } from '../pool/books-bed.ts';
import { freshIdentity } from '../pool/fresh-identity.ts';

let books: BooksBed;
beforeAll(async () => {
  books = await openBooks();
  await books.height(1_000);
});
afterAll(() => books.close());

const share = (identity: ShareIdentity | null, work = 1n, atMillis = Date.now()): ShareRecord => ({
  kind: 'share',
  service: 'pplns',
  account: account('miner'),
  worker: 'rig',
  work,
  atMillis,
  identity,
});

let intake = new Intake({ network: 'development', sliceCuts: SLICE_CUTS });
const sequences = new Map<string, number>();

/** Into the books under the next sequences of a boot; returns what counted. */
function take(records: readonly ShareRecord[], boot = 'a0'): ReturnType<Intake['take']> {
  const first = sequences.get(boot) ?? 0;
  sequences.set(boot, first + records.length);
  const bootId = boot.repeat(8);
  const entries = records.map((record, i) => ({ bootId, sequence: first + i, record: encodeRecord(record) }));
  return books.fenced((transaction) => intake.take(transaction, entries));
}

async function credited(): Promise<bigint> {
  const [row] = await books.sql<{ work: string | null }[]>`select sum(work)::text as work from open_work`;
  return BigInt(row?.work ?? 0);
}

type Vector = { boot_id: string; sequence: number; anchor_height: number; identity: string; work: string };
const { journal, total } = JSON.parse(
  readFileSync(new URL('../../vectors/share-identity.json', import.meta.url), 'utf8'),
) as { journal: (Vector & { says: string; counts: boolean })[]; total: string };

test('the journal of the vectors, record by record and at one go', async () => {
  const entryOf = ({ boot_id, sequence, anchor_height, identity, work }: Vector) => ({
    bootId: boot_id,
    sequence,
    record: encodeRecord(share({ anchorHeight: anchor_height, bytes: fromHex(identity) }, BigInt(work))),
  });
  const before = await credited();
  for (const vector of journal) {
    const { shares } = await books.fenced((transaction) => intake.take(transaction, [entryOf(vector)]));
    expect(shares, vector.says).toBe(vector.counts ? 1 : 0);
  }
  expect((await credited()) - before).toBe(BigInt(total));
  // Under other names, as if both journals had been copied: nothing of it counts again.
  const copied = journal.map((vector) => ({ ...vector, boot_id: vector.boot_id.replace(/^../, 'ff') }));
  const result = await books.fenced((transaction) => intake.take(transaction, copied.map(entryOf)));
  expect(result).toMatchObject({ shares: 0, doubled: copied.length - 1 });
  expect((await credited()) - before).toBe(BigInt(total));
});

test('another accountant, another instance, a late journal: what counted once counts no more', async () => {
  const identities = Array.from({ length: 300 }, (_, i) => freshIdentity(2_000 + i));
  const records = identities.map((identity) => share(identity));
  expect(await take(records)).toMatchObject({ shares: 300, doubled: 0 });
  expect(await take(records, 'b0')).toMatchObject({ shares: 0, doubled: 300 });
  const [one, two] = [freshIdentity(2_100), freshIdentity(2_100)];
  expect(await take([share(one), share(two), share(one)], 'b1')).toMatchObject({ shares: 2, doubled: 1 });
  intake = new Intake({ network: 'development', sliceCuts: SLICE_CUTS });
  expect(await take([...records, share(two), share(freshIdentity(2_001))], 'c0')).toMatchObject({
    shares: 1,
    doubled: 301,
  });
  // Days old, and on another day's partition: the header says where to look, not the clock of who sent it.
  const old = identities.map((identity) => share(identity, 9n, Date.now() - 3 * 86_400_000));
  expect(await take(old, 'c1')).toMatchObject({ shares: 0, doubled: 300 });
  const [row] = await books.sql<{ count: bigint }[]>`select count from refused_shares where result = 'counted_before'`;
  expect(Number(row?.count)).toBeGreaterThan(900);
});

test('what a failed transaction took counts nowhere, and so may come again', async () => {
  const records = [share(freshIdentity(3_000)), share(freshIdentity(3_000))];
  const before = await credited();
  const entries = records.map((record, i) => ({ bootId: 'd0'.repeat(8), sequence: i, record: encodeRecord(record) }));
  const failing = books.fenced(async (transaction) => {
    await intake.take(transaction, entries);
    throw new Error('the disk is full');
  });
  await expect(failing).rejects.toThrow(/disk/);
  intake.forget();
  expect(await credited()).toBe(before);
  const taken = await books.fenced((transaction) => intake.take(transaction, entries));
  expect(taken).toMatchObject({ shares: 2, doubled: 0 });
});

test('records of before shares had an identity are still taken, by their name alone', async () => {
  const plain = share(null, 7n);
  const before = await credited();
  expect(await take([plain, plain], 'e0')).toMatchObject({ shares: 2, doubled: 0 });
  expect((await credited()) - before).toBe(14n);
});

test('more anchors than are kept in memory: each is read again when it is needed', async () => {
  const anchors = Array.from({ length: 60 }, (_, i) => 10_000 + 100 * i);
  const records = anchors.map((anchor) => share(freshIdentity(anchor)));
  expect(await take(records, 'f0')).toMatchObject({ shares: 60 });
  for (let round = 0; round < 3; round++)
    expect(await take(records.toReversed(), 'f1')).toMatchObject({ shares: 0, doubled: 60 });
});

test('the audit names a header and nonce that is among the raw shares twice', async () => {
  expect((await audit(books.sql, { network: 'development' })).findings).toEqual([]);
  await books.sql`update shares set identity = (select min(identity) from shares) where boot_id = ${Buffer.alloc(8, 0xd0)}`;
  const { findings } = await audit(books.sql, { network: 'development' });
  expect(findings.map(({ what }) => what)).toEqual([
    expect.stringMatching(/^raw shares of header and nonce [0-9a-f]{48}$/),
  ]);
});
