/**
 * Finds the fastest shape of the search on a device by trying. Big cards run at their power limit, where the clock swings for
 * seconds after every pause: so all candidates are compiled first, the device is warmed up, and the candidates take turns.
 * The result is a plain object that the miner remembers per device. Loads in browsers.
 */
import type { GpuDataset } from './dataset.ts';
import type { Gpu } from './device.ts';
import { GpuError } from './gpu-error.ts';
import { compileSearch, type Kernel, RING, Searcher, type Shape, shapeIsPossible, type Variant } from './search.ts';
import { type Band, SEARCH_BAND, steer } from './steer.ts';

export type Tuning = { readonly shape: Shape };

const shape = (variant: Variant, lanes: 4 | 8, flight: number, workgroup: number): Shape => ({
  variant,
  lanes,
  flight,
  workgroup,
});

/** The best first, for each kind of device. A workgroup of 768 leaves the compiler 80 registers on NVIDIA's cards. */
export const CANDIDATES: readonly Shape[] = [
  shape('stream', 8, 6, 768),
  shape('shuffle', 8, 8, 64),
  shape('shuffle', 8, 4, 64),
  shape('stream', 8, 4, 64),
  shape('stream', 4, 1, 32),
  shape('workgroup', 8, 4, 64),
  shape('workgroup', 8, 4, 32),
];

/** What tuning chooses from: four lanes only where the subgroup is too small for eight. */
export function candidatesFor(gpu: Gpu): Shape[] {
  const possible = CANDIDATES.filter((candidate) => shapeIsPossible(candidate, gpu));
  const wide = possible.some(({ variant, lanes }) => variant !== 'workgroup' && lanes === 8);
  return possible.filter(({ lanes }) => !(wide && lanes === 4));
}

/** What runs where nobody tuned. */
export function defaultShape(gpu: Gpu): Shape {
  const first = candidatesFor(gpu)[0];
  if (first === undefined)
    throw new GpuError('gpu_limits', 'no form of the search fits the adapter', { device: gpu.name });
  return first;
}

/** A stored tuning is used only where the device can still run it. */
export const tuningIsPossible = (tuning: Tuning, gpu: Gpu): boolean => shapeIsPossible(tuning.shape, gpu);

/** Nothing hits, so that only searching is measured. */
const NO_TARGET = new Uint8Array(32);
const PREFIX = new Uint32Array(8);

/** Keeps one kernel searching and counts. */
export class Meter {
  readonly #gpu: Gpu;
  readonly #dataset: GpuDataset;
  readonly #searcher: Searcher;
  readonly #band: Band;
  #nonce = 0n;
  #work: number;
  #hashes = 0;
  #millis = 0;

  constructor(gpu: Gpu, kernel: Kernel, dataset: GpuDataset, band: Band = SEARCH_BAND) {
    this.#gpu = gpu;
    this.#dataset = dataset;
    this.#searcher = new Searcher(gpu, kernel);
    this.#band = band;
    this.#work = this.#searcher.quantum;
  }

  get hashesPerSecond(): number {
    return (this.#hashes / this.#millis) * 1000;
  }

  #submit() {
    const count = this.#work;
    const run = { prefix: PREFIX, nonce: this.#nonce, count, target: NO_TARGET };
    this.#nonce += BigInt(count);
    return this.#searcher.submit(this.#dataset, run);
  }

  /** Searches for about so long after settling; the first dispatch, which starts with a pause, never counts. */
  async run(millis: number, settleMillis = 0): Promise<void> {
    const flying = Array.from({ length: RING }, () => this.#submit());
    let started: number | undefined;
    for (let current = flying.shift(); current !== undefined; current = flying.shift()) {
      await this.#searcher.approach(current);
      const { millis: took } = await this.#searcher.finish(current);
      const now = this.#gpu.clock.now();
      const { count } = current.run;
      if (count === this.#work)
        this.#work = steer({ work: count, millis: took }, this.#band, this.#searcher.quantum, 2 ** 31);
      if (started === undefined) started = now;
      else if (now - started > settleMillis) {
        this.#hashes += count;
        this.#millis += took;
      }
      if (now - started < settleMillis + millis) flying.push(this.#submit());
    }
  }

  /** What came before was warming up. */
  forget(): void {
    this.#hashes = 0;
    this.#millis = 0;
  }

  destroy(): void {
    this.#searcher.destroy();
  }
}

export type Trial = { readonly shape: Shape; readonly hashesPerSecond: number };

export type TuneOptions = {
  readonly candidates?: readonly Shape[];
  readonly warmUpMillis?: number;
  /** One turn each decides who is far behind. */
  readonly heatMillis?: number;
  /** The others take turns that are long enough for the clock to settle, and only what comes after that counts. */
  readonly turns?: number;
  readonly settleMillis?: number;
  readonly turnMillis?: number;
};

/** Who is further behind after the heat is out. */
const OUT = 0.95;
/** A later candidate must be this much better: noise must not choose. */
const CLEARLY_BETTER = 1.003;

export async function tune(
  gpu: Gpu,
  dataset: GpuDataset,
  options: TuneOptions = {},
  onTrial: (trial: Trial) => void = () => {},
): Promise<Tuning> {
  const { candidates = candidatesFor(gpu), warmUpMillis = 2000, heatMillis = 400 } = options;
  const { turns = 2, settleMillis = 500, turnMillis = 1500 } = options;
  if (candidates.length === 0) return { shape: defaultShape(gpu) };
  const meters: { readonly shape: Shape; readonly meter: Meter }[] = [];
  try {
    for (const candidate of candidates) {
      const kernel = await compileSearch(gpu, candidate, dataset.layout);
      meters.push({ shape: candidate, meter: new Meter(gpu, kernel, dataset) });
    }
    await meters[0]?.meter.run(warmUpMillis);
    meters[0]?.meter.forget();
    for (const { meter } of meters) await meter.run(heatMillis);
    const bar = OUT * Math.max(...meters.map(({ meter }) => meter.hashesPerSecond));
    const finalists = meters.filter(({ meter }) => meter.hashesPerSecond >= bar);
    if (finalists.length > 1) {
      for (const { meter } of finalists) meter.forget();
      for (let turn = 0; turn < turns; turn++)
        for (const { meter } of finalists) await meter.run(turnMillis, settleMillis);
    }
    for (const { shape: tried, meter } of meters) onTrial({ shape: tried, hashesPerSecond: meter.hashesPerSecond });
    const best = finalists.reduce((a, b) =>
      b.meter.hashesPerSecond > a.meter.hashesPerSecond * CLEARLY_BETTER ? b : a,
    );
    return { shape: best.shape };
  } finally {
    for (const { meter } of meters) meter.destroy();
  }
}
