/**
 * The database behind the pool falls back to an older copy of itself at random instants, under load, and so does Redis: it loses
 * everything, is replaced by another, or by an older copy. No share that was answered is lost or counted twice, every reward finds its
 * finder, and nobody has to do anything.
 */
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { connectDatabase } from '../../pool/database/connect.ts';
import { count, seed } from '../level.ts';
import { drawing } from '../pool/month-edge.ts';
import { startPostgresServer } from '../pool/postgres-server.ts';
import { startRedisServer } from '../pool/redis-server.ts';
import { temporaryDirectory } from '../temporary.ts';
import { booksSettled, expectBooks, Oracle, PlayedChain, publishedSlices, RigInstance } from './books-rig.ts';
import { swapIn, takeBaseBackup } from './database-swap.ts';

const ROLLBACKS = count({ full: 1, deep: 50 });
const TIMEOUT = { timeout: count({ full: 180_000, deep: 3_600_000 }) };

async function bed(names: readonly string[], redisUrl?: string) {
  const postgres = await startPostgresServer(60);
  onTestFinished(() => postgres.stop());
  const oracle = new Oracle();
  const chain = new PlayedChain();
  onTestFinished(() => chain.close());
  const directory = temporaryDirectory();
  const start = (name: string) =>
    RigInstance.start(
      {
        directory: join(directory, name),
        databaseUrl: postgres.url,
        ...(redisUrl === undefined ? {} : { redisUrl }),
      },
      oracle,
      chain,
    );
  const instances = new Map<string, RigInstance>();
  for (const name of names) instances.set(name, await start(name));
  const restart = async (name: string) => {
    await (instances.get(name) as RigInstance).stop();
    instances.set(name, await start(name));
  };
  const sql = connectDatabase(postgres.url, { max: 2, name: 'test' });
  onTestFinished(() => sql.end({ timeout: 1 }));
  const published = new Map<string, string>();
  const closed = () => sql<{ n: number }[]>`select count(*)::int as n from slices where closed_height is not null`;
  // A copy from before the first slice makes a pool that begins later, with other slices.
  await expect.poll(async () => (await closed())[0]?.n, { timeout: 60_000 }).toBeGreaterThan(0);
  /** Copies the database. The result lets it fall back to that, once a slice has closed and was published since. */
  const copied = async () => {
    const copy = await takeBaseBackup(postgres);
    const [then] = await closed();
    return async () => {
      await expect.poll(async () => (await closed())[0]?.n, { timeout: 60_000 }).toBeGreaterThan(then?.n ?? 0);
      for (const [slice, chain] of await publishedSlices(sql)) published.set(slice, chain);
      await swapIn(postgres, copy);
    };
  };
  const finish = async () => {
    for (const instance of instances.values()) await instance.stopLoad();
    // These settle every block.
    chain.goOn(300);
    await booksSettled(sql, oracle, 120_000);
    await expectBooks(sql, oracle, published);
    expect((await sql`select 1 from journal_holes`).length).toBe(0);
    for (const instance of instances.values()) await instance.stop();
  };
  return { restart, copied, finish };
}

test(
  `one instance: the database goes back under it, and nothing that was answered is lost (seed ${seed})`,
  TIMEOUT,
  async () => {
    const draw = drawing(seed);
    const { restart, copied, finish } = await bed(['a']);
    await sleep(500 + draw(500));
    for (let round = 0; round < ROLLBACKS; round++) {
      const fallBack = await copied();
      await sleep(300 + draw(1_500));
      // Sometimes the pool restarts between copy and fall, so that a whole boot is unknown to the copy.
      if (draw(2) === 0) await restart('a');
      await sleep(draw(800));
      await fallBack();
      await sleep(draw(2_500));
    }
    await finish();
  },
);

test(
  `two instances over Redis: database and Redis go back, and nothing that was answered is lost (seed ${seed})`,
  TIMEOUT,
  async () => {
    const draw = drawing(seed + 1);
    const redis = await startRedisServer();
    onTestFinished(() => redis.stop());
    const { restart, copied, finish } = await bed(['a', 'b'], redis.url);
    await sleep(500 + draw(500));
    const replaced = async () => {
      await redis.kill();
      await sleep(draw(500));
      await redis.start();
    };
    const faults = [replaced, () => redis.restore(), () => restart('a'), () => restart('b'), async () => undefined];
    for (let round = 0; round < ROLLBACKS; round++) {
      const fallBack = await copied();
      await redis.save();
      await sleep(300 + draw(1_500));
      await faults[(round + draw(2)) % faults.length]?.();
      await sleep(draw(800));
      await fallBack();
      await sleep(draw(1_500));
      await faults[draw(faults.length)]?.();
    }
    await finish();
  },
);
