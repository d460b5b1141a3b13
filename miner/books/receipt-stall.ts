/**
 * Checks that a pool's receipts keep up with its books. A pool that always answers as if no slice had closed gives
 * nothing to compare: missing work would never be found.
 */
import { UNSHOWN_SLICES } from './awaited-receipts.ts';

/** A miner with rarer shares than this expects none: receipts are made only for work. */
const IDLE_MILLIS = 3_600_000;
/** As for lists: a failing pool is repaired within this time. */
const HIDDEN_MILLIS = 12 * 3_600_000;
/** Slices that must have closed meanwhile. */
const CLOSED_SLICES = 3;

export class ReceiptStall {
  readonly #nowMillis: () => number;
  #toldMillis: number | undefined;
  /** Since when they differ, and the newest closed slice then. */
  #since: { readonly atMillis: number; readonly closed: number } | undefined;
  #why: string | undefined;

  constructor(nowMillis: () => number) {
    this.#nowMillis = nowMillis;
  }

  /** The pool accepted work of this miner. */
  told(): void {
    this.#toldMillis = this.#nowMillis();
  }

  /** Why receipts are not compared; undefined if they are. */
  get why(): string | undefined {
    return this.#why;
  }

  /** Whether it has lasted so long that receipts count as hidden. `through`: the newest slice that they were shown of; `closed`: the newest that the books have. */
  isHidden(through: number, closed: number | undefined): boolean {
    const now = this.#nowMillis();
    const isIdle = this.#toldMillis === undefined || now - this.#toldMillis > IDLE_MILLIS;
    // Also if they claim to be of future slices: then no earlier ones would be requested.
    const isApart = closed !== undefined && Math.abs(closed - through) > UNSHOWN_SLICES;
    this.#since = isIdle || !isApart ? undefined : (this.#since ?? { atMillis: now, closed });
    // A pool that has no receipts yet makes the first when a slice closes, and slices may be long.
    const isStalled = this.#since !== undefined && (closed ?? 0) - this.#since.closed >= CLOSED_SLICES;
    this.#why = isStalled
      ? `the receipts that the pool shows end with slice ${through}, and its books with slice ${closed}`
      : undefined;
    return isStalled && now - (this.#since?.atMillis ?? now) > HIDDEN_MILLIS;
  }
}
