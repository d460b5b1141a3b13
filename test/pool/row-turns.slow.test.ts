/**
 * Everything that changes rows of several workers or accounts, all at once over the same rows: intake, refused and best
 * shares of two front ends, statistics, credits, payouts and edits of miners. PostgreSQL itself counts deadlocks.
 */
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ClosedWork } from '../../pool/books/closed-work.ts';
import { makeCredits } from '../../pool/books/credits.ts';
import { recordPaid } from '../../pool/books/rewards.ts';
import { balanceSheet } from '../../pool/books/sheet.ts';
import type { Sql } from '../../pool/database/connect.ts';
import { takeTurn } from '../../pool/database/row-turns.ts';
import { markFinalized, markVoid, reservePayout } from '../../pool/payout/payout-states.ts';
import { BestShares } from '../../pool/stats/best-shares.ts';
import { foldStats } from '../../pool/stats/fold.ts';
import { Refusals } from '../../pool/stats/refusals.ts';
import { noteSilentWorkers } from '../../pool/stats/silence.ts';
import { formatAddress } from '../../protocol/address.ts';
import { REGISTRATION_WINDOW } from '../../protocol/network.ts';
import { CODE } from '../../protocol/stratum/errors.ts';
import { pattern } from '../../vectors/generate/pattern.ts';
import { repeats, seed } from '../level.ts';
import { type Random, randomOf } from '../random.ts';
import { until } from '../until.ts';
import { blockRecord } from './book-records.ts';
import { account, type BooksBed, openBooks, SLICE_CUTS } from './books-bed.ts';
import { freshIdentity } from './fresh-identity.ts';

const ACCOUNTS = 40;
const WORKERS = 12;
const AT = 1_767_225_600_000;
const ROUNDS = repeats({ full: 4, deep: 10_000 });

let bed: BooksBed;
beforeAll(async () => {
  bed = await openBooks();
  // Looks for a deadlock as soon as anybody waits: the default of a second would hide most of them.
  await bed.sql.unsafe(`alter database books set deadlock_timeout = '5ms'`);
});
afterAll(() => bed.close());

const payloads = Array.from({ length: ACCOUNTS }, (_, i) => account(`miner ${i}`));

const shuffled = <T>(items: readonly T[], draw: Random): T[] =>
  items
    .map((item) => ({ item, at: draw(1_000_000) }))
    .sort((a, b) => a.at - b.at)
    .map(({ item }) => item);

const shares = (draw: Random, height: number) =>
  shuffled(
    payloads.flatMap((miner) => Array.from({ length: WORKERS }, (_, i) => ({ miner, worker: `rig${i}` }))),
    draw,
  ).map(({ miner, worker }) => ({
    kind: 'share' as const,
    service: 'pplns' as const,
    account: miner,
    worker,
    work: 1_000n,
    atMillis: AT + height * 1000,
    identity: freshIdentity(height),
  }));

const deadlocks = async (sql: Sql): Promise<number> => {
  const [row] = await sql<{ deadlocks: bigint }[]>`select deadlocks from pg_stat_database
    where datname = current_database()`;
  return Number(row?.deadlocks);
};

test('intake, refusals, statistics, credits, payouts and edits never wait for each other in a circle', async () => {
  const { sql } = bed;
  const draw = randomOf(seed);
  await bed.height(0);
  await bed.take(shares(draw, 0));
  let over = false;
  const untilOver = async (work: () => Promise<unknown>) => {
    while (!over) await work();
  };
  /** One account after the other, as a page would: each its own transaction. */
  const edit = (i: number) => sql`update accounts set payout_min = ${1 + (i % 7)}
    where address = ${formatAddress(payloads[i % ACCOUNTS] as Uint8Array, 'development')}`;
  const frontEnd = (from: number) => {
    const own = randomOf(from);
    const [refusals, best] = [new Refusals(), new BestShares()];
    let work = 0;
    return untilOver(async () => {
      const list = shares(own, 0).map((share) => ({ ...share, code: CODE.unknown_job, extranonce: share.account }));
      refusals.add(list.map((share) => ({ ...share, isOfWorker: true })) as never);
      best.add(list.map((share) => ({ ...share, extranonce: Uint8Array.of(1), hashWork: ++work })) as never);
      await Promise.all([refusals.flush(sql), best.flush(sql)]);
    });
  };
  const books = async () => {
    const closed = new ClosedWork();
    for (let height = 1; height <= ROUNDS; height++) {
      await bed.height(height);
      const block = blockRecord('pplns', `block ${height}`, height, height % ACCOUNTS);
      await bed.take([...shares(draw, height), block]);
      const { blockId } = block;
      const transactionId = pattern(`reward ${height}`, 48);
      await bed.fenced(async (transaction) => {
        await recordPaid(transaction, { blockId, amount: 1_000_003n, transactionId, outputIndex: 0, height });
        await makeCredits(transaction, closed, { sliceCuts: SLICE_CUTS }, height + REGISTRATION_WINDOW);
      });
    }
    over = true;
  };
  const payouts = () =>
    untilOver(async () => {
      const id = randomUUID();
      const reserved = await bed.fenced((transaction) => reservePayout(transaction, id, { minimum: 1n }));
      if (reserved !== undefined) await bed.fenced((transaction) => markVoid(transaction, id, 'reserved', 'test'));
    });
  let edits = 0;
  const failures: unknown[] = [];
  const run = (work: Promise<unknown>) =>
    work.catch((error: unknown) => {
      over = true;
      failures.push(error);
    });
  await Promise.all([
    run(books()),
    run(frontEnd(seed + 1)),
    run(frontEnd(seed + 2)),
    run(payouts()),
    run(untilOver(() => edit(edits++))),
    run(
      untilOver(() =>
        bed.fenced(async (transaction) => {
          await foldStats(transaction, AT);
          await noteSilentWorkers(transaction, 1_000);
        }),
      ),
    ),
  ]);
  expect(failures).toEqual([]);
  expect(await deadlocks(sql)).toBe(0);
  const [row] = await sql<{ credits: number }[]>`select count(*)::int as credits from credit_lists`;
  expect(row?.credits).toBeGreaterThan(0);
  expect((await balanceSheet(sql)).gap).toBe(0n);
});

/** Whether the work waits for a turn that somebody else holds; it ends either way. */
async function waitsFor(table: 'accounts' | 'workers', work: () => Promise<unknown>): Promise<boolean> {
  const release = Promise.withResolvers<void>();
  const held = Promise.withResolvers<void>();
  const holder = bed.sql.begin(async (transaction) => {
    await takeTurn(transaction, table);
    held.resolve();
    await release.promise;
  });
  await held.promise;
  let isDone = false;
  const working = work().finally(() => {
    isDone = true;
  });
  const waits = async () =>
    (await bed.sql`select 1 from pg_locks where locktype = 'advisory' and not granted`).length > 0;
  const outcome = await until(async () => (isDone ? 'done' : (await waits()) && 'waits'));
  release.resolve();
  await Promise.all([holder, working]);
  return outcome === 'waits';
}

test('whoever changes several accounts or workers waits for the turn of their table', async () => {
  const draw = randomOf(seed + 3);
  const height = ROUNDS + 4 * SLICE_CUTS;
  await bed.height(height);
  const block = blockRecord('pplns', 'last block', height, 0);
  expect(await waitsFor('workers', () => bed.take([...shares(draw, height), block]))).toBe(true);
  const refusals = new Refusals();
  refusals.add(shares(draw, height).map((share) => ({ ...share, code: CODE.unknown_job, isOfWorker: true })) as never);
  expect(await waitsFor('workers', () => refusals.flush(bed.sql))).toBe(true);
  const claim = {
    blockId: block.blockId,
    amount: 77n,
    transactionId: pattern('last reward', 48),
    outputIndex: 0,
    height,
  };
  await bed.fenced((transaction) => recordPaid(transaction, claim));
  await bed.height(height + SLICE_CUTS);
  const credit = () =>
    bed.fenced((transaction) =>
      makeCredits(transaction, new ClosedWork(), { sliceCuts: SLICE_CUTS }, height + SLICE_CUTS + REGISTRATION_WINDOW),
    );
  expect(await waitsFor('accounts', credit)).toBe(true);
  const [first, second] = [randomUUID(), randomUUID()];
  for (const id of [first, second]) {
    const reserve = () =>
      bed.fenced((transaction) => reservePayout(transaction, id, { minimum: 1n, maxRecipients: 3 }));
    expect(await waitsFor('accounts', reserve)).toBe(true);
  }
  await bed.sql`update payouts set state = 'submitted' where id = ${first}`;
  const final = () => bed.fenced((transaction) => markFinalized(transaction, first, height));
  expect(await waitsFor('accounts', final)).toBe(true);
  const voids = () => bed.fenced((transaction) => markVoid(transaction, second, 'reserved', 'test'));
  expect(await waitsFor('accounts', voids)).toBe(true);
});
