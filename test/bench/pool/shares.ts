/** Shares through the whole pool: stratum, journal, Redis, PostgreSQL, each what it is in production. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { connectDatabase } from '../../../pool/database/connect.ts';
import { freePorts } from '../../../runtime/free-port.ts';
import { RunningPart } from '../../../stack/process.ts';
import { startPostgresServer } from '../../pool/postgres-server.ts';
import { startRedisServer } from '../../pool/redis-server.ts';
import type { Bench } from '../harness.ts';
import { Asked } from '../stratum/asked.ts';

const CONNECTIONS = 1_000;
const ACCOUNTS = 1_000;
const IN_FLIGHT = 8;
const ANY = '127.0.0.1:0';

export type Hashing = 'none' | 'development';
type PoolBed = { readonly pool: Asked; readonly load: Asked; taken(): Promise<number>; close(): Promise<void> };

async function startPool(hashing: Hashing): Promise<PoolBed> {
  const directory = mkdtempSync(join(tmpdir(), 'svc-bench-'));
  const [api, mining] = await freePorts(2);
  // Blocks are not what is measured here: none is found.
  const node = new RunningPart({
    name: 'node',
    program: 'svcd',
    words: [
      'run',
      '--data-dir',
      join(directory, 'node'),
      '--api-bind',
      `127.0.0.1:${api}`,
      '--mining-bind',
      `127.0.0.1:${mining}`,
      '--initial-work',
      '1000000000000',
      '--minimum-work',
      '1000000000000',
    ],
    ready: `http://127.0.0.1:${api}/v1/node/sync`,
    where: '',
  });
  await node.ready(AbortSignal.timeout(60_000));
  const redis = await startRedisServer();
  const postgres = await startPostgresServer(40);
  const pool = new Asked(
    '../pool/pool-process.ts',
    [
      hashing,
      '--data-dir',
      join(directory, 'pool'),
      '--database',
      postgres.url,
      '--redis',
      redis.url,
      '--node',
      `http://127.0.0.1:${mining}`,
      '--node-api',
      `http://127.0.0.1:${api}`,
      '--min-work',
      '1',
      '--pplns-listen',
      ANY,
      '--solo-listen',
      'off',
      '--web-bind',
      ANY,
      '--threads',
      '1',
      '--pplns-listen-ws',
      'off',
      '--solo-listen-ws',
      'off',
      '--payout-interval',
      '1h',
    ],
    true,
  );
  await pool.ready;
  const load = new Asked('./load-process.ts');
  await load.ready;
  const port = await pool.ask<number>('port');
  const crew = { accounts: ACCOUNTS, work: 1 };
  await load.ask('login', { port, count: CONNECTIONS, transport: 'tcp', version: 1, ...crew });
  const sql = connectDatabase(postgres.url, { max: 1 });
  return {
    pool,
    load,
    taken: async () =>
      (await sql<{ n: number }[]>`select coalesce(sum(through + 1), 0)::int as n from journal_positions`)[0]?.n ?? 0,
    async close() {
      await load.stop();
      await sql.end({ timeout: 1 });
      await pool.ask('stop');
      await pool.stop();
      await node.stop();
      await redis.stop();
      await postgres.stop();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

/** As many as are answered, and how the books keep up with them. */
export async function benchShares(b: Bench, hashing: Hashing, seconds: number): Promise<void> {
  const bed = await startPool(hashing);
  const name = hashing === 'none' ? 'shares' : 'shares-hashed';
  const submits = { connections: CONNECTIONS, inFlight: IN_FLIGHT };
  await bed.load.ask('submits', { ...submits, seconds: 2 });
  const [before, cpuBefore, from] = [await bed.taken(), await bed.pool.ask<number>('cpu'), performance.now()];
  const { rate, errors } = await bed.load.ask<{ rate: number; errors: number }>('submits', { ...submits, seconds });
  const during = performance.now() - from;
  const [after, cpu] = [await bed.taken(), (await bed.pool.ask<number>('cpu')) - cpuBefore];
  if (errors > 0) throw new Error(`${errors} shares were refused`);
  b.figure(`${name}-answered`, rate, '1/s');
  b.figure(`${name}-in-the-books-meanwhile`, ((after - before) / during) * 1000, '1/s');
  let last = after;
  let end = performance.now();
  for (let still = 0; still < 10; still++) {
    await sleep(200);
    const now = await bed.taken();
    if (now === last) continue;
    [last, end, still] = [now, performance.now(), 0];
  }
  b.figure(`${name}-in-the-books`, ((last - before) / (end - from)) * 1000, '1/s');
  b.figure(`${name}-cpu`, cpu / (last - before), 'us of the pool');
  await bed.close();
}

/** A steady thousand shares a second: what memory does over time. */
export async function benchSoak(b: Bench, minutes: number): Promise<void> {
  const bed = await startPool('none');
  const samples: number[] = [];
  const seconds = 10;
  await bed.load.ask('steady', { perSecond: 1_000, seconds: 20 });
  for (const until = Date.now() + minutes * 60_000; Date.now() < until; ) {
    await bed.load.ask('steady', { perSecond: 1_000, seconds });
    samples.push(await bed.pool.ask<number>('memory'));
  }
  const part = Math.max(1, Math.floor(samples.length / 3));
  const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length / 2 ** 20;
  b.figure('soak-memory-first-third', mean(samples.slice(0, part)), 'MiB');
  b.figure('soak-memory-last-third', mean(samples.slice(-part)), 'MiB');
  b.note(
    `soak of ${minutes} min: ${samples.length} samples, the highest ${Math.round(Math.max(...samples) / 2 ** 20)} MiB`,
  );
  await bed.close();
}
