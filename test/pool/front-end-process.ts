/**
 * A front end and standby accountant as a process of its own, for test/pool/instances.deep.slow.test.ts: sink, journal, feed over
 * Redis, and the books when it wins the election. Shares are made up; each is noted as answered once the sink resolved.
 * SIGUSR2 ends the load, not the process.
 */
import { randomBytes } from 'node:crypto';
import { appendFileSync, mkdirSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { Intake } from '../../pool/books/intake.ts';
import { advanceSlices } from '../../pool/books/slices.ts';
import { fenced, TermLostError, tryElection } from '../../pool/books/term.ts';
import { connectDatabase } from '../../pool/database/connect.ts';
import { Outbox } from '../../pool/feed/outbox.ts';
import { positionsOf, reignOf } from '../../pool/feed/positions.ts';
import { StreamSender } from '../../pool/feed/stream-sender.ts';
import { StreamSource } from '../../pool/feed/stream-source.ts';
import { Journal } from '../../pool/journal/journal.ts';
import { PoolSink } from '../../pool/journal/share-sink.ts';
import { connectRedis, redisKeys, redisReady } from '../../pool/shared/redis.ts';
import { targetOfWork } from '../../protocol/ledger/target.ts';
import { NETWORKS } from '../../protocol/network.ts';
import { pattern } from '../../vectors/generate/pattern.ts';
import { quietLog } from '../quiet-log.ts';
import { testSealed } from './sealed.ts';

const [directory = '', databaseUrl = '', redisUrl = '', answeredFile = ''] = process.argv.slice(2);
mkdirSync(directory, { recursive: true });
appendFileSync(answeredFile, '');
const bootId = Uint8Array.from(randomBytes(8));
const journal = await Journal.open({ directory, bootId });
const outbox = await Outbox.open({ directory, bootId: journal.bootId }, { log: quietLog });
const sink = new PoolSink({ journal, outbox, log: quietLog, now: Date.now });
const keys = redisKeys('instances');
const sealed = testSealed();
const sending = connectRedis(redisUrl, 'feed', quietLog);
await redisReady(sending, 120_000);
const sql = connectDatabase(databaseUrl, { max: 3 });
const [positions, reign] = [positionsOf(sql), reignOf(sql)];
new StreamSender({ keys, batchEntries: 50 }, { redis: sending, outbox, positions, reign, ...sealed, log: quietLog });
const reading = connectRedis(redisUrl, 'accountant', quietLog);
await redisReady(reading, 120_000);
const source = new StreamSource(
  { keys, consumer: journal.bootId, messageEntries: 50 },
  { redis: reading, positions, reign, ...sealed, log: quietLog, now: Date.now },
);

let isLoaded = true;
process.on('SIGUSR2', () => {
  isLoaded = false;
});

async function load(): Promise<void> {
  while (isLoaded) {
    const first = journal.nextSequence;
    const shares = Array.from({ length: 1 + (first % 7) }, (_, i) => ({
      service: 'pplns',
      account: Uint8Array.of(0, ...new Uint8Array(47), i),
      worker: `w${i}`,
      work: BigInt(100 + i),
      hashWork: 1,
      cutHeight: 1,
      extranonce: new Uint8Array(20),
      headerDigest: pattern(`${journal.bootId} ${first + i}`, 16),
      nonce: new Uint8Array(8),
      atMillis: Date.now(),
    }));
    await sink.shares(shares);
    const lines = shares.map((_, i) => `${journal.bootId}/${String(first + i).padStart(16, '0')}\n`);
    appendFileSync(answeredFile, lines.join(''));
    await sleep(10);
  }
}

async function keepBooks(): Promise<void> {
  const election = connectDatabase(databaseUrl, { max: 1 });
  const term = await tryElection(election, journal.bootId).catch(() => undefined);
  if (term === undefined) return election.end({ timeout: 1 });
  const intake = new Intake({ network: 'development', sliceCuts: 1_000 });
  await fenced(sql, term.number, (transaction) =>
    advanceSlices(
      transaction,
      {
        network: NETWORKS.development,
        sliceCuts: 1_000,
        windowThousandths: 1_000n,
        services: [0, 1],
        feePpm: new Map(),
      },
      { height: 0, targetOf: () => targetOfWork(1_000n) },
    ),
  );
  await source.begin();
  for (;;) {
    try {
      const taken = await source.take(500, 100);
      if (taken.entries.length === 0) continue;
      await fenced(sql, term.number, (transaction) => intake.take(transaction, taken.entries));
      await taken.committed();
    } catch (error) {
      if (error instanceof TermLostError) return;
      await sleep(200);
      await source.begin();
    }
  }
}

void load();
for (;;) {
  await keepBooks().catch(() => undefined);
  await sleep(300);
}
