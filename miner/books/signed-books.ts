/**
 * What a pool signed it must show: the slices of its receipts, receipts that keep up with its books, and the records that
 * it signed as those that it publishes. A pool that does not answer hides nothing (books rule 30): that is a part that
 * could not be checked.
 */
import type { VerifySignature } from '../../protocol/api/signed-answer.ts';
import { NEWER_MILLIS } from '../../protocol/books/books-evidence.ts';
import type { SliceRecord } from '../../protocol/books/books-slice.ts';
import type { Receipt } from '../../protocol/books/receipt.ts';
import { type Bytes, toHex } from '../../protocol/bytes.ts';
import {
  EVIDENCE_FORMAT,
  type Evidence,
  isSignedRecord,
  judgeEvidence,
} from '../../protocol/evidence/receipt-evidence.ts';
import type { MonotonicClock, MonotonicMillis, WallClock, WallMillis } from '../../runtime/clock/clock.ts';
import type { Finding } from './books-alarms.ts';
import type { AnsweredSlice } from './pool-reads.ts';

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
  readonly nowMillis: MonotonicClock;
  readonly wallMillis: WallClock;
};

/** When something happened, by the wall clock (0 if not known), and by the steady one if that was in this start of the miner. */
export type Moment = { readonly wallMillis: WallMillis; readonly steadyMillis: MonotonicMillis | undefined };

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

/**
 * Receipts that came by the connection and whose slices the pool's API has not shown yet. This detects a pool that
 * signs receipts and then hides the books, whether it omits a slice or answers as if no slice had closed.
 */
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

const receiptName = ({ service, slice, boot, worker }: Receipt): string => `${service}/${slice}/${boot}/${worker}`;

/** Drops exact repetitions. Receipts with one name and different contents are all kept: `judgeEvidence` compares them. */
function distinctReceipts(receipts: readonly Receipt[]): readonly Receipt[] {
  // Nearly always there is one: nothing to compare it with.
  if (receipts.length < 2) return receipts;
  return [...new Map(receipts.map((receipt) => [JSON.stringify(Object.entries(receipt).sort()), receipt])).values()];
}

/** The key of the pool, and how its signatures are verified. */
export type Signer = { readonly key: Bytes; readonly verify: VerifySignature | undefined };

const evidenceOf = ({ key }: Signer, found: Pick<Evidence, 'receipts' | 'leaf' | 'record'>): Evidence => ({
  format: EVIDENCE_FORMAT,
  pool_key: toHex(key),
  ...found,
});

/** The finding that the pool does not show the slice of a receipt. */
export function hiddenSlice(receipt: Receipt, signer: Signer): Finding {
  const { slice, service } = receipt;
  const evidence = evidenceOf(signer, { receipts: [receipt], leaf: null, record: null });
  return ['books_hidden', receiptName(receipt), { slice, service }, evidence];
}

/** What the pool shows of a slice, held against the receipts that it signed for it. */
export function* checkSlice(
  { service, slice, leaf, record }: AnsweredSlice,
  receipts: readonly Receipt[],
  signer: Signer,
): Generator<Finding> {
  const evidence = evidenceOf(signer, { receipts: distinctReceipts(receipts), leaf, record });
  const verdict = judgeEvidence(evidence, signer.key, signer.verify);
  const [what, at] = [`${service}/${slice}`, { slice, service }];
  if (verdict.verdict === 'convicts')
    yield verdict.charge === 'two_books'
      ? ['two_books', what, at, evidence]
      : ['books_less', what, { ...at, signed: verdict.signed, booked: verdict.booked }, evidence];
  else if (verdict.why !== 'books_suffice' || !isSignedRecord(record, receipts[0] as Receipt))
    yield ['other_books', what, { ...at, reason: verdict.why }, evidence];
}

/** The slice record as given in a receipt. */
export type SignedRecord = Pick<SliceRecord, 'network' | 'service' | 'slice' | 'chain'>;

/** Kept at once; the oldest are dropped. */
const MAX_SIGNED = 8;
/** Names of those that were kept once: more than an answer of the pool repeats. */
const MAX_NAMES = 64;

/** Signed records of the pool that still have to be compared with its published ones and with the ledger. */
export class SignedRecords {
  #open: readonly SignedRecord[] = [];
  readonly #names = new Set<string>();

  /** False for one that was here before. */
  add({ network, service, slice, chain }: SignedRecord): boolean {
    const name = `${service}/${slice}`;
    if (this.#names.has(name)) return false;
    this.#names.add(name);
    const [oldest] = this.#names;
    if (this.#names.size > MAX_NAMES && oldest !== undefined) this.#names.delete(oldest);
    this.#open = [...this.#open, { network, service, slice, chain }].slice(-MAX_SIGNED);
    return true;
  }

  /**
   * Records that cannot be checked now are retried in the next round: an error of the pool must not end the check. Of
   * those that no payout commits to yet, the newest of each service is kept: its chain covers all earlier ones, and the
   * pool must not publish another until then.
   */
  async check(judge: (record: SignedRecord) => Promise<'settled' | 'kept' | 'open'>): Promise<void> {
    let failure: unknown;
    const kept: SignedRecord[] = [];
    for (const record of this.#open)
      try {
        const state = await judge(record);
        if (state === 'settled') this.#drop(record);
        if (state === 'kept') kept.push(record);
      } catch (error) {
        failure ??= error;
      }
    for (const record of kept)
      if (kept.some(({ service, slice }) => service === record.service && slice > record.slice)) this.#drop(record);
    if (failure !== undefined) throw failure;
  }

  #drop(record: SignedRecord): void {
    this.#open = this.#open.filter((each) => each !== record);
  }

  save(): unknown {
    return this.#open;
  }

  /** A malformed state is ignored. */
  restore(saved: unknown): void {
    if (Array.isArray(saved))
      for (const each of saved as SignedRecord[]) if (typeof each?.chain === 'string') this.add(each);
  }
}

/** A miner with rarer shares than this expects none: receipts are made only for work. */
const IDLE_MILLIS = 3_600_000;
/** As for lists: a failing pool is repaired within this time. */
const HIDDEN_MILLIS = 12 * 3_600_000;
/** Slices that must have closed meanwhile. */
const CLOSED_SLICES = 3;

/**
 * Whether a pool's receipts keep up with its books. A pool that always answers as if no slice had closed gives nothing to
 * compare: missing work would never be found.
 */
export class ReceiptStall {
  readonly #nowMillis: MonotonicClock;
  #toldMillis: number | undefined;
  /** Since when they differ, and the newest closed slice then. */
  #since: { readonly atMillis: number; readonly closed: number } | undefined;
  #why: string | undefined;

  constructor(nowMillis: MonotonicClock) {
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
