/**
 * Accepted shares in the log: the first at once, then one line a minute with their number and work; with `isVerbose` a
 * line for each, as far as a person could read them. Pure; the time is passed in.
 */
import type { MonotonicClock } from '../../runtime/clock/clock.ts';
import { LINE_LIMIT, type Write } from './line-limit.ts';

/** Between two lines of `isVerbose`: shares that come faster share one. */
export const VERBOSE_MILLIS = 50;

export class AcceptedLine {
  readonly #write: Write;
  readonly #now: MonotonicClock;
  readonly #everyMillis: number;
  #writtenAt: number | undefined;
  #count = 0;
  #work = 0n;

  constructor(write: Write, now: MonotonicClock, isVerbose = false) {
    this.#everyMillis = isVerbose ? VERBOSE_MILLIS : LINE_LIMIT.everyMillis;
    this.#write = write;
    this.#now = now;
  }

  add(device: number, work: bigint): void {
    const isQuiet = this.#count === 0 && (this.#writtenAt === undefined || this.#hasPassed(this.#writtenAt));
    if (isQuiet) {
      this.#writtenAt = this.#now();
      this.#write('info', 'share accepted', { device, work });
      return;
    }
    this.#count++;
    this.#work += work;
    this.tick();
  }

  #hasPassed(since: number): boolean {
    return Math.abs(this.#now() - since) >= this.#everyMillis;
  }

  /** Call about once a second. */
  tick(): void {
    if (this.#writtenAt === undefined || !this.#hasPassed(this.#writtenAt)) return;
    if (this.#count === 0) {
      this.#writtenAt = undefined;
      return;
    }
    this.#writtenAt = this.#now();
    this.#write('info', 'shares accepted', { count: this.#count, work: this.#work });
    this.#count = 0;
    this.#work = 0n;
  }
}
