/** The database falls back to a copy from before a change of terms that the pool has announced. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { payoutsResumed } from '../../pool/api/operator/payout-pause.ts';
import { connectDatabase } from '../../pool/database/connect.ts';
import { Edits } from '../../pool/edits/edits.ts';
import { PublishedTerms } from '../../pool/edits/published-terms.ts';
import { databaseServer } from '../pool/database-fixture.ts';
import { startPostgresServer } from '../pool/postgres-server.ts';
import { quietLog } from '../quiet-log.ts';
import { temporaryDirectory } from '../temporary.ts';
import { lasts } from '../watch/limits.ts';
import { booksSettled, expectBooks, Oracle, PlayedChain, RigInstance } from './books-rig.ts';
import { swapIn, takeBaseBackup } from './database-swap.ts';

const server = databaseServer();
const TIMEOUT = lasts(120, 'it replaces a database server under a pool, twice');
const file = { name: 'a pool', payoutMin: 1_000n, feePpm: { pplns: 10_000, solo: 10_000 }, sliceCuts: 24 };
const editor = { host: 'here', token: '' };

test(
  'announced terms are put back when the database falls under the pool, and when it fell while the pool was stopped',
  TIMEOUT,
  async () => {
    const postgres = await startPostgresServer(60);
    onTestFinished(() => postgres.stop());
    const oracle = new Oracle();
    const chain = new PlayedChain();
    onTestFinished(() => chain.close());
    const directory = temporaryDirectory();
    mkdirSync(join(directory, 'journal'));
    const path = join(directory, 'published-terms');
    const sql = connectDatabase(postgres.url, { max: 2, name: 'test' });
    onTestFinished(() => sql.end({ timeout: 1 }));
    const look = () => ({ height: chain.height, synced: true, atMillis: Date.now(), newestMillis: 0 });
    const start = async () => {
      const published = new PublishedTerms(path, { log: quietLog, now: Date.now });
      const rig = await RigInstance.start(
        { directory: join(directory, 'journal'), databaseUrl: postgres.url, published },
        oracle,
        chain,
      );
      const edits = new Edits(file, { sql, chain: look, now: Date.now, published });
      return { rig, edits };
    };
    const newest = async () => {
      const [row] = await sql<{ number: number }[]>`select max(number)::int as number from slices
      where closed_height is not null`.catch(() => []);
      return row?.number ?? -1;
    };
    const reaches = (slice: number) =>
      expect.poll(newest, { timeout: 60_000, interval: 100 }).toBeGreaterThanOrEqual(slice);
    const feesFrom = async (slice: number) => {
      const rows = await sql<{ fee: number }[]>`select distinct fee_ppm::int as fee from slices
      where service = 0 and number >= ${slice}`;
      return rows.map(({ fee }) => fee);
    };

    let { rig, edits } = await start();
    await reaches(1);
    const first = await takeBaseBackup(postgres);
    expect(await edits.change('fee_pplns', '0.25', editor)).toEqual({ kind: 'made' });
    expect(await edits.change('payout_min', '0.000005', editor)).toEqual({ kind: 'made' });
    const { pplns: changes } = edits.now.feeChanges;
    expect(changes).toMatchObject([{ ppm: 2_500 }]);
    const { fromSlice } = changes[0] as { fromSlice: number };
    await swapIn(postgres, first);
    await reaches(fromSlice + 2);
    expect(await feesFrom(fromSlice)).toEqual([2_500]);
    await edits.refresh();
    expect(edits.now).toMatchObject({ feePpm: { pplns: 2_500 }, payoutMin: 500n });
    const known = await sql<{ details: unknown }[]>`select details from operator_log where action = 'terms_put_back'`;
    expect(known.map(({ details }) => details)).toMatchObject([{ rows: expect.arrayContaining(['edit_fee_pplns']) }]);

    // What the operator changes afterwards counts, and the copy does not bring the value before back.
    await edits.change('fee_pplns', '0.1', editor);
    await edits.refresh();
    await rig.stop();
    await swapIn(postgres, first);
    ({ rig, edits } = await start());
    const last = chain.height / file.sliceCuts;
    await reaches(Math.ceil(last) + 3);
    expect(await feesFrom(Math.ceil(last) + 2)).toEqual([1_000]);

    // Nothing that was answered is lost or counted twice.
    await rig.stopLoad();
    chain.goOn(300);
    await booksSettled(sql, oracle, 180_000);
    await expectBooks(sql, oracle, new Map());
    await rig.stop();
  },
);

test('a damaged copy is moved aside and made again, and one of another chain is not used', TIMEOUT, async () => {
  const postgres = await startPostgresServer(10);
  onTestFinished(() => postgres.stop());
  const chain = new PlayedChain();
  onTestFinished(() => chain.close());
  const directory = temporaryDirectory();
  mkdirSync(join(directory, 'journal'));
  const rig = await RigInstance.start(
    { directory: join(directory, 'journal'), databaseUrl: postgres.url },
    new Oracle(),
    chain,
  );
  const sql = connectDatabase(postgres.url, { max: 1, name: 'test' });
  onTestFinished(() => sql.end({ timeout: 1 }));
  // Nothing opens slices or writes terms beside the test.
  await expect.poll(() => sql`select from slices`, { timeout: 60_000 }).not.toHaveLength(0);
  await rig.stop();
  const path = join(directory, 'published-terms');
  const settle = async () => {
    const published = new PublishedTerms(path, { log: quietLog, now: Date.now });
    await sql.begin((transaction) => published.settle(transaction));
    return readFileSync(path, 'utf8');
  };
  const edits = new Edits(file, { sql, chain: () => undefined, now: Date.now });
  await sql`insert into settings values ('chain_id', 'one') on conflict (name) do update set value = excluded.value`;
  await edits.change('notice', 'first', editor);
  const one = await settle();
  expect(one).toContain('first');
  writeFileSync(path, one.replace('first', 'other'));
  expect(await settle()).toBe(one);
  expect(readFileSync(`${path}.damaged`, 'utf8')).toContain('other');
  // A new database, of which the chain is not known, then of another chain.
  await sql`delete from settings where name in ('terms_editions', 'notice', 'chain_id')`;
  expect(await settle()).toBe(one);
  await sql`insert into settings values ('chain_id', 'two')`;
  expect(await settle()).not.toContain('first');
  await edits.refresh();
  expect(edits.now.notice).toBe(null);
});

test('after a fall of the database the pool has as long to pay as after a pause: thresholds and a pause of since then are gone', async () => {
  const newestMillis = Date.now() + 3_600_000;
  const path = join(temporaryDirectory(), 'published-terms');
  const open = async (slice: number) => {
    const { sql } = await server.fresh();
    await sql`insert into settings values ('chain_id', 'one') on conflict (name) do update set value = excluded.value`;
    await sql`insert into slices (service, number, window_work, opened_height, slice_cuts, window_thousandths, fee_ppm, target)
      values (0, ${slice}, 1, ${slice}, 1, 1000, 0, ${Buffer.alloc(32, 1)})`;
    return sql;
  };
  const [later, copy] = [await open(5), await open(3)];
  const published = new PublishedTerms(path, { log: quietLog, now: Date.now, chain: () => ({ newestMillis }) });
  const settle = async (sql: typeof copy) => {
    await sql.begin((transaction) => published.settle(transaction));
    return payoutsResumed(sql);
  };
  expect(await settle(later)).toBe(null);
  expect(await settle(later)).toBe(null);
  // The first transactions after a fall often come to nothing.
  const failing = copy.begin(async (transaction) => {
    await published.settle(transaction);
    throw new Error('the connection is lost');
  });
  await expect(failing).rejects.toThrow('is lost');
  expect(await settle(copy)).toBe(newestMillis);
  expect(await settle(copy)).toBe(newestMillis);
  // Once for each fall.
  await copy`delete from settings where name = 'payouts_resumed_millis'`;
  expect(await settle(copy)).toBe(null);
});
