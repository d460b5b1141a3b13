/**
 * Which pool to use, and when to try again: a pure decision. Pools are in the user's order; the first one that is not
 * waiting is taken, so that work returns to the first pool as soon as it answers. Waits double from 1 s to 60 s with
 * jitter, so that a thousand rigs do not come back in the same second.
 */

export const BACKOFF = { firstMillis: 1_000, lastMillis: 60_000 } as const;

/** `random` is from [0, 1): half of the wait is certain, half is drawn. */
export function backoffMillis(failures: number, random: number): number {
  const full = Math.min(BACKOFF.lastMillis, BACKOFF.firstMillis * 2 ** Math.min(30, Math.max(0, failures - 1)));
  return full / 2 + (full / 2) * random;
}

type Standing = { failures: number; notBefore: number };

export class PoolOrder {
  readonly #pools: Standing[];

  constructor(count: number) {
    this.#pools = Array.from({ length: count }, () => ({ failures: 0, notBefore: Number.NEGATIVE_INFINITY }));
  }

  failed(pool: number, now: number, random: number, atLeastMillis = 0): void {
    const standing = this.#pools[pool] as Standing;
    standing.failures++;
    standing.notBefore = now + Math.max(atLeastMillis, backoffMillis(standing.failures, random));
  }

  /** It gave work. A pool that gives work and breaks again each time still backs off once from the start. */
  worked(pool: number): void {
    this.#pools[pool] = { failures: 0, notBefore: Number.NEGATIVE_INFINITY };
  }

  failures(pool: number): number {
    return (this.#pools[pool] as Standing).failures;
  }

  /** The pool to use now, among the first `limit`; undefined when all of them are waiting. */
  choose(now: number, limit = this.#pools.length): number | undefined {
    const found = this.#pools.slice(0, limit).findIndex((standing) => standing.notBefore <= now);
    return found < 0 ? undefined : found;
  }

  /** Milliseconds until a pool may be tried. */
  wait(now: number): number {
    return Math.max(0, Math.min(...this.#pools.map((standing) => standing.notBefore - now)));
  }

  /** After a sleep of the machine the waits are over: what failed before says nothing any more. */
  forgetWaits(now: number): void {
    for (const standing of this.#pools) standing.notBefore = Math.min(standing.notBefore, now);
  }
}
