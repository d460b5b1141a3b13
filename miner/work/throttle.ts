/**
 * Makes devices work only a fraction of the time, in turns, so that the machine stays usable. Pure except for its
 * timer. Loads in browsers.
 */

/** Minimum length of a turn, and how long a device keeps working after a pause because of work in flight. */
export type Rhythm = { readonly periodMillis: number; readonly lagMillis: number };

export const CPU_RHYTHM: Rhythm = { periodMillis: 250, lagMillis: 0 };
/** Two dispatches of 45 ms, of which one and a half are still to be done on average. */
export const GPU_RHYTHM: Rhythm = { periodMillis: 1_000, lagMillis: 68 };

export const rhythmOf = (kind: 'webgpu' | 'wasm'): Rhythm => (kind === 'webgpu' ? GPU_RHYTHM : CPU_RHYTHM);

export type Throttled = { rest(): void; work(): void };

export class Throttle {
  readonly #target: Throttled;
  readonly #rhythm: Rhythm;
  #part: number;
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** `part`: fraction of the time to work, from 0.05 to 1. */
  constructor(target: Throttled, part: number, rhythm: Rhythm = CPU_RHYTHM) {
    this.#target = target;
    this.#rhythm = rhythm;
    this.#part = clamp(part);
  }

  get part(): number {
    return this.#part;
  }

  set part(value: number) {
    this.#part = clamp(value);
    this.start();
  }

  start(): void {
    clearTimeout(this.#timer);
    this.#work();
  }

  stop(): void {
    clearTimeout(this.#timer);
  }

  #work(): void {
    this.#target.work();
    if (this.#part < 1) this.#timer = setTimeout(() => this.#rest(), this.#working);
  }

  /** A turn is long enough that the work in flight at its end does not exceed the fraction. */
  get #period(): number {
    return Math.max(this.#rhythm.periodMillis, this.#rhythm.lagMillis / this.#part);
  }

  get #working(): number {
    return this.#period * this.#part - this.#rhythm.lagMillis;
  }

  #rest(): void {
    this.#target.rest();
    this.#timer = setTimeout(() => this.#work(), this.#period - this.#working);
  }
}

const clamp = (part: number): number => Math.min(1, Math.max(0.05, Number.isFinite(part) ? part : 1));
