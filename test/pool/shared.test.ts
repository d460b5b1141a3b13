import { afterAll, beforeAll, expect, test } from 'vitest';
import { count, encode } from '../../pool/shared/codec.ts';
import { redisKeys } from '../../pool/shared/redis.ts';
import { RedisSharedState } from '../../pool/shared/redis-shared-state.ts';
import { type InstanceFigures, LocalSharedState, type News } from '../../pool/shared/shared-state.ts';
import { quietLog } from '../quiet-log.ts';
import { until } from '../until.ts';
import { type RedisServer, startRedisServer } from './redis-server.ts';
import { testSealed } from './sealed.ts';
import { waiting } from './waiting-session.ts';

let server: RedisServer;
beforeAll(async () => {
  server = await startRedisServer();
});
afterAll(() => server.stop());

const shelf = { resumeMillis: 60_000, resumeSessions: 10 };
const figures = (instance: string): InstanceFigures => ({
  instance,
  name: 'pool',
  version: '1',
  startedMillis: 0,
  atMillis: Date.now(),
  accountant: false,
  ready: true,
  height: 1,
  connections: { pplns: 2 },
  accepted: 1,
  rejected: 0,
  waiting: 0,
});

let instances = 0;
/** Subscribers of each prefix. */
const listeners = new Map<string, number>();
async function open(prefix: string) {
  listeners.set(prefix, (listeners.get(prefix) ?? 0) + 1);
  const redis = await server.connect('a');
  const subscriber = await server.connect('b');
  const state = new RedisSharedState(shelf, {
    redis,
    subscriber,
    keys: redisKeys(prefix),
    instance: `instance ${++instances}`,
    ...testSealed(),
    log: quietLog,
    now: Date.now,
  });
  const heard: News[] = [];
  state.subscribe((news) => heard.push(news));
  // News are heard from when Redis has both the connection and its subscription.
  await until(
    async () => ((await redis.pubsub('NUMSUB', redisKeys(prefix).news))[1] as number) >= (listeners.get(prefix) ?? 0),
  );
  return { state, heard, redis, subscriber };
}

test('a single instance keeps its own bans, sessions and news', async () => {
  let now = 0;
  const state = new LocalSharedState(shelf, () => now);
  const heard: News[] = [];
  state.subscribe((news) => heard.push(news));
  await state.ban({ key: '10.0.0.1', untilMillis: 100 });
  expect(await state.bans()).toEqual([{ key: '10.0.0.1', untilMillis: 100 }]);
  now = 100;
  expect(await state.bans()).toEqual([]);
  await state.sessions.put(waiting('s'));
  expect((await state.sessions.take('s'))?.work).toBe(1n << 100n);
  expect(await state.sessions.take('s')).toBeNull();
  await state.report(figures('one'));
  expect(await state.instances()).toHaveLength(1);
  expect(heard).toHaveLength(1);
});

test('instances share bans, news and figures, and a session is taken by one of them only', async () => {
  const [a, b] = [await open('share'), await open('share')];
  const untilMillis = Date.now() + 60_000;
  await a.state.ban({ key: '10.0.0.2', untilMillis });
  await until(async () => (await b.state.bans()).length === 1);
  // Once as news, and once more where it is read from Redis at the same time.
  await expect.poll(() => b.heard).toContainEqual({ kind: 'ban', key: '10.0.0.2', untilMillis });
  // A third one that comes later learns of it.
  const c = await open('share');
  await until(async () => (await c.state.bans()).length === 1);
  expect(await b.state.unban('10.0.0.2')).toBe(true);
  await until(async () => (await a.state.bans()).length === 0);
  await a.state.sessions.put(waiting('s'));
  const taken = await Promise.all([a, b, c].map(({ state }) => state.sessions.take('s')));
  // Its jobs are given back only where it was served.
  const { jobs } = waiting('s');
  expect(taken.filter((record) => record !== null)).toEqual([
    { ...waiting('s'), jobs: taken[0] === null ? null : jobs },
  ]);
  await a.state.report(figures('a'));
  await b.state.report(figures('b'));
  expect((await b.state.instances()).map((each) => each.instance).sort()).toEqual(['a', 'b']);
  for (const each of [a, b, c]) await each.state.close();
});

test('bans that are over leave Redis, also where no instance knows of them any more', async () => {
  const here = await open('over');
  const { seal } = testSealed();
  for (const [key, untilMillis] of [
    ['10.0.0.5', Date.now() - 1],
    ['10.0.0.6', Date.now() + 60_000],
  ] as const)
    await here.redis.hset(redisKeys('over').bans, key, seal.seal('ban', key, encode(count, untilMillis)));
  expect(await here.state.bans()).toEqual([]);
  expect(await here.redis.hkeys(redisKeys('over').bans)).toEqual(['10.0.0.6']);
  await here.state.close();
});

test('an instance learns of a ban that another made while it heard no news', async () => {
  const [a, b] = [await open('deaf'), await open('deaf')];
  b.subscriber.disconnect();
  await until(() => b.subscriber.status === 'end');
  await a.state.ban({ key: '10.0.0.4', untilMillis: Date.now() + 60_000 });
  expect(await b.state.bans()).toHaveLength(0);
  await b.subscriber.connect();
  await until(async () => (await b.state.bans()).length === 1);
  for (const each of [a, b]) await each.state.close();
});

test('while Redis is away each goes on alone, and bans are shared again when it is back', async () => {
  const [a, b] = [await open('away'), await open('away')];
  await server.kill();
  await until(() => a.redis.status !== 'ready' && b.redis.status !== 'ready');
  const untilMillis = Date.now() + 60_000;
  await a.state.ban({ key: '10.0.0.3', untilMillis });
  expect(await a.state.bans()).toHaveLength(1);
  expect(a.heard).toHaveLength(1);
  await a.state.sessions.put(waiting('local'));
  expect(await b.state.sessions.take('local')).toBeNull();
  await a.state.report(figures('a'));
  expect(await a.state.instances()).toHaveLength(1);
  await server.start();
  await until(async () => (await b.state.bans()).length === 1);
  expect((await a.state.sessions.take('local'))?.id).toBe('local');
  for (const each of [a, b]) await each.state.close();
});
