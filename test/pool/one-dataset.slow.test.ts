/** A process has one verifier and so one dataset, also with an embedded node in it, in the bridge and in the pool. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { bridgeOptions, runBridge } from '../../bridge/bridge.ts';
import { createVerifier, type Verifier } from '../../kernels/verifier.ts';
import { poolOptions } from '../../pool/options.ts';
import { createPool } from '../../pool/pool.ts';
import { NETWORKS } from '../../protocol/network.ts';
import type { Job } from '../../protocol/stratum/messages.ts';
import { steadyMillis } from '../../runtime/clock/clock.ts';
import { type OptionTable, parseCommandLine } from '../../runtime/command-line/command-line.ts';
import { createLogger, readLevelFilter } from '../../runtime/log/log.ts';
import { Shutdown } from '../../runtime/shutdown.ts';
import { addressOf, mine, V2Client } from '../bridge/stratum-client.ts';
import { quietLog } from '../quiet-log.ts';
import { temporaryDirectory } from '../temporary.ts';
import { until } from '../until.ts';
import { bringCluster } from './ready-cluster.ts';

const stops: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop();
});

function valuesOf<T extends OptionTable>(options: T, words: readonly string[]) {
  const parsed = parseCommandLine({ name: 'test', summary: '', options }, [...words], () => '');
  if (parsed.kind !== 'run') throw new Error('wrong options');
  return parsed.values;
}

/** Counts what is asked of it; epochs are built once each, as always. */
function countingVerifier(): { readonly verifier: Verifier; readonly counts: { prepared: number; tickets: number } } {
  const own = createVerifier({ network: NETWORKS.development, mode: 'full', threads: 1 });
  stops.push(() => own.close());
  const counts = { prepared: 0, tickets: 0 };
  return {
    counts,
    verifier: {
      mode: own.mode,
      get queued() {
        return own.queued;
      },
      get epochs() {
        return own.epochs;
      },
      prepare(epoch) {
        counts.prepared++;
        return own.prepare(epoch);
      },
      hash: (epoch, header) => own.hash(epoch, header),
      hashMany: (epoch, headers) => own.hashMany(epoch, headers),
      share() {
        counts.tickets++;
        return own.share();
      },
      close: () => own.close(),
    },
  };
}

test.each(['0', '2'])('a bridge with an embedded node and %s listener threads serves miners', async (threads) => {
  const { verifier, counts } = countingVerifier();
  const process_ = { on: () => process, off: () => process, exit: () => undefined } as never;
  const shutdown = new Shutdown({ limitMs: 20_000 }, { log: quietLog, process: process_, now: steadyMillis });
  stops.push(async () => {
    shutdown.request('test ends');
    await shutdown.done;
  });
  const dataDir = temporaryDirectory();
  const words = ['--data-dir', dataDir, '--listen', '127.0.0.1:0', '--threads', threads, '--min-work', '1'];
  const lines: string[] = [];
  const sink = { write: (line: string) => void lines.push(line), flush: () => undefined, close: () => undefined };
  const log = createLogger('bridge', { filter: readLevelFilter('info'), format: 'text' }, { sink, now: Date.now });
  await runBridge(
    valuesOf(bridgeOptions, [...words, '--listen-ws', 'off', '--stats-bind', 'off', '--metrics-bind', 'off']),
    { log, shutdown, version: 'test', verifier },
  );
  await expect.poll(() => verifier.epochs).toEqual([0]);
  await expect.poll(() => counts.tickets).toBe(threads === '0' ? 1 : 2);
  await expect.poll(() => counts.prepared).toBeGreaterThanOrEqual(threads === '0' ? 1 : 2);
  const port = await until(() => /kind=tcp host=127\.0\.0\.1 port=(\d+)/.exec(lines.join('\n'))?.[1]);
  await until(() => lines.some((line) => line.includes('ready healthy=true')));
  const miner = await V2Client.open(Number(port));
  await miner.login(`${addressOf(1)}.rig`, 'd=4');
  const job = miner.jobs[0] as Job;
  expect(await miner.submitCode(job.jobId, mine(job, miner.prefix).nonce)).toBe(0);
  miner.close();
});

test('pool with an embedded node', async () => {
  const { verifier, counts } = countingVerifier();
  const dataDir = temporaryDirectory();
  await bringCluster(join(dataDir, 'database'));
  const off = ['--pplns-listen-ws', 'off', '--solo-listen-ws', 'off', '--pplns-listen', '127.0.0.1:0'];
  const words = ['--data-dir', dataDir, '--threads', '1', '--solo-listen', 'off', '--web-bind', '127.0.0.1:0', ...off];
  const pool = await createPool(valuesOf(poolOptions, words), {
    log: quietLog,
    version: 'test',
    started: (_, stop) => void stops.push(stop),
    fault: (reason) => expect.fail(reason),
    verifier,
  });
  await expect.poll(async () => (await pool.stratum.figures()).ready).toBe(true);
  expect(verifier.epochs).toEqual([0]);
  expect(counts.tickets).toBe(1);
  // The node and the stratum server both ask, and one dataset is made.
  await expect.poll(() => counts.prepared).toBeGreaterThanOrEqual(2);
  expect(verifier.epochs).toEqual([0]);
  expect(existsSync(join(dataDir, 'node', 'datasets'))).toBe(false);
});
