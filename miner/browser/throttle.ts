/**
 * Works a part of the time: a backend that is paused and resumed in turns, so that a page, and the machine under it, stay
 * pleasant to use. Pure of everything but its timer.
 */

/** How long a turn is at least, and how long a device works on after it was paused: what it has in flight. */
export type Rhythm = { readonly periodMillis: number; readonly lagMillis: number };

export const CPU_RHYTHM: Rhythm = { periodMillis: 250, lagMillis: 0 };
/** Two dispatches of 45 ms, of which one and a half are still to be done on average. */
export const GPU_RHYTHM: Rhythm = { periodMillis: 1_000, lagMillis: 68 };

export type Throttled = { pause(): void; resume(): void };

export class Throttle {
  readonly #target: Throttled;
  readonly #rhythm: Rhythm;
  #part: number;
  #held = false;
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** `part` from 0.05 to 1 of the time is worked. */
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
    if (!this.#held) this.start();
  }

  start(): void {
    this.#held = false;
    clearTimeout(this.#timer);
    this.#work();
  }

  /** Not at all, until start(). */
  hold(): void {
    this.#held = true;
    clearTimeout(this.#timer);
    this.#target.pause();
  }

  stop(): void {
    clearTimeout(this.#timer);
  }

  #work(): void {
    this.#target.resume();
    if (this.#part < 1) this.#timer = setTimeout(() => this.#rest(), this.#working);
  }

  /** A turn is so long that what is in flight at its end does not exceed the part. */
  get #period(): number {
    return Math.max(this.#rhythm.periodMillis, this.#rhythm.lagMillis / this.#part);
  }

  get #working(): number {
    return this.#period * this.#part - this.#rhythm.lagMillis;
  }

  #rest(): void {
    this.#target.pause();
    this.#timer = setTimeout(() => this.#work(), this.#period - this.#working);
  }
}

const clamp = (part: number): number => Math.min(1, Math.max(0.05, Number.isFinite(part) ? part : 1));
