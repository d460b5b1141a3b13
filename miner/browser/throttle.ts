/**
 * Works a part of the time: a backend that is paused and resumed in turns of a quarter of a second, so that a page, and the
 * machine under it, stay pleasant to use. Pure of everything but its timer.
 */

const PERIOD_MILLIS = 250;

export type Throttled = { pause(): void; resume(): void };

export class Throttle {
  readonly #target: Throttled;
  #part: number;
  #held = false;
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** `part` from 0.05 to 1 of the time is worked. */
  constructor(target: Throttled, part: number) {
    this.#target = target;
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
    if (this.#part < 1) this.#timer = setTimeout(() => this.#rest(), PERIOD_MILLIS * this.#part);
  }

  #rest(): void {
    this.#target.pause();
    this.#timer = setTimeout(() => this.#work(), PERIOD_MILLIS * (1 - this.#part));
  }
}

const clamp = (part: number): number => Math.min(1, Math.max(0.05, Number.isFinite(part) ? part : 1));
