import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { EntrySource, TakenEntries } from '../../pool/feed/entry-source.ts';
import { LocalFeed } from '../../pool/feed/local-feed.ts';
import { Outbox } from '../../pool/feed/outbox.ts';
import { packEntries, unpackEntries } from '../../pool/feed/stream-message.ts';
import { StreamSender } from '../../pool/feed/stream-sender.ts';
import { StreamSource } from '../../pool/feed/stream-source.ts';
import { Journal, type JournalEntry } from '../../pool/journal.ts';
import { connectRedis, redisKeys, redisReady } from '../../pool/shared/redis.ts';
import { utf8 } from '../../protocol/bytes.ts';
import { ProtocolError } from '../../protocol/errors.ts';
import { count, seed } from '../level.ts';
import { quietLog } from '../quiet-log.ts';
import { temporaryDirectory } from '../temporary.ts';
import { type RedisServer, startRedisServer } from './redis-server.ts';

let redis: RedisServer;
beforeAll(async () => {
  redis = await startRedisServer();
});
afterAll(() => redis.stop());

/** The rule of the books, in memory: at or below a boot's position nothing counts, and the position only grows. */
class FakePositions {
  readonly through = new Map<string, number>();
  readonly counted: string[] = [];
  readonly positions = async (boots: readonly string[]) =>
    new Map(boots.map((boot) => [boot, this.through.get(boot) ?? -1]));

  take(entries: readonly JournalEntry[]): void {
    for (const { bootId, sequence } of entries) {
      if (sequence <= (this.through.get(bootId) ?? -1)) continue;
      this.through.set(bootId, sequence);
      this.counted.push(`${bootId}/${sequence}`);
    }
  }
}

const boot = (n: number) => Uint8Array.of(n, 0, 0, 0, 0, 0, 0, n);

async function frontEnd(directory: string, n: number, memoryEntries: number) {
  const journal = await Journal.open({ directory, bootId: boot(n), segmentBytes: 2_000 });
  const outbox = await Outbox.open(
    { directory, bootId: journal.bootId, memoryEntries, dropEvery: 50 },
    { log: quietLog },
  );
  const kept: string[] = [];
  const add = async (size: number) => {
    const records = Array.from({ length: size }, (_, i) => utf8(`record ${journal.nextSequence + i}`));
    const first = await journal.append(records);
    const entries = records.map((record, i) => ({ bootId: journal.bootId, sequence: first + i, record }));
    outbox.push(entries);
    kept.push(...entries.map(({ bootId, sequence }) => `${bootId}/${sequence}`));
  };
  return { journal, outbox, kept, add };
}

test('the local feed counts everything once, through failures, a small memory and restarts', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(
        fc.oneof(
          fc.record({ act: fc.constant('add' as const), n: fc.integer({ min: 1, max: 40 }) }),
          fc.record({ act: fc.constant('take' as const), n: fc.integer({ min: 1, max: 60 }) }),
          fc.record({ act: fc.constant('fail' as const), n: fc.integer({ min: 1, max: 60 }) }),
          fc.record({ act: fc.constant('restart' as const), n: fc.constant(0) }),
        ),
        { maxLength: 30 },
      ),
      async (acts) => {
        const directory = temporaryDirectory();
        const books = new FakePositions();
        const kept: string[] = [];
        let boots = 1;
        let front = await frontEnd(directory, boots, 8);
        let feed: EntrySource = new LocalFeed(front.outbox);
        const take = async (n: number): Promise<TakenEntries> => await feed.take(n, 0);
        for (const { act, n } of acts) {
          if (act === 'add') await front.add(n);
          else if (act === 'restart') {
            await front.journal.close();
            kept.push(...front.kept);
            front = await frontEnd(directory, ++boots, 8);
            feed = new LocalFeed(front.outbox);
            await feed.begin();
          } else {
            const taken = await take(n);
            if (act === 'fail') {
              // The transaction failed, or committed and its answer was lost.
              if (n % 2 === 0) books.take(taken.entries);
              await feed.begin();
            } else {
              books.take(taken.entries);
              await taken.committed();
            }
          }
        }
        for (let taken = await take(1000); taken.entries.length > 0; taken = await take(1000)) {
          books.take(taken.entries);
          await taken.committed();
        }
        kept.push(...front.kept);
        expect([...books.counted].sort()).toEqual([...kept].sort());
        expect(front.outbox.waiting).toBe(0);
        await front.journal.close();
      },
    ),
    { numRuns: count({ quick: 20, full: 60, deep: 1000 }), seed },
  );
});

test('stream messages survive packing, and damaged ones are refused', () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.nat(), fc.uint8Array({ maxLength: 60 }))), fc.nat(), (rows, cut) => {
      const entries = rows.map(([sequence, record]) => ({ bootId: 'b', sequence, record }));
      const packed = packEntries(entries);
      expect(unpackEntries('b', packed)).toEqual(entries);
      try {
        unpackEntries('b', packed.subarray(0, cut % (packed.length + 1)));
      } catch (error) {
        expect(error).toBeInstanceOf(ProtocolError);
      }
    }),
    { seed },
  );
});

test('three front ends, two accountants in turn, a Redis that forgets everything twice: each entry counts once', async () => {
  const keys = redisKeys(`test-${process.pid}`);
  const books = new FakePositions();
  const fronts = await Promise.all([1, 2, 3].map((n) => frontEnd(temporaryDirectory(), n, 100)));
  const senders = await Promise.all(
    fronts.map(async ({ outbox }, i) => {
      const connection = connectRedis(redis.url, `front-${i}`, quietLog);
      await redisReady(connection, 5_000);
      const sender = new StreamSender(
        { keys, batchEntries: 7, maxAhead: 60, pollMillis: 10 },
        { redis: connection, outbox, log: quietLog },
      );
      return { sender, connection };
    }),
  );
  const open = async (consumer: string) => {
    const connection = connectRedis(redis.url, consumer, quietLog);
    await redisReady(connection, 5_000);
    return new StreamSource(
      { keys, consumer, messageEntries: 7 },
      { redis: connection, positions: books.positions, log: quietLog, now: Date.now },
    );
  };
  let source = await open('first');
  const others: EntrySource[] = [];
  await source.begin();
  const rounds = count({ quick: 60, full: 90, deep: 600 });
  for (let round = 0; round < rounds; round++) {
    for (const front of fronts) await front.add(1 + (round % 5));
    const taken = await source.take(100, 20);
    if (round % 7 === 3) {
      // Fails after the books took it or before: the same entries come again either way.
      if (round % 2 === 0) books.take(taken.entries);
      await source.begin();
      continue;
    }
    books.take(taken.entries);
    await taken.committed();
    if (round === Math.floor(rounds / 3)) {
      // Another accountant: the old one holds messages that it read and never finished.
      await source.take(30, 20);
      others.push(source);
      source = await open('second');
      await source.begin();
    }
    if (round === Math.floor(rounds / 2) || round === rounds - 2) {
      await redis.kill();
      for (const front of fronts) await front.add(3);
      await redis.start();
    }
  }
  const kept = fronts.flatMap((front) => front.kept);
  const end = Date.now() + 30_000;
  while (fronts.some((front) => front.outbox.waiting > 0) && Date.now() < end) {
    const taken = await source.take(1_000, 50);
    books.take(taken.entries);
    await taken.committed();
  }
  expect([...books.counted].sort()).toEqual([...kept].sort());
  await Promise.all(senders.map(({ sender }) => sender.close()));
  for (const { connection } of senders) connection.disconnect();
  for (const each of [source, ...others]) await each.close();
  await Promise.all(fronts.map((front) => front.journal.close()));
});
