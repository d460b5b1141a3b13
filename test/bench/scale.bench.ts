/**
 * How many shares a second the books keep up with: the streams of 50 front ends in a real Redis, read and booked as an accountant does
 * (its end of the stream, its intake, its transactions in a real PostgreSQL). The rate is raised until the books fall behind by
 * more than a second; then the front ends stop, and what waits shows how fast the books are with the machine for themselves.
 * `npm run bench -- scale front-ends=50 linger=20 accounts=10000 seconds=5`; linger is the time in ms that a front end gathers
 * shares for a message.
 */
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { positionsOf, reignOf } from '../../pool/feed/positions.ts';
import { StreamSource } from '../../pool/feed/stream-source.ts';
import { redisKeys } from '../../pool/shared/redis.ts';
import { Seal } from '../../pool/shared/seal.ts';
import { UnreadValues } from '../../pool/shared/unread-values.ts';
import { openBooks } from '../pool/books-bed.ts';
import { startRedisServer } from '../pool/redis-server.ts';
import { quietLog } from '../quiet-log.ts';
import { bench } from './harness.ts';
import { Asked } from './stratum/asked.ts';

/** As the accountant takes them (pool/accountant/term-runner.ts). */
const BATCH_ENTRIES = 5_000;
const WAIT_MILLIS = 250;
const RATES = [1_000, 2_000, 3_000, 4_000, 6_000, 8_000, 10_000, 12_500, 15_000, 20_000, 25_000, 30_000, 40_000];

type Sent = { readonly sent: number; readonly messages: number; readonly failed: number };

export default bench('shares of many front ends through Redis into the books', async (b) => {
  const word = (name: string, or: number): number =>
    Number(b.words.find((each) => each.startsWith(`${name}=`))?.slice(name.length + 1) ?? or);
  const [frontEnds, linger, accounts, seconds] = [
    word('front-ends', 50),
    word('linger', 20),
    word('accounts', 10_000),
    word('seconds', 5),
  ];
  const books = await openBooks();
  await books.height(1_000);
  const server = await startRedisServer();
  const redis = new Redis(server.url);
  const log = quietLog;
  const unread = new UnreadValues({ log, now: Date.now });
  const source = new StreamSource(
    { keys: redisKeys('scale'), consumer: 'bench' },
    {
      redis,
      positions: positionsOf(books.sql),
      reign: reignOf(books.sql),
      seal: new Seal(new Uint8Array(32), 'scale'),
      unread,
      log,
      now: Date.now,
    },
  );
  const reign = await reignOf(books.sql)();
  const streams = new Asked('../scale/front-ends-process.ts', [
    server.url,
    String(frontEnds),
    String(linger),
    String(accounts),
    reign,
  ]);
  await streams.ready;
  await source.begin();

  let shares = 0;
  let batches = 0;
  let isRunning = true;
  /** Where the accountant's time went. */
  const millis = { read: 0, booked: 0, acknowledged: 0 };
  const accountant = (async () => {
    while (isRunning) {
      const from = performance.now();
      const { entries, committed } = await source.take(BATCH_ENTRIES, WAIT_MILLIS);
      const read = performance.now();
      if (entries.length === 0) continue;
      shares += (await books.fenced((transaction) => books.intake.take(transaction, entries))).shares;
      const booked = performance.now();
      batches++;
      await committed();
      millis.read += read - from;
      millis.booked += booked - read;
      millis.acknowledged += performance.now() - booked;
    }
  })();

  /** Processor time so far, in ms, of those who do the work. */
  const asked = new Redis(server.url);
  const redisPid = Number(/process_id:(\d+)/.exec(await asked.info('server'))?.[1] ?? 0);
  asked.disconnect();
  const cpu = async () => {
    const { user, system } = process.cpuUsage();
    const rows = await books.sql<{ pid: number }[]>`select pid from pg_stat_activity`;
    const postgres = rows.reduce((sum, { pid }) => sum + cpuMillisOf(pid), 0);
    return {
      accountant: (user + system) / 1_000,
      postgres,
      redis: cpuMillisOf(redisPid),
      'front-ends': await streams.ask<number>('cpu'),
    };
  };

  const allBooked = async (): Promise<number> => {
    const { sent } = await streams.ask<Sent>('sent');
    while (shares < sent) await sleep(20);
    return sent;
  };
  // The first batches compile, connect and read what the books hold.
  await streams.ask('rate', 2_000);
  await sleep(3_000);
  await streams.ask('rate', 0);
  await allBooked();
  Object.assign(millis, { read: 0, booked: 0, acknowledged: 0 });
  let kept = 0;
  for (const rate of RATES) {
    const [before, sharesBefore, batchesBefore] = [await cpu(), shares, batches];
    const messagesBefore = (await streams.ask<Sent>('sent')).messages;
    await streams.ask('rate', rate);
    await sleep(seconds * 1_000);
    const { sent, messages, failed } = await streams.ask<Sent>('sent');
    const behind = sent - shares;
    const after = await cpu();
    const count = shares - sharesBefore;
    const each = Object.entries(after).map(
      ([name, millis]) => `${name} ${(((millis - before[name as keyof typeof before]) * 1_000) / count).toFixed(0)}`,
    );
    b.note(
      `${rate}/s in ${Math.round((messages - messagesBefore) / seconds)} messages/s: ${count} booked in ${batches - batchesBefore} batches, ` +
        `${behind} behind; us a share: ${each.join(', ')}`,
    );
    b.note(`  ms: ${Object.entries(millis).map(([name, value]) => `${name} ${value.toFixed(0)}`)}`);
    if (failed > 0) throw new Error(`${failed} messages were refused`);
    if (behind > rate) break;
    kept = rate;
  }
  b.figure('books-keep-up-with', kept, 'shares/s');
  await streams.ask('rate', 0);
  await allBooked();
  // A backlog, as after an outage: the front ends are quiet, as if they were on other machines.
  await streams.ask('rate', 20_000);
  await sleep(3_000);
  await streams.ask('rate', 0);
  const before = await cpu();
  const [from, booked] = [performance.now(), shares];
  const waiting = (await allBooked()) - booked;
  const [took, after] = [performance.now() - from, await cpu()];
  b.figure('books-catch-up', (waiting * 1_000) / took, 'shares/s');
  for (const name of ['accountant', 'postgres', 'redis'] as const)
    b.figure(`${name}-cpu`, ((after[name] - before[name]) * 1_000) / waiting, 'us/share');
  isRunning = false;
  await accountant;
  await streams.stop();
  await source.close();
  await server.stop();
  await books.close();
});

/** Linux alone knows it; elsewhere it is 0. */
function cpuMillisOf(pid: number): number {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ')[1]?.split(' ') ?? [];
    return (Number(fields[11]) + Number(fields[12])) * 10;
  } catch {
    return 0;
  }
}
