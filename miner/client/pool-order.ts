/**
 * Decides which pool to use, and when to retry. Pure. Pools are in the user's order; the first one that is not waiting
 * is taken, so that work returns to the first pool as soon as it answers. Waits double from 1 s to 60 s with jitter, so
 * that a thousand rigs do not come back in the same second. A pool that gives work and fails soon after counts as
 * failed: only one that worked for a while starts again from 1 s. A pool that was left because its work is worthless is
 * not tried again soon while another one works.
 */

export const BACKOFF = { firstMillis: 1_000, lastMillis: 60_000, steadyMillis: 60_000 } as const;

/**
 * The longest wait that a server can ask for, by a ban or a reconnect. On a plain connection anyone on the path can
 * forge such a message, so it must not stop a miner for long; a longer ban is simply received again.
 */
export const LONGEST_WAIT_MILLIS = 120_000;

/** How long another working pool is preferred to one left for worthless work: doubled each time. */
const AVOID = { firstMillis: 600_000, lastMillis: 1_800_000, forgetMillis: 3_600_000 } as const;

/** `random` is from [0, 1): half of the wait is certain, half is drawn. */
export function backoffMillis(failures: number, random: number): number {
  const full = Math.min(BACKOFF.lastMillis, BACKOFF.firstMillis * 2 ** Math.min(30, Math.max(0, failures - 1)));
  return full / 2 + (full / 2) * random;
}

type Standing = {
  failures: number;
  notBefore: number;
  worksSince: number | undefined;
  /** How often it was left for worthless work, and until when another one is preferred. */
  left: number;
  avoidUntil: number;
};

export class PoolOrder {
  readonly #pools: Standing[];

  constructor(count: number) {
    this.#pools = Array.from({ length: count }, () => ({
      failures: 0,
      notBefore: Number.NEGATIVE_INFINITY,
      worksSince: undefined,
      left: 0,
      avoidUntil: Number.NEGATIVE_INFINITY,
    }));
  }

  #of(pool: number): Standing {
    return this.#pools[pool] as Standing;
  }

  /** Its connection ended, or was refused. `asked` is the delay requested by the server. */
  failed(pool: number, now: number, random: number, asked = 0): void {
    this.#of(pool).notBefore = now + this.#wait(pool, now, random, asked);
  }

  /** It was left because its work is worthless; failed() is called as well. */
  avoid(pool: number, now: number): void {
    const standing = this.#of(pool);
    if (now - standing.avoidUntil > AVOID.forgetMillis) standing.left = 0;
    standing.avoidUntil = now + Math.min(AVOID.lastMillis, AVOID.firstMillis * 2 ** Math.min(30, standing.left));
    standing.left++;
  }

  /** It asks for a reconnect: how long until then. The pool may be used meanwhile. */
  moves(pool: number, now: number, random: number, asked: number): number {
    return this.#wait(pool, now, random, asked);
  }

  #wait(pool: number, now: number, random: number, asked: number): number {
    const standing = this.#of(pool);
    if (standing.worksSince !== undefined && now - standing.worksSince >= BACKOFF.steadyMillis) standing.failures = 0;
    standing.worksSince = undefined;
    standing.failures++;
    return Math.max(Math.min(asked, LONGEST_WAIT_MILLIS), backoffMillis(standing.failures, random));
  }

  /** It gave work. */
  worked(pool: number, now: number): void {
    const standing = this.#of(pool);
    standing.worksSince ??= now;
    standing.notBefore = Number.NEGATIVE_INFINITY;
  }

  failures(pool: number): number {
    return this.#of(pool).failures;
  }

  /** The pool to use now; undefined when all are waiting. An avoided one is better than none. */
  choose(now: number): number | undefined {
    return this.better(this.#pools.length, now) ?? this.#first(({ notBefore }) => notBefore <= now);
  }

  /** A pool before the working `current` one that should be tried now. */
  better(current: number, now: number): number | undefined {
    const found = this.#first(({ notBefore, avoidUntil }) => notBefore <= now && avoidUntil <= now);
    return found !== undefined && found < current ? found : undefined;
  }

  #first(isFit: (standing: Standing) => boolean): number | undefined {
    const found = this.#pools.findIndex(isFit);
    return found < 0 ? undefined : found;
  }

  /** Milliseconds until a pool may be tried. */
  wait(now: number): number {
    return Math.max(0, Math.min(...this.#pools.map((standing) => standing.notBefore - now)));
  }

  /** After the machine slept, all waits end: earlier failures no longer matter. */
  forgetWaits(now: number): void {
    for (const standing of this.#pools) standing.notBefore = Math.min(standing.notBefore, now);
  }
}
