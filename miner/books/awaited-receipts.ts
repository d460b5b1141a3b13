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
  /** When it arrived, by the wall clock; 0 if not known. */
  readonly atMillis: number;
  /** It came before this start of the miner: slices may have closed since then while the miner was not running. */
  readonly isOld: boolean;
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

export class AwaitedReceipts {
  readonly #wallMillis: () => number;
  #awaited: AwaitedReceipt[] = [];

  constructor(wallMillis: () => number) {
    this.#wallMillis = wallMillis;
  }

  /** False if it is already here. */
  add(receipt: Receipt): boolean {
    if (this.#awaited.some(({ receipt: other }) => receiptName(other) === receiptName(receipt))) return false;
    const added = { receipt, rounds: 0, atMillis: this.#wallMillis(), isOld: false };
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
   * those from `keptFrom` on; a miner that was offline for a day cannot compare its earlier receipts.
   */
  hidden(through: number, keptFrom: number | null): Receipt[] {
    const now = this.#wallMillis();
    this.#awaited = this.#awaited.filter(
      ({ receipt, atMillis }) => receipt.slice >= (keptFrom ?? 0) || now - atMillis < KEPT_MILLIS,
    );
    return this.#awaited
      .filter((each) => each.receipt.slice <= through && ++each.rounds === HIDDEN_ROUNDS)
      .map(({ receipt }) => receipt);
  }

  /**
   * Slices that closed while answers of the pool did not come to them, when they are too many. Only receipts that came
   * well before the pool was asked: after an outage those of many slices come at once, and an answer may be of before.
   */
  unshown(askedMillis: number): { readonly slice: number; readonly newest: number } | undefined {
    const slices = this.#awaited
      .filter(({ isOld, atMillis }) => !isOld && askedMillis - atMillis >= NEWER_MILLIS)
      .map(({ receipt }) => receipt.slice);
    const [slice, newest] = [Math.min(...slices), Math.max(...slices)];
    return newest - slice >= UNSHOWN_SLICES ? { slice, newest } : undefined;
  }

  save(): unknown {
    return this.#awaited.map(({ receipt, rounds, atMillis }) => ({ receipt, rounds, atMillis }));
  }

  /** Throws if the input is malformed. */
  restore(saved: unknown): void {
    const list = saved as readonly Pick<AwaitedReceipt, 'receipt' | 'rounds' | 'atMillis'>[];
    this.#awaited = [...list].map(({ receipt, rounds, atMillis }) => {
      const at = Number.isSafeInteger(atMillis) ? atMillis : 0;
      return { receipt, rounds, atMillis: at, isOld: true };
    });
  }
}

export const receiptName = ({ service, slice, boot, worker }: Receipt): string =>
  `${service}/${slice}/${boot}/${worker}`;

/** Drops exact repetitions. Receipts with one name and different contents are all kept: `judgeEvidence` compares them. */
export const distinctReceipts = (receipts: readonly Receipt[]): Receipt[] => [
  ...new Map(receipts.map((receipt) => [JSON.stringify(Object.entries(receipt).sort()), receipt])).values(),
];
