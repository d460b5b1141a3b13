/** For how long a pool's credit lists could not be read. A pool that fails is mended within half a day; one that hides its lists goes on failing. */

/** Failures in a row after which that is logged. */
const LOGGED_ROUNDS = 6;
/** Lists that cannot be read for this long count as hidden. */
const HIDDEN_MILLIS = 12 * 3_600_000;

export class HiddenLists {
  /** Rounds in a row in which lists could not be read, and when they could the last time. */
  #rounds = 0;
  #listedMillis: number | undefined;
  /** They could be read at least once. */
  wereRead = false;

  /** They were read. A pool that answers now and then, and never about what looked false, has not shown its lists. */
  read(isSuspicious: boolean, nowMillis: number): void {
    this.#rounds = 0;
    this.wereRead = true;
    if (!isSuspicious) this.#listedMillis = nowMillis;
  }

  /** They could not be read: what to say of it. */
  failed(nowMillis: number): 'log' | 'hidden' | undefined {
    this.#listedMillis ??= nowMillis;
    if (++this.#rounds === LOGGED_ROUNDS) return 'log';
    return this.#rounds > LOGGED_ROUNDS && nowMillis - this.#listedMillis > HIDDEN_MILLIS ? 'hidden' : undefined;
  }
}
