/**
 * Somebody who can read and write the pool's Redis (docs/security.md): he can take things away and repeat them, which costs delay;
 * he can make no share, ban, session or position of his own, and nothing he writes is run or believed.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { serialize } from 'node:v8';
import fc from 'fast-check';
import type { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { decode, encode } from '../../pool/shared/codec.ts';
import { connectRedis, redisKeys, redisReady } from '../../pool/shared/redis.ts';
import { RedisSharedState } from '../../pool/shared/redis-shared-state.ts';
import { waitingSession } from '../../pool/shared/session-codec.ts';
import type { News } from '../../pool/shared/shared-state.ts';
import { utf8 } from '../../protocol/bytes.ts';
import { ProtocolError } from '../../protocol/errors.ts';
import { seed } from '../level.ts';
import { type RedisServer, startRedisServer } from '../pool/redis-server.ts';
import { testSealed } from '../pool/sealed.ts';
import { waiting } from '../pool/waiting-session.ts';
import { quietLog } from '../quiet-log.ts';

let server: RedisServer;
beforeAll(async () => {
  server = await startRedisServer();
});
afterAll(() => server.stop());

async function connected(name: string): Promise<Redis> {
  const redis = connectRedis(server.url, name, quietLog);
  onTestFinished(() => redis.disconnect());
  await redisReady(redis, 5_000);
  return redis;
}

async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  for (const end = Date.now() + 15_000; Date.now() < end; await sleep(20)) if (await holds()) return;
  throw new Error('it did not happen in time');
}

const keysOf = (name: string) => redisKeys(`attack-${name}-${process.pid}`);

async function instance(name: string, sealed = testSealed()) {
  const [redis, subscriber] = [await connected('shared'), await connected('news')];
  const state = new RedisSharedState(
    { resumeMillis: 60_000, resumeSessions: 10 },
    { redis, subscriber, keys: keysOf(name), instance: `${Math.random()}`, ...sealed, log: quietLog, now: Date.now },
  );
  const heard: News[] = [];
  state.subscribe((news) => heard.push(news));
  await sleep(50);
  return { state, heard, ...sealed };
}

test('bans, news and figures of his own are not believed, and old news are not heard twice', async () => {
  const keys = keysOf('bans');
  const attacker = await connected('attacker');
  const listener = await connected('listener');
  const recorded: Buffer[] = [];
  await listener.subscribe(keys.news);
  listener.on('messageBuffer', (_channel: Buffer, message: Buffer) => recorded.push(message));
  const later = Date.now() + 600_000;
  await attacker.hset(keys.bans, '192.0.2.1', String(later));
  await attacker.hset(keys.instances, 'x', '{"instance":"x","atMillis":1e15,"connections":{"__proto__":1}}', 'y', '{');
  const [a, b] = [await instance('bans'), await instance('bans')];
  await attacker.publish(keys.news, JSON.stringify({ kind: 'ban', key: '192.0.2.2', untilMillis: later }));
  await attacker.publish(keys.news, testSealed({ secret: 'a guess' }).seal.seal('news', 'news', utf8('?')));
  await a.state.ban({ key: '192.0.2.3', untilMillis: later });
  await until(async () => (await b.state.bans()).length === 1);
  await a.state.unban('192.0.2.3');
  await until(async () => (await b.state.bans()).length === 0);
  await a.state.ban({ key: '192.0.2.3', untilMillis: later + 1 });
  await until(async () => (await b.state.bans()).length === 1);
  // The 'unban' of before, word for word.
  for (const message of recorded.slice()) await attacker.publish(keys.news, message);
  await sleep(100);
  expect(await a.state.bans()).toEqual([{ key: '192.0.2.3', untilMillis: later + 1 }]);
  expect(await b.state.bans()).toEqual([{ key: '192.0.2.3', untilMillis: later + 1 }]);
  expect(b.heard).toHaveLength(3);
  expect(await b.state.instances()).toEqual([]);
  expect(b.unread.counts.not_ours + b.unread.counts.other_format).toBeGreaterThanOrEqual(4);
});

test('a session that he writes is not taken up, and one that waits does not show its id', async () => {
  const keys = keysOf('sessions');
  const attacker = await connected('attacker');
  const { state, seal } = await instance('sessions');
  const id = 'ab'.repeat(16);
  await state.sessions.put(waiting(id));
  const [name = ''] = await attacker.keys(`${keys.session}*`);
  const value = (await attacker.getBuffer(name)) as Buffer;
  expect(name).not.toContain(id);
  expect(value.toString('latin1')).not.toContain(id);
  expect(value.includes(Buffer.from(id, 'hex'))).toBe(false);
  // Under another session's name it does not open: the names are not to be had without the key, but say he guessed one.
  const other = 'cd'.repeat(16);
  await attacker.set(`${keys.session}${seal.hiddenName('session', other)}`, value);
  expect(await state.sessions.take(other)).toBeNull();
  for (const forged of [
    serialize(waiting(other)),
    Buffer.alloc(0),
    Buffer.from(encode(waitingSession, waiting(other))),
  ]) {
    await attacker.set(`${keys.session}${seal.hiddenName('session', other)}`, forged);
    expect(await state.sessions.take(other)).toBeNull();
  }
  expect(await state.sessions.take(id)).toEqual(waiting(id));
  // The value of before, word for word, after its session was resumed: the jobs, and what was judged on them, do not come back.
  await attacker.set(name, value);
  expect(await state.sessions.take(id)).toEqual({ ...waiting(id), jobs: null });
});

test('the session codec reads back what it wrote, and answers anything else with a ProtocolError', () => {
  const { id: _id, jobs: _jobs, ...record } = waiting('ab');
  const whole = encode(waitingSession, record);
  expect(decode(waitingSession, whole)).toEqual(record);
  fc.assert(
    fc.property(fc.nat(whole.length - 1), fc.nat(255), fc.boolean(), (at, value, isCut) => {
      const changed = isCut ? whole.slice(0, at) : Uint8Array.from(whole);
      if (!isCut) changed[at] = value;
      try {
        const read = decode(waitingSession, changed);
        expect(Object.keys(read)).toEqual(Object.keys(decode(waitingSession, whole)));
      } catch (error) {
        expect(error).toBeInstanceOf(ProtocolError);
      }
    }),
    { seed, numRuns: 2_000 },
  );
});
