/**
 * How long a pool's answers have left its credit lists out, or have stayed behind. A failing pool is repaired within
 * half a day; one that hides its lists keeps failing. Time in which nothing could be read says nothing (books rule 30).
 */

/** Failures in a row after which that is logged. */
const LOGGED_ROUNDS = 6;
/** Lists that answers leave out for this long count as hidden. */
const HIDDEN_MILLIS = 12 * 3_600_000;

export class HiddenLists {
  /** Consecutive rounds in which lists could not be read. */
  #rounds = 0;
  /** Since when answers leave them out. */
  #omittedMillis: number | undefined;
  /** They could be read at least once. */
  wereRead = false;

  /** They were read. A pool that answers sometimes, but never about suspicious lists, has not shown its lists. */
  read(isSuspicious: boolean): void {
    this.#rounds = 0;
    this.wereRead = true;
    if (!isSuspicious) this.#omittedMillis = undefined;
  }

  /** They could not be read, or were not there: returns the report. */
  failed(isUnread: boolean, nowMillis: number): 'log' | 'hidden' | undefined {
    this.#rounds++;
    if (!isUnread) this.#omittedMillis ??= nowMillis;
    if (this.#rounds === LOGGED_ROUNDS) return 'log';
    const isLong = this.#omittedMillis !== undefined && nowMillis - this.#omittedMillis > HIDDEN_MILLIS;
    return !isUnread && this.#rounds > LOGGED_ROUNDS && isLong ? 'hidden' : undefined;
  }
}
