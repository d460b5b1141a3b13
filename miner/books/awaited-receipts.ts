/**
 * Receipts that came by the connection and whose slices the pool's API has not shown yet. This detects a pool that
 * signs receipts and then hides the books, whether it omits a slice or answers as if no slice had closed. A pool that does
 * not answer hides nothing (books rule 30): that is a part that could not be checked.
 */
import { NEWER_MILLIS } from '../../protocol/books/books-evidence.ts';
import type { Receipt } from '../../protocol/books/receipt.ts';

type AwaitedReceipt = {
  readonly receipt: Receipt;
  /** Rounds in which the pool answered beyond the slice without showing it. */
  rounds: number;
  readonly at: Moment;
};

/** Receipts kept until their slices were compared, and rounds that a pool may take to show them. */
const MAX_KEPT = 96;
const HIDDEN_ROUNDS = 5;
/** Slices that may close without the pool's answers coming to them before that is an alarm. */
export const UNSHOWN_SLICES = 12;
/**
 * A pool keeps receipts for a day (books rule 18): newer ones must be available, and a miner that had an answer within
 * that time does not accept that they were dropped.
 */
export const KEPT_MILLIS = 23 * 3_600_000;

export type Clocks = {
  /** Never goes back, and stands while the miner does not run. */
  readonly nowMillis: () => number;
  readonly wallMillis: () => number;
};

/** When something happened, by the wall clock (0 if not known), and by the steady one if that was in this start of the miner. */
export type Moment = { readonly wallMillis: number; readonly steadyMillis: number | undefined };

export const momentOf = ({ nowMillis, wallMillis }: Clocks): Moment => ({
  wallMillis: wallMillis(),
  steadyMillis: nowMillis(),
});

/**
 * How long ago that was at least. A clock that was set back makes no time undone, and a moment that it has not reached yet
 * may be any time ago.
 */
export function sinceMillis({ wallMillis, steadyMillis }: Moment, clocks: Clocks): number {
  const passed = clocks.wallMillis() - wallMillis;
  if (steadyMillis !== undefined) return Math.max(passed, clocks.nowMillis() - steadyMillis);
  return passed < 0 ? Number.POSITIVE_INFINITY : passed;
}

export class AwaitedReceipts {
  readonly #clocks: Clocks;
  #awaited: AwaitedReceipt[] = [];

  constructor(clocks: Clocks) {
    this.#clocks = clocks;
  }

  /** False if it is already here. */
  add(receipt: Receipt): boolean {
    if (this.#awaited.some(({ receipt: other }) => receiptName(other) === receiptName(receipt))) return false;
    const added = { receipt, rounds: 0, at: momentOf(this.#clocks) };
    this.#awaited = [...this.#awaited, added].slice(-MAX_KEPT);
    return true;
  }

  /** Whether one of the same sheet is here. */
  hasSheet({ service, slice, boot }: Receipt): boolean {
    return this.of(service, slice).some((other) => other.boot === boot);
  }

  of(service: string, slice: number): Receipt[] {
    return this.#awaited
      .map(({ receipt }) => receipt)
      .filter((each) => each.service === service && each.slice === slice);
  }

  drop(service: string, slice: number): void {
    this.#awaited = this.#awaited.filter(({ receipt: each }) => each.service !== service || each.slice !== slice);
  }

  /** The oldest slice that is waited for; infinite without one. */
  get oldest(): number {
    return Math.min(Number.POSITIVE_INFINITY, ...this.#awaited.map(({ receipt }) => receipt.slice));
  }

  /**
   * After the pool was asked for all up to `through`: receipts whose slices it has not shown for too long. It keeps
   * those from `keptFrom` on; a miner that was offline for a day cannot compare its earlier receipts. `isDropped`: the
   * ledger shows that the others are as old.
   */
  hidden(through: number, keptFrom: number | null, isDropped = false): Receipt[] {
    this.#awaited = this.#awaited.filter(
      ({ receipt, at }) =>
        receipt.slice >= (keptFrom ?? 0) ||
        (sinceMillis(at, this.#clocks) < KEPT_MILLIS && !(isDropped && at.steadyMillis === undefined)),
    );
    return this.#awaited
      .filter((each) => each.receipt.slice <= through && ++each.rounds === HIDDEN_ROUNDS)
      .map(({ receipt }) => receipt);
  }

  /**
   * Slices that closed while answers of the pool did not come to them, when they are too many. Only receipts that came
   * well before the pool was asked, in this start: after an outage those of many slices come at once, and an answer may be
   * of before. `askedMillis` by the steady clock.
   */
  unshown(askedMillis: number): { readonly slice: number; readonly newest: number } | undefined {
    const slices = this.#awaited
      .filter(({ at }) => askedMillis - (at.steadyMillis ?? askedMillis) >= NEWER_MILLIS)
      .map(({ receipt }) => receipt.slice);
    const [slice, newest] = [Math.min(...slices), Math.max(...slices)];
    return newest - slice >= UNSHOWN_SLICES ? { slice, newest } : undefined;
  }

  save(): unknown {
    return this.#awaited.map(({ receipt, rounds, at }) => ({ receipt, rounds, atMillis: at.wallMillis }));
  }

  /** Throws if the input is malformed. */
  restore(saved: unknown): void {
    const list = saved as readonly (Omit<AwaitedReceipt, 'at'> & { readonly atMillis: number })[];
    this.#awaited = [...list].map(({ receipt, rounds, atMillis }) => {
      const at = { wallMillis: Number.isSafeInteger(atMillis) ? atMillis : 0, steadyMillis: undefined };
      return { receipt, rounds, at };
    });
  }
}

export const receiptName = ({ service, slice, boot, worker }: Receipt): string =>
  `${service}/${slice}/${boot}/${worker}`;

/** Drops exact repetitions. Receipts with one name and different contents are all kept: `judgeEvidence` compares them. */
export function distinctReceipts(receipts: readonly Receipt[]): readonly Receipt[] {
  // Nearly always there is one: nothing to compare it with.
  if (receipts.length < 2) return receipts;
  return [...new Map(receipts.map((receipt) => [JSON.stringify(Object.entries(receipt).sort()), receipt])).values()];
}
