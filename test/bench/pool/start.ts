/**
 * The start and the stop of a pool in whose books strangers have left 200,000 invented workers: half of them of 25 addresses, as many as an
 * address has figures of its own for, and half of 100,000 addresses with one each. They come as shares come: by the journal of a front
 * end that ended before the books had it. Only the hashes and the connections are left out.
 */
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { connectDatabase } from '../../../pool/database/connect.ts';
import { Journal } from '../../../pool/journal/journal.ts';
import { encodeRecord } from '../../../pool/journal/journal-record.ts';
import { freePorts } from '../../../runtime/free-port.ts';
import { RunningPart } from '../../../stack/process.ts';
import { accountOf } from '../../bridge/stratum-client.ts';
import { freshIdentity } from '../../pool/fresh-identity.ts';
import { startPostgresServer } from '../../pool/postgres-server.ts';
import type { Bench } from '../harness.ts';

const ADDRESSES = 25;
const OF_EACH = 4_000;
const ALONE = 100_000;
const WORKERS = ADDRESSES * OF_EACH + ALONE;
const BATCH = 5_000;

async function fillJournal(directory: string): Promise<void> {
  const journal = await Journal.open({ directory, bootId: randomBytes(8) });
  const names = function* () {
    for (let i = 0; i < ADDRESSES * OF_EACH; i++) yield { account: accountOf(i % ADDRESSES), worker: `invented-${i}` };
    for (let i = 0; i < ALONE; i++) yield { account: accountOf(ADDRESSES + i), worker: 'invented' };
  };
  let batch: Uint8Array<ArrayBuffer>[] = [];
  for (const name of names()) {
    const atMillis = Date.now();
    batch.push(
      encodeRecord({ kind: 'share', service: 'pplns', ...name, work: 1_000n, atMillis, identity: freshIdentity() }),
    );
    if (batch.length < BATCH) continue;
    await journal.append(batch);
    batch = [];
  }
  await journal.append(batch);
  await journal.close();
}

export async function benchStart(b: Bench): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), 'svc-bench-'));
  const postgres = await startPostgresServer(40);
  const [api, mining, pplns, web] = (await freePorts(4)) as [number, number, number, number];
  const at = (port: number) => `127.0.0.1:${port}`;
  const node = new RunningPart({
    name: 'node',
    program: 'svcd',
    words: [
      ...['run', '--data-dir', join(directory, 'node'), '--api-bind', at(api), '--mining-bind', at(mining)],
      ...['--initial-work', '1000000000000', '--minimum-work', '1000000000000'],
    ],
    ready: `http://${at(api)}/v1/node/sync`,
    where: '',
  });
  await node.ready(AbortSignal.timeout(120_000));
  /** Time on the clock until it is ready, and the pool's own processor time: on a busy machine only that says something. */
  const start = async (name: string): Promise<RunningPart> => {
    const from = performance.now();
    const pool = new RunningPart({
      name: 'pool',
      program: 'svc-pool',
      words: [
        ...['run', '--data-dir', join(directory, 'pool'), '--database', postgres.url, '--node', `http://${at(mining)}`],
        ...[
          '--node-api',
          `http://${at(api)}`,
          '--pplns-listen',
          at(pplns),
          '--solo-listen',
          'off',
          '--web-bind',
          at(web),
        ],
        ...['--pplns-listen-ws', 'off', '--solo-listen-ws', 'off', '--threads', '1', '--min-work', '1'],
      ],
      ready: `http://${at(web)}/ready`,
      where: '',
    });
    await pool.ready(AbortSignal.timeout(300_000));
    b.figure(name, (performance.now() - from) / 1_000, 's');
    const metrics = await (await fetch(`http://${at(web)}/metrics`)).text();
    b.figure(`${name}-processor`, Number(/^svc_pool_process_cpu_seconds_total (\S+)/m.exec(metrics)?.[1]), 's');
    return pool;
  };
  const stop = async (pool: RunningPart, name: string): Promise<void> => {
    const from = performance.now();
    await pool.stop();
    b.figure(name, (performance.now() - from) / 1_000, 's');
  };
  const sql = connectDatabase(postgres.url, { max: 1 });
  await stop(await start('start-empty'), 'stop-empty');
  await fillJournal(join(directory, 'pool', 'journal'));
  const taking = await start('start-with-a-journal-of-them');
  const from = performance.now();
  const workers = async () => (await sql<{ n: number }[]>`select count(*)::int as n from workers`)[0]?.n ?? 0;
  while ((await workers()) < WORKERS) await sleep(500);
  b.figure('taken-in', (performance.now() - from) / 1_000, 's');
  await stop(taking, 'stop-with-many');
  const again = await start('start-with-many');
  // All of them are in the statistics of the last minutes, which the boards of the next start are made of.
  const pending = async () => (await sql<{ n: number }[]>`select count(*)::int as n from stats_pending`)[0]?.n ?? 0;
  while ((await pending()) > 0) await sleep(500);
  await stop(again, 'stop-with-many-again');
  await stop(await start('start-with-many-on-the-boards'), 'stop-with-many-on-the-boards');
  const [size] = await sql<{ bytes: string }[]>`select pg_database_size(current_database())::text as bytes`;
  b.figure('disk-per-worker', Number(size?.bytes) / WORKERS, 'bytes of the database');
  await sql.end({ timeout: 1 });
  await node.stop();
  await postgres.stop();
  rmSync(directory, { recursive: true, force: true });
}
