/**
 * Whether this process ran all the time (consensus rule 21). One that was suspended, whose machine slept, or whose memory was put back from a snapshot does not know what its key signed meanwhile. It finds out by its clocks: either the
 * steady one shows a gap between two looks that ticks would have filled, or, where that one was suspended too, the clock of the system went on without it.
 */

/** Milliseconds of the clock of the system, and of one that only runs. */
export type Clocks = { readonly wall: number; readonly steady: number };

/** Longer than a busy machine keeps a process waiting, and much shorter than neighbours keep the connections of one that is silent (rule 22): until then no other process with its key gets to sign where they know this one. */
export const AWAY_MILLIS = 20_000;

/** `lookMillis`: the time after which there is a new look at the latest. */
export function wasAway(before: Clocks, after: Clocks, lookMillis: number): boolean {
  const ran = after.steady - before.steady;
  const jumped = Math.abs(after.wall - before.wall - ran);
  return Math.max(ran - lookMillis, jumped) > AWAY_MILLIS;
}

export class Presence {
  readonly #wall: () => number;
  readonly #steady: () => number;
  readonly #lookMillis: number;
  #last: Clocks | undefined;

  constructor(wall: () => number, steady: () => number, lookMillis: number) {
    this.#wall = wall;
    this.#steady = steady;
    this.#lookMillis = lookMillis;
  }

  /** Whether it was away since the last look. */
  look(): boolean {
    const before = this.#last;
    this.#last = { wall: this.#wall(), steady: this.#steady() };
    return before !== undefined && wasAway(before, this.#last, this.#lookMillis);
  }
}
