/**
 * Somebody who can read and write the pool's Redis (docs/security.md): he can take things away and repeat them, which costs delay;
 * he can make no share, ban, session or position of his own, and nothing he writes is run or believed.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { serialize } from 'node:v8';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { Outbox } from '../../pool/feed/outbox.ts';
import { packEntries } from '../../pool/feed/stream-message.ts';
import { StreamSender } from '../../pool/feed/stream-sender.ts';
import { StreamSource } from '../../pool/feed/stream-source.ts';
import { Journal, type JournalEntry } from '../../pool/journal/journal.ts';
import { decode, encode } from '../../pool/shared/codec.ts';
import { redisKeys } from '../../pool/shared/redis.ts';
import { RedisSharedState } from '../../pool/shared/redis-shared-state.ts';
import { waitingSession } from '../../pool/shared/session-codec.ts';
import type { News } from '../../pool/shared/shared-state.ts';
import { utf8 } from '../../protocol/bytes.ts';
import { ProtocolError } from '../../protocol/errors.ts';
import { createLogger, readLevelFilter } from '../../runtime/log/log.ts';
import { pattern } from '../../vectors/generate/pattern.ts';
import { seed } from '../level.ts';
import { type RedisServer, startRedisServer } from '../pool/redis-server.ts';
import { testSealed } from '../pool/sealed.ts';
import { waiting } from '../pool/waiting-session.ts';
import { quietLog } from '../quiet-log.ts';
import { temporaryDirectory } from '../temporary.ts';
import { until } from '../until.ts';

let server: RedisServer;
beforeAll(async () => {
  server = await startRedisServer();
});
afterAll(() => server.stop());

const keysOf = (name: string) => redisKeys(`attack-${name}-${process.pid}`);

/** How far the books have each boot, as the database would tell. */
class Books {
  readonly through = new Map<string, number>();
  readonly counted: string[] = [];
  readonly positions = async (boots: readonly string[]) =>
    new Map(boots.map((boot) => [boot, this.through.get(boot) ?? -1]));
  readonly reign = async () => 'one';
}

/** The accountant's end of the stream, with books in memory. */
async function accountant(name: string, { through, counted, positions, reign }: Books, sealed = testSealed()) {
  const source = new StreamSource(
    { keys: keysOf(name), consumer: 'accountant' },
    {
      redis: await server.connect('accountant'),
      positions,
      reign,
      ...sealed,
      log: quietLog,
      now: Date.now,
    },
  );
  await source.begin();
  const round = async () => {
    const taken = await source.take(1_000, 20);
    for (const { bootId, sequence } of taken.entries) {
      if (sequence <= (through.get(bootId) ?? -1)) continue;
      through.set(bootId, sequence);
      counted.push(`${bootId}/${sequence}`);
    }
    await taken.committed();
  };
  return { round, unread: sealed.unread };
}

async function frontEnd(name: string, { positions, reign }: Books, sealed = testSealed()) {
  const directory = temporaryDirectory();
  const journal = await Journal.open({ directory, bootId: Uint8Array.of(7, 0, 0, 0, 0, 0, 0, 7), segmentBytes: 500 });
  const outbox = await Outbox.open({ directory, bootId: journal.bootId }, { log: quietLog });
  const sender = new StreamSender(
    { keys: keysOf(name), batchEntries: 5, pollMillis: 10, positionMillis: 50 },
    { redis: await server.connect('front end'), outbox, positions, reign, ...sealed, log: quietLog },
  );
  onTestFinished(async () => {
    await sender.close();
    await journal.close();
  });
  const kept: string[] = [];
  const add = async (size: number) => {
    const records = Array.from({ length: size }, (_, i) => utf8(`record ${journal.nextSequence + i}`));
    const first = await journal.append(records);
    const entries: JournalEntry[] = records.map((record, i) => ({
      bootId: journal.bootId,
      sequence: first + i,
      record,
    }));
    outbox.push(entries);
    kept.push(...entries.map(({ bootId, sequence }) => `${bootId}/${sequence}`));
  };
  return { bootId: journal.bootId, outbox, add, kept };
}

test('shares that no front end sealed are not counted, in whichever form they come', async () => {
  const keys = keysOf('forged');
  const books = new Books();
  const { round, unread } = await accountant('forged', books);
  const attacker = await server.connect('attacker');
  await round();
  const boot = 'aa'.repeat(8);
  const packed = Buffer.from(packEntries([{ bootId: boot, sequence: 0, record: utf8('a million hashes') }]));
  const foreign = testSealed({ secret: 'a guess' }).seal.seal('entries', `${boot} -1`, packed);
  // A true message of this pool, for another boot and another place.
  const moved = testSealed().seal.seal('entries', `${'bb'.repeat(8)} -1`, packed);
  for (const value of [packed, foreign, moved, Buffer.alloc(0), Buffer.alloc(33, 1), Buffer.alloc(100_000, 255)])
    await attacker.xadd(keys.feed, '*', 'boot', boot, 'after', '-1', 'entries', value);
  await attacker.xadd(keys.feed, '*', 'nothing', 'of this');
  for (let i = 0; i < 5; i++) await round();
  expect(books.counted).toEqual([]);
  // They are gone: nothing that cannot be read stays to be read again.
  expect(await attacker.xlen(keys.feed)).toBe(0);
  expect(Object.values(unread.counts).reduce((sum, n) => sum + n)).toBe(7);
});

test('a true message sent again counts nothing, one removed is sent again, and false reports of gaps are not obeyed', async () => {
  const keys = keysOf('writer');
  const books = new Books();
  const front = await frontEnd('writer', books);
  const { round } = await accountant('writer', books);
  const attacker = await server.connect('attacker');
  await front.add(20);
  await until(async () => (await attacker.xlen(keys.feed)) > 0);
  const copies = (await attacker.xrangeBuffer(keys.feed, '-', '+')) as [Buffer, Buffer[]][];
  await attacker.del(keys.feed);
  // A report that the books are far ahead: a front end that believed it would never send these entries again.
  await attacker.hset(keys.gaps, front.bootId, '1000000 word');
  await attacker.hset(keys.lasts, 'ff'.repeat(8), '1000000 1');
  await sleep(100);
  expect(front.outbox.waiting).toBe(20);
  await until(async () => {
    await round();
    return front.outbox.waiting === 0;
  });
  for (const [, fields] of copies) await attacker.xadd(keys.feed, '*', ...fields);
  for (let i = 0; i < 3; i++) await round();
  expect(books.counted.sort()).toEqual(front.kept.sort());
});

test('an accountant of another format leaves shares alone and says so; they are counted when it is replaced', async () => {
  const lines: string[] = [];
  const log = createLogger(
    'test',
    { filter: readLevelFilter('info'), format: 'text' },
    { sink: { write: (line) => void lines.push(line), flush: () => {}, close: () => {} }, now: Date.now },
  );
  const books = new Books();
  const front = await frontEnd('format', books);
  const old = await accountant('format', books, testSealed({ format: 99, log }));
  await front.add(12);
  const told = () => lines.filter((line) => line.includes('another release') && line.includes('what=entries'));
  await until(() => old.round().then(() => told().length > 0));
  for (let i = 0; i < 10; i++) await old.round();
  expect(books.counted).toEqual([]);
  expect(front.outbox.waiting).toBe(12);
  expect(told()).toHaveLength(1);
  expect(told()[0]).toMatch(/run the same release in all instances/);
  const fresh = await accountant('format', books);
  await until(async () => {
    await fresh.round();
    return front.outbox.waiting === 0;
  });
  expect(books.counted.sort()).toEqual(front.kept.sort());
});

test('a database with another secret, as after a restore: what was sealed with the old one is sent again', async () => {
  const books = new Books();
  const [sending, reading] = [testSealed({ secret: 'before' }), testSealed({ secret: 'before' })];
  const front = await frontEnd('secret', books, sending);
  const { round } = await accountant('secret', books, reading);
  await front.add(5);
  const attacker = await server.connect('attacker');
  await until(async () => (await attacker.xlen(keysOf('secret').feed)) > 0);
  reading.seal.replaceSecret(pattern('after', 32));
  for (let i = 0; i < 3; i++) await round();
  expect(books.counted).toEqual([]);
  sending.seal.replaceSecret(pattern('after', 32));
  await until(async () => {
    await round();
    return front.outbox.waiting === 0;
  });
  expect(books.counted.sort()).toEqual(front.kept.sort());
});

/** Instances of each name that listen to its news. */
const subscribers = new Map<string, number>();
async function instance(name: string, sealed = testSealed()) {
  const [redis, subscriber] = [await server.connect('shared'), await server.connect('news')];
  const state = new RedisSharedState(
    { resumeMillis: 60_000, resumeSessions: 10 },
    { redis, subscriber, keys: keysOf(name), instance: `${Math.random()}`, ...sealed, log: quietLog, now: Date.now },
  );
  const heard: News[] = [];
  state.subscribe((news) => heard.push(news));
  const news = keysOf(name).news;
  const listeners = async () => (await redis.pubsub('NUMSUB', news))[1] as number;
  subscribers.set(name, (subscribers.get(name) ?? 0) + 1);
  await until(async () => (await listeners()) >= (subscribers.get(name) as number));
  return { state, heard, ...sealed };
}

test('bans, news and figures of his own are not believed, and old news are not heard twice', async () => {
  const keys = keysOf('bans');
  const attacker = await server.connect('attacker');
  const listener = await server.connect('listener');
  const recorded: Buffer[] = [];
  await listener.subscribe(keys.news);
  subscribers.set('bans', 1);
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
  await expect.poll(() => b.unread.counts.not_ours + b.unread.counts.other_format).toBeGreaterThanOrEqual(4);
  await sleep(100);
  expect(await a.state.bans()).toEqual([{ key: '192.0.2.3', untilMillis: later + 1 }]);
  expect(await b.state.bans()).toEqual([{ key: '192.0.2.3', untilMillis: later + 1 }]);
  expect(b.heard).toHaveLength(3);
  expect(await b.state.instances()).toEqual([]);
});

test('a session that he writes is not taken up, and one that waits does not show its id', async () => {
  const keys = keysOf('sessions');
  const attacker = await server.connect('attacker');
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
