/**
 * Finds the fastest shape of the search on a device by trying, while it mines: the candidates take turns on real work. Big cards
 * run at their power limit, where the clock swings for seconds after every change: so the device is warmed up first, a
 * short heat decides who is far behind, and the others take several turns of which only the later part counts. The
 * result is a plain object that the miner remembers per device. Pure but for what it asks of a device. Loads in browsers.
 */
import type { Gpu } from './device.ts';
import { GpuError } from './gpu-error.ts';
import { type Shape, shapeIsPossible, type Variant } from './search.ts';

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

export type Trial = { readonly shape: Shape; readonly hashesPerSecond: number };

export type TurnTimes = {
  readonly warmUpMillis: number;
  /** One turn each decides who is far behind. */
  readonly heatMillis: number;
  /** The others take turns that are long enough for the clock to settle, and only what comes after that counts. */
  readonly turns: number;
  readonly settleMillis: number;
  readonly turnMillis: number;
};

export const TURN_TIMES: TurnTimes = {
  warmUpMillis: 2_000,
  heatMillis: 400,
  turns: 2,
  settleMillis: 500,
  turnMillis: 1_500,
};

/** Who is further behind after the heat is out. */
const OUT = 0.95;
/** A later candidate must be this much better: noise must not choose. */
const CLEARLY_BETTER = 1.003;

type Turn = { readonly candidate: number; readonly settle: number; readonly millis: number; readonly counts: boolean };

/**
 * Whose turn it is. Time is what the device worked, so that a pause or a lack of jobs changes nothing. The first
 * dispatch of a turn never counts: it may have waited for another's.
 */
export class Turns {
  readonly #count: number;
  readonly #times: TurnTimes;
  readonly #left: Turn[];
  #isFinal = false;
  #dispatches = 0;
  #worked = 0;
  #hashes: number[];
  #millis: number[];
  #result: number | undefined;

  constructor(candidates: number, times: TurnTimes = TURN_TIMES) {
    this.#count = candidates;
    this.#times = times;
    this.#hashes = new Array(candidates).fill(0);
    this.#millis = new Array(candidates).fill(0);
    const heat = Array.from({ length: candidates }, (_, candidate) => ({
      candidate,
      settle: 0,
      millis: times.heatMillis,
      counts: true,
    }));
    this.#left = [{ candidate: 0, settle: 0, millis: times.warmUpMillis, counts: false }, ...heat];
    if (candidates < 2) this.#result = 0;
  }

  /** Who searches now. */
  get current(): number {
    return this.#result ?? (this.#left[0] as Turn).candidate;
  }

  /** The best, once it is known. */
  get result(): number | undefined {
    return this.#result;
  }

  rate(candidate: number): number {
    const millis = this.#millis[candidate] as number;
    return millis === 0 ? 0 : ((this.#hashes[candidate] as number) / millis) * 1_000;
  }

  /** A dispatch of full length ended. */
  record(candidate: number, hashes: number, millis: number): void {
    const turn = this.#left[0];
    if (turn === undefined || this.#result !== undefined || turn.candidate !== candidate) return;
    if (this.#dispatches++ === 0) return;
    this.#worked += millis;
    if (turn.counts && this.#worked > turn.settle) {
      this.#hashes[candidate] = (this.#hashes[candidate] as number) + hashes;
      this.#millis[candidate] = (this.#millis[candidate] as number) + millis;
    }
    if (this.#worked < turn.settle + turn.millis) return;
    this.#left.shift();
    this.#dispatches = 0;
    this.#worked = 0;
    if (this.#left.length === 0) this.#next();
  }

  #next(): void {
    const all = Array.from({ length: this.#count }, (_, candidate) => candidate);
    const bar = OUT * Math.max(...all.map((candidate) => this.rate(candidate)));
    const finalists = all.filter((candidate) => this.rate(candidate) >= bar);
    if (this.#isFinal || finalists.length < 2) {
      this.#result = finalists.reduce((a, b) => (this.rate(b) > this.rate(a) * CLEARLY_BETTER ? b : a));
      return;
    }
    this.#isFinal = true;
    const { turns, settleMillis, turnMillis } = this.#times;
    for (const finalist of finalists) {
      this.#hashes[finalist] = 0;
      this.#millis[finalist] = 0;
    }
    for (let turn = 0; turn < turns; turn++)
      for (const candidate of finalists)
        this.#left.push({ candidate, settle: settleMillis, millis: turnMillis, counts: true });
  }
}
