/** `--benchmark`: the hash rate of each device without a pool, over a number of seconds after a warm-up. */
import {
  type Backend,
  type BackendEvents,
  type DeviceUsage,
  freeNonces,
  type NonceRange,
  type Progress,
  splitNonces,
} from '../../kernels/backend.ts';
import { HEADER_BYTES } from '../../protocol/ledger/header.ts';
import { MinerError } from '../miner-error.ts';
import { showRate } from '../work/hash-rate.ts';

export type BenchmarkDevice = {
  readonly number: number;
  readonly name: string;
  readonly open: (events: BackendEvents) => Promise<Backend>;
};

export type BenchmarkFigures = {
  readonly network: string;
  readonly seconds: number;
  readonly hash_rate: number;
  readonly devices: readonly {
    readonly number: number;
    readonly name: string;
    readonly kind: string;
    readonly hash_rate: number;
    readonly prepare_seconds: number;
    /** Fraction of the time that the device was idle; null if not known. */
    readonly idle_part: number | null;
  }[];
};

const WARM_UP_MILLIS = 2_000;
/** A card that was never tuned is tuned first; that is not measured. */
const LONGEST_TUNING_MILLIS = 120_000;
/** No hash meets it, so nothing but the search is measured. */
const IMPOSSIBLE = new Uint8Array(32);

type Mark = { readonly hashes: number; readonly usage: DeviceUsage | undefined; readonly at: number };

const sleep = (millis: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, millis));

export async function benchmark(
  options: { readonly network: string; readonly seconds: number; readonly jobMillis: number | undefined },
  devices: readonly BenchmarkDevice[],
  onProgress: (device: string, progress: Progress) => void,
): Promise<BenchmarkFigures> {
  const parts = splitNonces({ from: 0n, to: freeNonces(2) }, devices.length);
  let failed: Error | undefined;
  const running = await Promise.all(
    devices.map(async ({ number, name, open }, i) => {
      const backend = await open({
        onHit: () => undefined,
        onProgress: (progress) => onProgress(`${number}: ${name}`, progress),
        onFailure: (error) => {
          failed ??= new MinerError('device_lost', `device ${number}: ${error.message}`);
        },
      });
      const began = performance.now();
      await backend.prepare(0);
      const prepareSeconds = (performance.now() - began) / 1_000;
      // Writing the dataset takes memory and disk from the search.
      await backend.stored?.();
      const nonces = parts[i] as NonceRange;
      return { number, backend, prepareSeconds, nonces };
    }),
  );
  let job = 0;
  const nextJob = (): void => {
    const header = new Uint8Array(HEADER_BYTES);
    new DataView(header.buffer).setUint32(0, ++job, true);
    for (const { backend, nonces } of running)
      backend.setJob({ id: job, epoch: 0, header, target: IMPOSSIBLE, prefixBytes: 2, nonces });
  };
  nextJob();
  const changing = options.jobMillis === undefined ? undefined : setInterval(nextJob, options.jobMillis);
  try {
    await sleep(WARM_UP_MILLIS);
    const isTuning = () => running.some(({ backend }) => backend.isTuning === true) && failed === undefined;
    for (const began = performance.now(); isTuning() && performance.now() - began < LONGEST_TUNING_MILLIS; )
      await sleep(200);
    const read = () =>
      running.map(({ backend }) => ({ hashes: backend.hashes, usage: backend.usage, at: performance.now() }));
    const before = read();
    await sleep(options.seconds * 1_000);
    const after = read();
    if (failed !== undefined) throw failed;
    const figures = running.map(({ number, backend, prepareSeconds }, i) => {
      const [from, to] = [before[i] as Mark, after[i] as Mark];
      const rate = ((to.hashes - from.hashes) * 1_000) / (to.at - from.at);
      return {
        number,
        name: backend.name,
        kind: backend.kind,
        hash_rate: Math.round(rate),
        prepare_seconds: Number(prepareSeconds.toFixed(2)),
        idle_part: idlePart(from.usage, to.usage),
      };
    });
    const total = figures.reduce((sum, { hash_rate }) => sum + hash_rate, 0);
    return { network: options.network, seconds: options.seconds, hash_rate: total, devices: figures };
  } finally {
    clearInterval(changing);
    await Promise.all(running.map(({ backend }) => backend.close().catch(() => undefined)));
  }
}

function idlePart(from: DeviceUsage | undefined, to: DeviceUsage | undefined): number | null {
  if (from === undefined || to === undefined) return null;
  const idle = to.idleMillis - from.idleMillis;
  const all = idle + to.busyMillis - from.busyMillis;
  return all <= 0 ? null : Number((idle / all).toFixed(5));
}

export function benchmarkLines({ network, seconds, hash_rate, devices }: BenchmarkFigures): string[] {
  return [
    ...devices.map((d) => {
      const idle = d.idle_part === null ? '' : `, idle ${(100 * d.idle_part).toFixed(2)} % of the time`;
      return `device ${d.number} ${d.name}: ${showRate(d.hash_rate)}, dataset in ${d.prepare_seconds} s${idle}`;
    }),
    `total: ${showRate(hash_rate)} over ${seconds} s on ${network}`,
  ];
}
