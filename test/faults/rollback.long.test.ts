/**
 * The database behind the pool falls back to an older copy of itself at random instants, under load, and so does Redis: it loses
 * everything, is replaced by another, or by an older copy. No share that was answered is lost or counted twice, every reward finds its
 * finder, and nobody has to do anything.
 */
import { join as pathOf } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { connectDatabase } from '../../pool/database/connect.ts';
import { level, repeats, seed } from '../level.ts';
import { startPostgresServer } from '../pool/postgres-server.ts';
import { startRedisServer } from '../pool/redis-server.ts';
import { randomOf } from '../random.ts';
import { temporaryDirectory } from '../temporary.ts';
import { lasts } from '../watch/limits.ts';
import { booksSettled, expectBooks, Oracle, PlayedChain, publishedSlices, RigInstance } from './books-rig.ts';
import { removeCopy, swapIn, takeBaseBackup } from './database-swap.ts';
import { keptLogs } from './kept-logs.ts';

/** An election, a time-out of the database's client and a round of waiting for reports are each a few seconds. */
const STALL_MILLIS = 180_000;
const ROLLBACKS = repeats({ full: 1, deep: 50 });
const TIMEOUT = lasts(120, 'it ends programs many times, and waits for them to come back');

async function bed(names: readonly string[], redisUrl?: string) {
  const postgres = await startPostgresServer(60);
  onTestFinished(() => postgres.stop());
  const oracle = new Oracle();
  const chain = new PlayedChain();
  onTestFinished(() => chain.close());
  const directory = temporaryDirectory();
  const logs = keptLogs();
  const log = logs.logOf('test');
  let boots = 0;
  const start = (name: string) =>
    RigInstance.start(
      {
        // Each start is with another fee: slices that were published keep theirs.
        feePpm: 10_000n + BigInt(boots++),
        directory: pathOf(directory, name),
        databaseUrl: postgres.url,
        log: logs.logOf(name),
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
  const stateOf = async () => {
    const [row] = await sql<{ closed: number; height: number; taken: number }[]>`select
      (select count(*)::int from slices where closed_height is not null) as closed,
      (select value::int from settings where name = 'chain_height') as height,
      (select coalesce(sum(through + 1), 0)::int from journal_positions) as taken`.catch(() => []);
    return row;
  };
  /** Waits until more slices than these are closed. Books in which nothing moves for a while stand; slow ones are not at fault. */
  const goOn = async (slices: number) => {
    let [seen, since] = ['', Date.now()];
    for (;;) {
      const state = await stateOf();
      if ((state?.closed ?? 0) > slices) return state?.closed as number;
      const waiting = [...instances.values()].map(({ outbox }) => outbox.waiting);
      if (state !== undefined && JSON.stringify(state) !== seen) {
        [seen, since] = [JSON.stringify(state), Date.now()];
        log.info('the books', { ...state, head: chain.height, answered: oracle.answered.size, waiting });
      }
      if (Date.now() - since > STALL_MILLIS)
        throw new Error(`the books stand at ${seen}, with ${waiting} entries left`);
      await sleep(100);
    }
  };
  // A copy from before the first slice makes a pool that begins later, with other slices.
  let most = await goOn(0);
  /** Copies the database. The result lets it fall back to that, once a slice has closed and was published since. */
  const copied = async () => {
    const copy = await takeBaseBackup(postgres);
    const then = (await stateOf())?.closed ?? 0;
    log.info('copied', { closed: then });
    return async () => {
      most = Math.max(most, await goOn(then));
      for (const [slice, chain] of await publishedSlices(sql, [...instances.values()])) published.set(slice, chain);
      log.info('falls back', { closed: then });
      await swapIn(postgres, copy);
      removeCopy(copy);
    };
  };
  /** The books are further than they ever were before they fell. */
  const recovered = async () => {
    most = await goOn(most);
    log.info('recovered', { closed: most });
  };
  const finish = async () => {
    for (const instance of instances.values()) await instance.stopLoad();
    // These settle every block.
    chain.goOn(300);
    await booksSettled(sql, oracle, STALL_MILLIS);
    await expectBooks(sql, oracle, published);
    expect((await sql`select 1 from journal_holes`).length).toBe(0);
    for (const instance of instances.values()) await instance.stop();
  };
  /** Another machine, which knows nothing of what was before. */
  const join = async (name: string) => void instances.set(name, await start(name));
  return { restart, join, copied, recovered, finish, log };
}

// Elsewhere: published-terms.long.test.ts, where a database falls twice under one instance.
if (level === 'deep')
  test(
    `one instance: the database goes back under it, and nothing that was answered is lost (seed ${seed})`,
    TIMEOUT,
    async () => {
      const draw = randomOf(seed);
      const { restart, copied, recovered, finish } = await bed(['a']);
      await sleep(500 + draw(500));
      for (let round = 0; round < ROLLBACKS; round++) {
        const fallBack = await copied();
        await sleep(300 + draw(1_500));
        // Sometimes the pool restarts between copy and fall, so that a whole boot is unknown to the copy.
        if (draw(2) === 0) await restart('a');
        await sleep(draw(800));
        await fallBack();
        // Sometimes the next copy is of books that are not what they were yet.
        if (draw(3) === 0) await sleep(draw(2_500));
        else await recovered();
        console.log(`rollback ${round + 1} of ${ROLLBACKS}`);
      }
      await finish();
    },
  );

test(
  `two instances over Redis: database and Redis go back, and nothing that was answered is lost (seed ${seed})`,
  TIMEOUT,
  async () => {
    const draw = randomOf(seed + 1);
    const redis = await startRedisServer();
    onTestFinished(() => redis.stop());
    const { restart, join, copied, recovered, finish, log } = await bed(['a', 'b'], redis.url);
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
      const fault = (round + draw(2)) % faults.length;
      log.info('fault', { round, fault });
      await faults[fault]?.();
      await sleep(draw(800));
      await fallBack();
      // Its shares must not get into slices that were published before the fall.
      if (round === 0) await join('c');
      await sleep(draw(1_500));
      await faults[draw(faults.length)]?.();
      if (draw(3) !== 0) await recovered();
      console.log(`rollback ${round + 1} of ${ROLLBACKS}`);
    }
    await finish();
  },
);
