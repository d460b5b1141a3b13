/**
 * Finds the fastest shape of the search on a device by trying. Big cards run at their power limit, where the clock swings for
 * seconds after every pause: so all candidates are compiled first, the device is warmed up, and the candidates take turns.
 * The result is a plain object that the miner remembers per device. Loads in browsers.
 */
import type { GpuDataset } from './dataset.ts';
import type { Gpu } from './device.ts';
import { GpuError } from './gpu-error.ts';
import { compileSearch, type Kernel, RING, Searcher, type Shape, shapeIsPossible } from './search.ts';
import { type Band, SEARCH_BAND, steer } from './steer.ts';

export type Tuning = { readonly shape: Shape };

const shuffle = (lanes: 4 | 8, flight: 1 | 2 | 4 | 8, workgroup: number): Shape => ({
  variant: 'shuffle',
  lanes,
  flight,
  workgroup,
});
const workgroup = (flight: 1 | 2 | 4 | 8, size: number): Shape => ({
  variant: 'workgroup',
  lanes: 8,
  flight,
  workgroup: size,
});

/** The best first, for each kind of device. */
export const CANDIDATES: readonly Shape[] = [
  shuffle(8, 4, 64),
  shuffle(8, 8, 64),
  shuffle(8, 4, 128),
  shuffle(4, 1, 32),
  shuffle(4, 2, 32),
  workgroup(4, 64),
  workgroup(4, 32),
];

/** What tuning chooses from: four-lane shuffles only where the subgroup is too small for eight. */
export function candidatesFor(gpu: Gpu): Shape[] {
  const possible = CANDIDATES.filter((shape) => shapeIsPossible(shape, gpu));
  const wide = possible.some(({ variant, lanes }) => variant === 'shuffle' && lanes === 8);
  return possible.filter(({ lanes }) => !(wide && lanes === 4));
}

/** What runs where nobody tuned. */
export function defaultShape(gpu: Gpu): Shape {
  const shape = candidatesFor(gpu)[0];
  if (shape === undefined)
    throw new GpuError('gpu_limits', 'no form of the search fits the adapter', { device: gpu.name });
  return shape;
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

  /** Searches for about so long; the first dispatch, which starts with a pause, does not count. */
  async run(millis: number): Promise<void> {
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
      else {
        this.#hashes += count;
        this.#millis += took;
      }
      if (now - started < millis) flying.push(this.#submit());
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
  readonly turns?: number;
  readonly turnMillis?: number;
};

/** A later candidate must be this much better: noise must not choose. */
const CLEARLY_BETTER = 1.005;

export async function tune(
  gpu: Gpu,
  dataset: GpuDataset,
  options: TuneOptions = {},
  onTrial: (trial: Trial) => void = () => {},
): Promise<Tuning> {
  const { candidates = candidatesFor(gpu), warmUpMillis = 2000, turns = 3, turnMillis = 400 } = options;
  if (candidates.length === 0) return { shape: defaultShape(gpu) };
  const meters: { readonly shape: Shape; readonly meter: Meter }[] = [];
  for (const shape of candidates)
    meters.push({ shape, meter: new Meter(gpu, await compileSearch(gpu, shape, dataset.layout), dataset) });
  try {
    await meters[0]?.meter.run(warmUpMillis);
    meters[0]?.meter.forget();
    for (let turn = 0; turn < turns; turn++) for (const { meter } of meters) await meter.run(turnMillis);
    const trials = meters.map(({ shape, meter }) => ({ shape, hashesPerSecond: meter.hashesPerSecond }));
    for (const trial of trials) onTrial(trial);
    const best = trials.reduce((a, b) => (b.hashesPerSecond > a.hashesPerSecond * CLEARLY_BETTER ? b : a));
    return { shape: best.shape };
  } finally {
    for (const { meter } of meters) meter.destroy();
  }
}
