/**
 * Detects whether this process was suspended (consensus rule 21). A process that was stopped, whose machine slept, or
 * whose memory was restored from a snapshot does not know what its key signed meanwhile. The clocks show it: either the
 * monotonic clock has a gap between two checks, or, if that one was stopped too, the system clock advanced without it.
 */
import type { SteadyClock, WallClock } from '../../../runtime/clock/clock.ts';

/** Milliseconds of the system clock, and of a monotonic one. */
export type Clocks = { readonly wall: number; readonly steady: number };

/**
 * Longer than a busy machine keeps a process waiting, and much shorter than neighbours keep the connections of one that
 * is silent (rule 22): until then its neighbours let no other process of its key sign.
 */
export const AWAY_MILLIS = 20_000;

/** `lookMillis`: the maximum time between two checks. */
export function wasAway(before: Clocks, after: Clocks, lookMillis: number): boolean {
  const ran = after.steady - before.steady;
  const jumped = Math.abs(after.wall - before.wall - ran);
  return Math.max(ran - lookMillis, jumped) > AWAY_MILLIS;
}

export class Presence {
  readonly #wall: WallClock;
  readonly #steady: SteadyClock;
  readonly #lookMillis: number;
  #last: Clocks | undefined;

  constructor(wall: WallClock, steady: SteadyClock, lookMillis: number) {
    this.#wall = wall;
    this.#steady = steady;
    this.#lookMillis = lookMillis;
  }

  /** Whether it was suspended since the last check. */
  look(): boolean {
    const before = this.#last;
    this.#last = { wall: this.#wall(), steady: this.#steady() };
    return before !== undefined && wasAway(before, this.#last, this.#lookMillis);
  }
}
