/**
 * What the benchmark pow-gpu measures on a card: dataset build, tuning, the sustained rate of the backend with one job and
 * with jobs that change as they do on the chain. Rates are sustained ones, because big cards need seconds to settle at
 * their power limit. The yardstick is pow.cu, in the same run.
 */
import { execFileSync } from 'node:child_process';
import type { DeviceUsage, SearchJob } from '../../kernels/backend.ts';
import { GpuBackend } from '../../kernels/gpu/backend.ts';
import { openGpu } from '../../kernels/gpu/device.ts';
import { loadSources } from '../../kernels/gpu/sources.ts';
import type { Trial, Tuning } from '../../kernels/gpu/tune.ts';
import { nodeGpu } from '../../kernels/gpu/webgpu.ts';
import type { PowParameters } from '../../protocol/crypto/pow.ts';

export type GpuBenchOptions = {
  readonly parameters: PowParameters;
  readonly unsafe: boolean;
  readonly seconds: number;
  /** Jobs change this often; a cut of the chain comes every 2.5 s. */
  readonly jobSeconds: number;
  readonly cache: Uint8Array<ArrayBuffer>;
  readonly tuning?: Tuning | undefined;
};

export type GpuBenchFigures = {
  readonly device: string;
  readonly datasetMillis: number;
  readonly tuning: Tuning;
  readonly trials: readonly Trial[];
  readonly hashesPerSecond: number;
  /** With a new job now and then: work on the job before is paid, so all hashes count. */
  readonly changingPerSecond: number;
  /** Part of the time that the device had nothing to do, by its own clock; undefined where it does not tell. */
  readonly idlePart: number | undefined;
  /** Processor time per second of mining. */
  readonly processorLoad: number;
};

/** Nothing hits: only searching is measured. */
const NO_TARGET = new Uint8Array(32);

function job(id: number): SearchJob {
  const header = new Uint8Array(312);
  new DataView(header.buffer).setUint32(0, id);
  return { id, epoch: 0, header, target: NO_TARGET, prefixBytes: 0, nonces: { from: 0n, to: 1n << 63n } };
}

const sleep = (seconds: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, seconds * 1000));

export async function measureGpu(options: GpuBenchOptions): Promise<GpuBenchFigures> {
  const gpu = await openGpu(
    { unsafe: options.unsafe, timed: true },
    { entry: await nodeGpu({ unsafe: options.unsafe }), sources: await loadSources() },
  );
  const trials: Trial[] = [];
  let datasetStarted = 0;
  let datasetMillis = 0;
  let failure: Error | undefined;
  const backend = new GpuBackend(
    { parameters: options.parameters, ...(options.tuning === undefined ? {} : { tuning: options.tuning }) },
    {
      gpu,
      buildCache: async () => options.cache,
      onTrial: (trial) => trials.push(trial),
      events: {
        onHit: () => {},
        onFailure: (error) => {
          failure = error;
        },
        onProgress: ({ stage, done, total }) => {
          const now = performance.now();
          if (stage === 'cache' && done === total) datasetStarted = now;
          if (stage === 'dataset' && done === total) datasetMillis = now - datasetStarted;
        },
      },
    },
  );
  await backend.prepare(0);
  const measured = async (work: () => Promise<void>) => {
    const [from, usage, cpu, start] = [backend.hashes, backend.usage, process.cpuUsage(), performance.now()];
    await work();
    if (failure !== undefined) throw failure;
    const millis = performance.now() - start;
    const { user, system } = process.cpuUsage(cpu);
    const hashes = backend.hashes - from;
    return {
      rate: (hashes / millis) * 1000,
      idlePart: idlePart(usage, backend.usage),
      load: (user + system) / 1000 / millis,
    };
  };
  backend.setJob(job(1));
  await sleep(2);
  // Shapes are tried on the running search; the rate of the best is what is measured.
  while (backend.isTuning && failure === undefined) await sleep(0.2);
  const steady = await measured(() => sleep(options.seconds));
  const changing = await measured(async () => {
    const rounds = Math.max(2, Math.ceil(options.seconds / options.jobSeconds));
    for (let n = 0; n < rounds; n++) {
      await sleep(options.jobSeconds);
      backend.setJob(job(2 + n));
    }
  });
  const tuning = backend.tuning as Tuning;
  await backend.close();
  return {
    device: gpu.name,
    datasetMillis,
    tuning,
    trials,
    hashesPerSecond: steady.rate,
    changingPerSecond: changing.rate,
    idlePart: steady.idlePart,
    processorLoad: steady.load,
  };
}

function idlePart(from: DeviceUsage | undefined, to: DeviceUsage | undefined): number | undefined {
  if (from === undefined || to === undefined) return undefined;
  const idle = to.idleMillis - from.idleMillis;
  return idle / (idle + to.busyMillis - from.busyMillis);
}

/** Runs the CUDA yardstick over a cache file: its best rate in hashes per second. */
export function runCuda(program: string, cacheFile: string, seconds: number, say: (line: string) => void): number {
  const output = execFileSync(program, [cacheFile, String(seconds)], { encoding: 'utf8' });
  for (const line of output.trim().split('\n')) say(line);
  const best = /^best ([\d.]+) MH\/s/m.exec(output)?.[1];
  if (best === undefined) throw new Error(`${program} named no best rate`);
  return Number(best) * 1e6;
}
