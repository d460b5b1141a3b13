/**
 * A stranger invents workers, of its own addresses and of somebody else's (docs/security.md): what that costs the pool is
 * bounded by the hashes that were done, by whatever strategy; every share is in the books of its account all the same.
 */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { MAX_OWN_WORKERS, TYPICAL_PART } from '../../pool/books/own-workers.ts';
import type { JournalRecord } from '../../pool/journal/journal-record.ts';
import { BestShares } from '../../pool/stats/best-shares.ts';
import { foldStats } from '../../pool/stats/fold.ts';
import { packBucket } from '../../pool/stats/packed-work.ts';
import { RateBoard } from '../../pool/stats/rates.ts';
import { Refusals } from '../../pool/stats/refusals.ts';
import { noteSilentWorkers } from '../../pool/stats/silence.ts';
import { noteTypicalShare } from '../../pool/stats/typical-share.ts';
import { OTHERS } from '../../protocol/books/receipt.ts';
import { CODE } from '../../protocol/stratum/errors.ts';
import { repeats, seed } from '../level.ts';
import { account, type BooksBed, openBooks } from '../pool/books-bed.ts';
import { freshIdentity } from '../pool/fresh-identity.ts';
import { randomOf } from '../random.ts';

/** Work of an honest share, what a name has to do, and the smallest share that the pool accepts. */
const TYPICAL = 1_000_000n;
const NEEDED = TYPICAL / TYPICAL_PART;
const LEAST = 256n;
const RIGS = 20;
/** Bytes of disk for a hash, if every share is the smallest that is accepted. */
const DISK_PER_HASH = { all: 4, lasting: 3 };

let books: BooksBed;
let clock = Date.now();
beforeAll(async () => {
  books = await openBooks();
  await books.height(0);
});
afterAll(() => books.close());

const share = (who: string, worker: string, work: bigint): JournalRecord => ({
  kind: 'share',
  service: 'pplns',
  account: account(who),
  worker,
  work,
  atMillis: clock,
  identity: freshIdentity(),
});

/** An hour of the honest miners, and what follows from it. */
async function honest(): Promise<void> {
  await books.take(Array.from({ length: 10 * RIGS }, (_, i) => share('farm', `rig${i % RIGS}`, TYPICAL)));
  await books.fenced(async (transaction) => {
    await foldStats(transaction, clock);
    await noteTypicalShare(transaction);
  });
}

const count = async (of: PromiseLike<readonly unknown[]>): Promise<number> =>
  Number(((await of)[0] as { n: number }).n);

/** Of all tables and indexes, in bytes: what a stranger leaves on the disk, until raw shares are pruned and after. */
const diskBytes = async (): Promise<{ all: number; lasting: number }> => {
  const [row] = await books.sql<
    { every: string; raw: string }[]
  >`select pg_database_size(current_database())::text as every,
    (select coalesce(sum(pg_total_relation_size(inhrelid)), 0) from pg_inherits
      where inhparent = 'shares'::regclass)::text as raw`;
  return { all: Number(row?.every), lasting: Number(row?.every) - Number(row?.raw) };
};

test('random strategies: rows, entries of boards, news and disk are bounded by hashes, and no share is lost', async () => {
  await honest();
  const before = await diskBytes();
  const draw = randomOf(seed);
  let [hashes, shares, names, accounts] = [0n, 0, 0, 0];
  const given = new Map<string, bigint>([['farm', 10n * BigInt(RIGS) * TYPICAL]]);
  for (let round = 0; round < repeats({ full: 10, deep: 200 }); round++) {
    const records: JournalRecord[] = [];
    const strategy = draw(4);
    const own = `stranger ${round}`;
    for (let i = draw(1_500); i > 0; i--) {
      // Names of somebody else's account; of an own one; accounts of one name each; a few names again and again.
      const who = strategy === 0 ? 'farm' : strategy === 2 ? `${own} ${i}` : own;
      const worker = strategy === 3 ? `again${draw(5)}` : `name${round}-${i}`;
      const work = draw(50) === 0 ? BigInt(1 + draw(300_000)) : LEAST;
      records.push(share(who, worker, work));
      given.set(who, (given.get(who) ?? 0n) + work);
      hashes += work;
      shares++;
      names++;
    }
    await books.take(records);
    clock += 60_000;
    await books.fenced(async (transaction) => {
      await foldStats(transaction, clock);
      await noteSilentWorkers(transaction, 1_000);
    });
  }
  const { sql } = books;
  accounts = given.size - 1;
  // An account is a row with its first share, because its money must be booked: it costs the smallest share.
  expect(accounts).toBeLessThanOrEqual(Number(hashes / LEAST));
  const after = await diskBytes();
  const least = shares * Number(LEAST);
  expect((after.all - before.all) / least).toBeLessThan(DISK_PER_HASH.all);
  expect((after.lasting - before.lasting) / least).toBeLessThan(DISK_PER_HASH.lasting);
  const rows = await count(sql`select count(*)::int as n from workers w join accounts a on a.id = w.account_id
    where w.name <> ${OTHERS} and not (a.payload = ${Buffer.from(account('farm'))} and w.name like 'rig%')`);
  // An account has its first worker; every other one has done its part of a typical share.
  expect(rows).toBeLessThanOrEqual(accounts + Number(hashes / NEEDED));
  expect(names).toBeGreaterThan(2 * rows - accounts);
  const board = new RateBoard({ sql, now: () => clock });
  await board.refresh();
  expect(board.size).toBeLessThanOrEqual(RIGS + 2 * accounts + 1 + Number(hashes / NEEDED));
  // None of them is a day old.
  expect(await count(sql`select count(*)::int as n from events where kind like 'worker%'`)).toBe(0);
  expect(await count(sql`select count(*)::int as n from shares`)).toBe(shares + 10 * RIGS);
  const work = await sql<{ payload: Buffer; work: string }[]>`select a.payload, o.work::text as work
    from open_work o join accounts a on a.id = o.account_id where o.service = 0`;
  expect(new Map(work.map((row) => [row.payload.toString('hex'), BigInt(row.work)]))).toEqual(
    new Map([...given].map(([who, sum]) => [Buffer.from(account(who)).toString('hex'), sum])),
  );
  const [figures] = await sql<{ work: string; accepted: string }[]>`select sum(work)::text as work,
    sum(accepted)::text as accepted from workers`;
  expect(figures).toEqual({
    work: String([...given.values()].reduce((sum, each) => sum + each, 0n)),
    accepted: String(shares + 10 * RIGS),
  });
});

test('a worker has figures of its own as soon as it has done its part of a typical share', async () => {
  await honest();
  const idOf = async (name: string) => (await books.sql`select id from workers where name = ${name}`)[0]?.id;
  await books.take([share('farm', 'small', NEEDED / 2n)]);
  expect(await idOf('small')).toBeUndefined();
  await books.take([share('farm', 'small', NEEDED / 2n), share('farm', 'large', NEEDED)]);
  expect(await idOf('small')).toBeGreaterThan(0);
  expect(await idOf('large')).toBeGreaterThan(0);
  // A new accountant finds the same.
  books.intake.forget();
  await books.take([share('farm', 'small', 1n), share('farm', 'tiny', 1n)]);
  expect(await idOf('tiny')).toBeUndefined();
  // What is refused of it, and its best share, count with the others.
  const others = async () =>
    (
      await books.sql`select w.id, stale from workers w join accounts a on a.id = w.account_id
    where name = ${OTHERS} and a.payload = ${Buffer.from(account('farm'))}`
    )[0] as { id: number; stale: bigint };
  const farm = { account: account('farm'), service: 'pplns', worker: 'tiny' };
  const before = await others();
  const [refusals, best] = [new Refusals(), new BestShares()];
  refusals.add([{ ...farm, code: CODE.unknown_job, isOfWorker: true }] as never);
  best.add([{ ...farm, extranonce: Uint8Array.of(1), hashWork: 5_000_000, atMillis: clock }] as never);
  await refusals.flush(books.sql);
  await best.flush(books.sql);
  expect((await others()).stale).toBe(before.stale + 1n);
  const [row] = await books.sql<{ worker_id: number }[]>`select worker_id from best_shares`;
  expect(row?.worker_id).toBe(before.id);
});

test('an account has at most so many workers of its own, whatever work was done', async () => {
  const records = Array.from({ length: MAX_OWN_WORKERS + 50 }, (_, i) => share('great farm', `g${i}`, TYPICAL));
  for (let i = 0; i < records.length; i += 1_000) await books.take(records.slice(i, i + 1_000));
  const rows = await books.sql<{ name: string; accepted: bigint }[]>`select name, accepted from workers w
    join accounts a on a.id = w.account_id where a.payload = ${Buffer.from(account('great farm'))}`;
  expect(rows.length).toBe(MAX_OWN_WORKERS + 1);
  expect(rows.find(({ name }) => name === OTHERS)?.accepted).toBe(50n);
  // A place is free again thirty days after the last share of its worker.
  const late = async (name: string, days: number) => {
    await books.sql`update workers set last_share_at = ${new Date(clock - days * 86_400_000)} where name = 'g0'`;
    await books.take([share('great farm', name, TYPICAL)]);
    return (await books.sql`select 1 from workers where name = ${name}`).length;
  };
  expect([await late('late 1', 29), await late('late 2', 31)]).toEqual([0, 1]);
});

test('the board forgets workers that are in none of its hours', async () => {
  const { sql } = books;
  const hour = Math.floor(clock / 3_600_000);
  let now = clock;
  const board = new RateBoard({ sql, now: () => now });
  await board.refresh();
  const before = board.size;
  const sums = new Map(Array.from({ length: 5_000 }, (_, i) => [1_000_000 + i, { shares: 1, work: 256n }]));
  await sql`insert into stats_recent (tier, bucket, version, packed)
    values (3600, ${hour + 100}, nextval('stats_versions'), ${Buffer.from(packBucket(sums))})`;
  await board.refresh();
  expect(board.size).toBe(before + 5_000);
  now += 200 * 3_600_000;
  await board.refresh();
  expect(board.size).toBe(0);
});
