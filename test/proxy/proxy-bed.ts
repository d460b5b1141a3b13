/** A proxy of this process in front of a stratum server of it, on free ports. */
import { EventEmitter } from 'node:events';
import { afterAll, onTestFinished } from 'vitest';
import { createVerifier, type Verifier } from '../../kernels/verifier.ts';
import { NETWORKS } from '../../protocol/network.ts';
import type { ProxyValues } from '../../proxy/options.ts';
import { proxyCommand } from '../../proxy/options.ts';
import { type RunningProxy, runProxy } from '../../proxy/proxy.ts';
import { parseCommandLine } from '../../runtime/command-line/command-line.ts';
import { Shutdown } from '../../runtime/shutdown.ts';
import { addressOf } from '../bridge/stratum-client.ts';
import { quietLog } from '../quiet-log.ts';
import { temporaryDirectory } from '../temporary.ts';
import { until } from '../until.ts';

export const FARM_ADDRESS = addressOf(77);

/** One for all tests of a file: building its dataset takes longer than most of them. */
let shared: Verifier | undefined;
afterAll(async () => {
  await shared?.close();
  shared = undefined;
});
export const theVerifier = (): Verifier => {
  shared ??= createVerifier({ network: NETWORKS.development, mode: 'light', threads: 1 });
  return shared;
};

export type ProxyBed = RunningProxy & {
  readonly values: ProxyValues;
  readonly port: () => number;
  readonly stop: () => Promise<number>;
};

export async function startProxy(
  pools: readonly string[],
  verifier: Verifier,
  more: readonly string[] = [],
): Promise<ProxyBed> {
  const off = ['--listen-ws', '--stats-bind', '--web-bind', '--metrics-bind'].flatMap((word) =>
    more.includes(word) ? [] : [word, 'off'],
  );
  const words = [
    '-u',
    FARM_ADDRESS,
    '--listen',
    '127.0.0.1:0',
    '--data-dir',
    temporaryDirectory(),
    ...(more.includes('--threads') ? [] : ['--threads', '0']),
    ...off,
  ];
  const easy = [
    '--min-work',
    '1',
    '--drain-time',
    '100ms',
    ...(more.includes('--start-work') ? [] : ['--start-work', '4']),
  ];
  const named = pools.flatMap((pool) => ['-o', pool]);
  const parsed = parseCommandLine(proxyCommand, [...named, ...words, ...easy, ...more], () => '');
  if (parsed.kind !== 'run') throw new Error(JSON.stringify(parsed));
  const process = new EventEmitter() as unknown as NodeJS.Process;
  const shutdown = new Shutdown({ limitMs: 5_000 }, { log: quietLog, process, now: () => performance.now() });
  const parts = await runProxy(parsed.values, { log: quietLog, shutdown, version: 'test', verifier });
  const stop = async (): Promise<number> => {
    shutdown.request('the test is over');
    return await shutdown.done;
  };
  onTestFinished(async () => void (await stop()));
  const port = (): number => parts.rigs.current?.addresses[0]?.port ?? 0;
  await until(async () => (await parts.rigs.current?.figures())?.ready === true);
  return { ...parts, values: parsed.values, port, stop };
}
