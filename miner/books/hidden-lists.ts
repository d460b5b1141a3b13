/**
 * How long a pool's credit lists could not be read. A failing pool is repaired within half a day; one that hides its
 * lists keeps failing.
 */

/** Failures in a row after which that is logged. */
const LOGGED_ROUNDS = 6;
/** Lists that cannot be read for this long count as hidden. */
const HIDDEN_MILLIS = 12 * 3_600_000;

export class HiddenLists {
  /** Consecutive rounds in which lists could not be read, and when they last could. */
  #rounds = 0;
  #listedMillis: number | undefined;
  /** They could be read at least once. */
  wereRead = false;

  /** They were read. A pool that answers sometimes, but never about suspicious lists, has not shown its lists. */
  read(isSuspicious: boolean, nowMillis: number): void {
    this.#rounds = 0;
    this.wereRead = true;
    if (!isSuspicious) this.#listedMillis = nowMillis;
  }

  /** They could not be read: returns the report. */
  failed(nowMillis: number): 'log' | 'hidden' | undefined {
    this.#listedMillis ??= nowMillis;
    if (++this.#rounds === LOGGED_ROUNDS) return 'log';
    return this.#rounds > LOGGED_ROUNDS && nowMillis - this.#listedMillis > HIDDEN_MILLIS ? 'hidden' : undefined;
  }
}
