import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import type { EntrySource } from '../../pool/feed/entry-source.ts';
import { JournalKeep } from '../../pool/feed/journal-keep.ts';
import { LocalFeed } from '../../pool/feed/local-feed.ts';
import { Outbox } from '../../pool/feed/outbox.ts';
import { packEntries, unpackEntries } from '../../pool/feed/stream-message.ts';
import { StreamSender } from '../../pool/feed/stream-sender.ts';
import { StreamSource } from '../../pool/feed/stream-source.ts';
import { Journal, type JournalEntry } from '../../pool/journal/journal.ts';
import { redisKeys } from '../../pool/shared/redis.ts';
import { utf8 } from '../../protocol/bytes.ts';
import { ProtocolError } from '../../protocol/errors.ts';
import { createLogger, readLevelFilter } from '../../runtime/log/log.ts';
import { count, seed } from '../level.ts';
import { quietLog } from '../quiet-log.ts';
import { temporaryDirectory } from '../temporary.ts';
import { type RedisServer, startRedisServer } from './redis-server.ts';
import { testSealed } from './sealed.ts';

let redis: RedisServer;
beforeAll(async () => {
  redis = await startRedisServer();
});
afterAll(() => redis.stop());

/**
 * The rule of the books, in memory (books rule 11): at or below a boot's position nothing counts, and what does not join it is
 * refused. Like a database that is restored they can go back to what they were.
 */
class FakeBooks {
  through = new Map<string, number>();
  counted: string[] = [];
  refused = 0;
  lost = 0;
  term = 1;
  readonly reign = async () => `${this.term}.0`;
  readonly positions = async (boots: readonly string[]) =>
    new Map(boots.map((boot) => [boot, this.through.get(boot) ?? -1]));

  /** False, and nothing taken, when an entry does not join. */
  take(entries: readonly JournalEntry[]): boolean {
    const [through, counted] = [new Map(this.through), [...this.counted]];
    for (const { bootId, sequence, after = sequence - 1 } of entries) {
      const position = through.get(bootId) ?? -1;
      if (sequence <= position) continue;
      if (after > position) {
        this.refused++;
        return false;
      }
      this.lost += sequence - position - 1;
      through.set(bootId, sequence);
      counted.push(`${bootId}/${sequence}`);
    }
    [this.through, this.counted] = [through, counted];
    return true;
  }

  copy(): () => void {
    const [through, counted] = [new Map(this.through), [...this.counted]];
    return () => {
      [this.through, this.counted] = [new Map(through), [...counted]];
    };
  }
}

const boot = (n: number) => Uint8Array.of(n, 0, 0, 0, 0, 0, 0, n);

async function frontEnd(directory: string, n: number, memoryEntries: number) {
  const journal = await Journal.open({ directory, bootId: boot(n), segmentBytes: 2_000 });
  const outbox = await Outbox.open({ directory, bootId: journal.bootId, memoryEntries }, { log: quietLog });
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

test('the local feed counts everything once, through failures, restarts, a small memory and books that go back', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(
        fc.oneof(
          fc.record({ act: fc.constant('add' as const), n: fc.integer({ min: 1, max: 40 }) }),
          fc.record({ act: fc.constant('take' as const), n: fc.integer({ min: 1, max: 60 }) }),
          fc.record({ act: fc.constant('fail' as const), n: fc.integer({ min: 1, max: 60 }) }),
          fc.record({ act: fc.constantFrom('restart', 'copy', 'go back', 'keep'), n: fc.constant(0) }),
        ),
        { maxLength: 30 },
      ),
      async (acts) => {
        const directory = temporaryDirectory();
        const books = new FakeBooks();
        let goBack = books.copy();
        const kept: string[] = [];
        let boots = 1;
        const open = async () => {
          const front = await frontEnd(directory, boots++, 8);
          const feed: EntrySource = new LocalFeed(front.outbox, books);
          await feed.begin();
          const options = { directory, keepMillis: 1e9, maxBytes: 1e9 };
          return { ...front, feed, keep: new JournalKeep(options, { ...front, log: quietLog, now: Date.now }) };
        };
        let front = await open();
        const take = async (n: number): Promise<boolean> => {
          const taken = await front.feed.take(n, 0);
          if (books.take(taken.entries)) await taken.committed();
          else await front.feed.begin();
          return taken.entries.length > 0;
        };
        for (const { act, n } of acts) {
          if (act === 'add') await front.add(n);
          else if (act === 'take') await take(n);
          else if (act === 'copy') goBack = books.copy();
          else if (act === 'go back') goBack();
          else if (act === 'keep') await front.keep.round();
          else if (act === 'fail') {
            const taken = await front.feed.take(n, 0);
            // The transaction failed, or committed and its answer was lost.
            if (n % 2 === 0) books.take(taken.entries);
            await front.feed.begin();
          } else {
            await front.journal.close();
            kept.push(...front.kept);
            front = await open();
          }
        }
        // An accountant that starts anew; without a notice that the database went back.
        goBack();
        await front.feed.begin();
        while (await take(1000));
        kept.push(...front.kept);
        expect([...books.counted].sort()).toEqual([...kept].sort());
        expect([front.outbox.waiting, books.lost]).toEqual([0, 0]);
        expect(await front.feed.isCaughtUp()).toBe(true);
        await front.journal.close();
      },
    ),
    { numRuns: count({ quick: 20, full: 60, deep: 1000 }), seed },
  );
});

test('a journal that lost a part says so, and the rest of it counts', async () => {
  const directory = temporaryDirectory();
  const books = new FakeBooks();
  const front = await frontEnd(directory, 1, 8);
  for (let i = 0; i < 30; i++) await front.add(10);
  await front.journal.close();
  const segments = (await readdir(join(directory, front.journal.bootId))).sort();
  expect(segments.length).toBeGreaterThan(3);
  await rm(join(directory, front.journal.bootId, segments[1] as string));
  const second = await frontEnd(directory, 2, 8);
  const feed = new LocalFeed(second.outbox, books);
  await feed.begin();
  for (let taken = await feed.take(50, 0); taken.entries.length > 0; taken = await feed.take(50, 0)) {
    expect(books.take(taken.entries)).toBe(true);
    await taken.committed();
  }
  const missing = segments.slice(1, 3).map((name) => Number(name.slice(0, 16))) as [number, number];
  expect(books.lost).toBe(missing[1] - missing[0]);
  expect(books.counted.length).toBe(300 - books.lost);
  // The newest files go as well, unseen: nobody waits for them for ever.
  books.through.clear();
  for (const name of segments.slice(2)) await rm(join(directory, front.journal.bootId, name));
  await feed.begin();
  books.counted = [];
  for (let taken = await feed.take(500, 0); taken.entries.length > 0; taken = await feed.take(500, 0)) {
    books.take(taken.entries);
    await taken.committed();
  }
  expect(books.counted.length).toBe(missing[0]);
  expect(second.outbox.waiting).toBe(0);
});

test('stream messages survive packing, and damaged ones are refused', () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.nat(), fc.uint8Array({ maxLength: 60 }))), fc.nat(), (rows, cut) => {
      const entries = rows.map(([sequence, record]) => ({ bootId: 'b', sequence, record }));
      const packed = packEntries(entries);
      const before = (entries[0]?.sequence ?? 0) - 1;
      expect(unpackEntries({ bootId: 'b', after: before }, packed)).toEqual(entries);
      const [first, ...rest] = entries;
      if (first !== undefined)
        expect(unpackEntries({ bootId: 'b', after: before - 1 }, packed)).toEqual([
          { ...first, after: before - 1 },
          ...rest,
        ]);
      try {
        unpackEntries({ bootId: 'b', after: before }, packed.subarray(0, cut % (packed.length + 1)));
      } catch (error) {
        expect(error).toBeInstanceOf(ProtocolError);
      }
    }),
    { seed },
  );
});

test('three front ends, two accountants, a Redis that forgets or goes back, a database that goes back: each entry counts once', async () => {
  const keys = redisKeys(`test-${process.pid}`);
  const books = new FakeBooks();
  const fronts = await Promise.all([1, 2, 3].map((n) => frontEnd(temporaryDirectory(), n, 100)));
  const senders = await Promise.all(
    fronts.map(async ({ outbox }, i) => {
      const connection = await redis.connect(`front-${i}`);
      const sender = new StreamSender(
        { keys, batchEntries: 7, maxAhead: 60, pollMillis: 10, positionMillis: 30 },
        { redis: connection, outbox, positions: books.positions, reign: books.reign, ...testSealed(), log: quietLog },
      );
      return { sender, connection };
    }),
  );
  const open = async (consumer: string) => {
    const connection = await redis.connect(consumer);
    return new StreamSource(
      { keys, consumer, messageEntries: 7, reportMillis: 100 },
      {
        redis: connection,
        positions: books.positions,
        reign: books.reign,
        ...testSealed(),
        log: quietLog,
        now: Date.now,
      },
    );
  };
  let source = await open('first');
  const others: EntrySource[] = [];
  await source.begin();
  const take = async (max: number, wait: number) => {
    const taken = await source.take(max, wait);
    if (books.take(taken.entries)) await taken.committed();
    else await source.begin();
  };
  const rounds = count({ quick: 60, full: 90, deep: 600 });
  const at = (part: number) => Math.floor(rounds * part);
  let goBack = books.copy();
  for (let round = 0; round < rounds; round++) {
    for (const front of fronts) await front.add(1 + (round % 5));
    if (round % 7 === 3) {
      // Fails after the books took it or before: the same entries come again either way.
      const taken = await source.take(100, 20);
      if (round % 2 === 0) books.take(taken.entries);
      await source.begin();
      continue;
    }
    await take(100, 20);
    if (round === at(0.2)) await redis.save();
    if (round === at(0.3)) {
      // Another accountant: the old one holds messages that it read and never finished.
      await source.take(30, 20);
      others.push(source);
      source = await open('second');
      await source.begin();
    }
    if (round === at(0.4)) goBack = books.copy();
    // Without a notice to the accountant or the front ends.
    if (round === at(0.6)) goBack();
    if (round === at(0.5) || round === rounds - 2) {
      await redis.kill();
      for (const front of fronts) await front.add(3);
      await redis.start();
    }
    if (round === at(0.8)) await redis.restore();
  }
  const kept = fronts.flatMap((front) => front.kept);
  const caughtUp = async () => {
    const isEverything = () =>
      fronts.every((front) => front.outbox.waiting === 0) && books.counted.length >= kept.length;
    for (const end = Date.now() + 240_000; !isEverything() && Date.now() < end; ) await take(1_000, 50);
    expect([...books.counted].sort()).toEqual([...kept].sort());
  };
  await caughtUp();
  // All is quiet when the database goes back: nothing is on its way that could show it, and it is made up for all the same.
  goBack();
  expect(books.counted.length).toBeLessThan(kept.length);
  await caughtUp();
  expect(books.lost).toBe(0);
  await source.begin();
  await expect.poll(() => source.isCaughtUp()).toBe(true);
  const boot1 = fronts[0]?.journal.bootId as string;
  expect([await source.mayTell(boot1), await source.mayTell('nobody')]).toEqual([false, false]);
  books.through.set(boot1, 0);
  expect(await source.mayTell(boot1)).toBe(true);
  await Promise.all(senders.map(({ sender }) => sender.close()));
  for (const each of [source, ...others]) await each.close();
  await Promise.all(fronts.map((front) => front.journal.close()));
});

test('entries sent for an earlier term, which a Redis that went back brings again, are taken as they are sent for this one', async () => {
  const keys = redisKeys(`test-reign-${process.pid}`);
  const books = new FakeBooks();
  const front = await frontEnd(temporaryDirectory(), 9, 100);
  // The last mark that the front end knows: what follows is in the next slice, as far as it can tell.
  const known = (slice: number, through: number) =>
    front.outbox.marks.look(async () => new Map([[front.journal.bootId, [{ slice, through }]]]));
  await known(4, -1);
  const common = { positions: books.positions, reign: books.reign, ...testSealed(), log: quietLog };
  const sending = await redis.connect('front');
  const sender = new StreamSender(
    { keys, batchEntries: 7, pollMillis: 10, positionMillis: 30 },
    { ...common, redis: sending, outbox: front.outbox },
  );
  onTestFinished(() => sender.close());
  const source = new StreamSource(
    { keys, consumer: 'a' },
    { ...common, redis: await redis.connect('a'), now: Date.now },
  );
  await front.add(3);
  await expect.poll(() => sending.xlen(keys.feed)).toBe(1);
  // Before they were taken in, slice 5 closed: they were in slice 6, and the front end has read so.
  await known(5, -1);
  await known(6, 2);
  books.term++;
  await source.begin();
  const slices: (number | undefined)[] = [];
  for (const end = Date.now() + 240_000; slices.length < 3 && Date.now() < end; ) {
    const taken = await source.take(100, 20);
    for (const { slice, sequence } of taken.entries) if (sequence === slices.length) slices.push(slice);
    books.take(taken.entries);
    await taken.committed();
  }
  expect(slices).toEqual([6, 6, 6]);
});

test('what is new in the stream is read as it comes, and nothing has to be claimed back for it', async () => {
  const keys = redisKeys(`test-read-${process.pid}`);
  const books = new FakeBooks();
  const front = await frontEnd(temporaryDirectory(), 10, 100);
  const lines: string[] = [];
  const options = { filter: readLevelFilter('debug'), format: 'text' } as const;
  const sink = { write: (line: string) => void lines.push(line), flush: () => undefined, close: () => undefined };
  const log = createLogger('test', options, { sink, now: Date.now });
  const common = { positions: books.positions, reign: books.reign, ...testSealed(), log };
  const sender = new StreamSender(
    { keys, batchEntries: 7, pollMillis: 10, positionMillis: 30 },
    { ...common, redis: await redis.connect('front'), outbox: front.outbox },
  );
  onTestFinished(() => sender.close());
  const source = new StreamSource(
    { keys, consumer: 'a' },
    { ...common, redis: await redis.connect('a'), now: Date.now },
  );
  await source.begin();
  // Makes the group.
  await source.take(100, 20);
  for (let round = 0; round < 5; round++) {
    const reading = source.take(100, 120_000);
    await front.add(3);
    const taken = await reading;
    expect(taken.entries.map(({ sequence }) => sequence)).toEqual([3 * round, 3 * round + 1, 3 * round + 2]);
    books.take(taken.entries);
    await taken.committed();
  }
  expect(lines).toEqual([]);
});

test('a front end that the database does not answer still says what its journal holds, so rewards wait for the finders in it', async () => {
  const keys = redisKeys(`test-silent-database-${process.pid}`);
  const books = new FakeBooks();
  const front = await frontEnd(temporaryDirectory(), 10, 100);
  const common = { ...testSealed(), log: quietLog };
  const silent = new Promise<never>(() => undefined);
  const sender = new StreamSender(
    { keys, pollMillis: 10, positionMillis: 30 },
    {
      ...common,
      redis: await redis.connect('front'),
      outbox: front.outbox,
      positions: () => silent,
      reign: async () => '1',
    },
  );
  const source = new StreamSource(
    { keys, consumer: 'a', reportMillis: 0 },
    { ...common, positions: books.positions, reign: books.reign, redis: await redis.connect('a'), now: Date.now },
  );
  await source.begin();
  await front.add(3);
  await expect.poll(() => source.mayTell(front.journal.bootId)).toBe(true);
  // It is not waited for: a question to the database stays open.
  void sender.close();
});
