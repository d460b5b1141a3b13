/**
 * Checks that a pool pays its credits (books rule 29). The miner adds up its own credits in judged lists, and the
 * payments that its node shows. Credits older than the time limit and not paid must be less than the threshold;
 * otherwise that is a suspicion, not proof, because a wallet can also fail for long.
 */
import {
  type AskedPayments,
  newPayments,
  type Payment,
  readPayoutTerms,
  unlistedSum,
} from '../../protocol/books/account-payments.ts';
import { type BooksService, isWhole } from '../../protocol/books/books-slice.ts';
import {
  highestThreshold,
  judgeUnpaid,
  MAX_UNPAID_CREDITS,
  type Thresholds,
  UNPAID_EVIDENCE_FORMAT,
  type UnpaidEvidence,
  type UnpaidFacts,
  unlistedWords,
  unpaidBound,
} from '../../protocol/evidence/unpaid-evidence.ts';
import type { Finding } from './books-alarms.ts';
import type { Watching } from './pool-reads.ts';
import type { Clocks } from './signed-books.ts';

type PaymentReads = Omit<Watching, 'note'>;

/** A longer time without reading payments does not count: the pool had no chance to show them. */
const GAP_MILLIS = 3 * 3_600_000;
/** How long the pool's stated threshold is accepted before the user is warned. */
const WORD_DAYS = 7;
const WORD_MILLIS = WORD_DAYS * 24 * 3_600_000;
/** Payments kept individually; older ones are kept as a sum. A list older than all of these is not counted. */
const MAX_PAYMENTS = 4_096;

/** `atMillis`: in watched time. */
type Credit = { readonly atoms: bigint; readonly atMillis: number };
type Threshold = { readonly atoms: bigint; readonly atMillis: number; readonly isRaised: boolean };

export type PaymentRound = {
  /** Why the node is considered not to follow the chain. */
  readonly lapse: string | undefined;
  /** The newest slice that is closed. */
  readonly closed: number | undefined;
  /** The newest cut that the node has; undefined without one. */
  readonly height?: number | undefined;
  /** The pool's address. */
  readonly payer: string;
};

/** A pool that claims a much too high height in the first round would owe nothing for a long time. */
const FALLEN = 'the pool’s books are behind what they were when payments were first looked at, by its own word';

/** An account's credits and payments, and what the pool said of its threshold. */
export class KnownPayments {
  readonly #clocks: Clocks;
  /** By `service/slice`, oldest first. */
  readonly #credits = new Map<string, Credit>();
  #oldCredits = 0n;
  /** By transaction. */
  readonly #payments = new Map<string, Payment>();
  #oldPayments = 0n;
  /** The newest closed slice at the first round. Its list and earlier ones may have been paid before. */
  #from: number | undefined;
  /** Payments of cuts before this one existed at the first round, or are in the sum of old ones. */
  #fromHeight = 0;
  /** The lowest threshold that the pool ever stated. By raising it, a pool could defer every payment. */
  #least: bigint | undefined;
  /**
   * The highest recent threshold: after the account lowers it, the pool still has time to pay, and a temporary rise by
   * the pool stays on record.
   */
  #highest: Threshold | undefined;
  /**
   * Total time in which payments could be read: a miner that works some hours a day accumulates it too, and no pool can
   * reset it.
   */
  #watchedMillis = 0;
  /** By the steady clock. */
  #lookedMillis: number | undefined;
  #wasPaused = false;

  constructor(clocks: Clocks) {
    this.#clocks = clocks;
  }

  /** The account's credit in a list that was judged and is not false. */
  credited(service: BooksService, slice: number, atoms: bigint): void {
    const name = `${service}/${slice}`;
    const [oldest] = this.#credits.keys();
    const isBefore = this.#credits.size >= MAX_UNPAID_CREDITS && slice <= sliceOf(oldest ?? name);
    if (atoms === 0n || this.#credits.has(name) || isBefore || slice <= (this.#from ?? -1)) return;
    this.#credits.set(name, { atoms, atMillis: this.#watchedMillis + this.#passedAt(this.#clocks.nowMillis()) });
    for (const [first, { atoms: sum }] of this.#credits) {
      if (this.#credits.size <= MAX_UNPAID_CREDITS) break;
      this.#credits.delete(first);
      this.#oldCredits += sum;
    }
  }

  /** What the ledger is asked about; before the first round nothing is known. */
  asked(address: string, payer: string): AskedPayments {
    const known = this.#from === undefined ? null : this.#payments;
    return { address, payer, known, fromHeight: this.#fromHeight };
  }

  hasFallen(closed: number): boolean {
    return closed < (this.#from ?? closed);
  }

  /** Payments that were found, newest first. The first round begins the count: earlier credits may be covered by earlier payments. */
  found(payments: ReadonlyMap<string, Payment>, closed: number, newest: number): void {
    const isFirst = this.#from === undefined;
    for (const [transaction, payment] of [...payments].reverse())
      this.#pay(transaction, isFirst ? { ...payment, atoms: 0n } : payment);
    if (!isFirst) return;
    this.#from = closed;
    // A pool could name payments of older cuts, which a node that began with a snapshot does not have.
    this.#fromHeight = newest;
    for (const name of [...this.#credits.keys()]) if (sliceOf(name) <= closed) this.#credits.delete(name);
    for (const { height } of this.#payments.values()) this.#fromHeight = Math.max(this.#fromHeight, height);
  }

  #pay(transaction: string, payment: Payment): void {
    this.#payments.set(transaction, payment);
    for (const [first, { atoms, height }] of this.#payments) {
      if (this.#payments.size <= MAX_PAYMENTS) return;
      this.#payments.delete(first);
      this.#oldPayments += atoms;
      this.#fromHeight = Math.max(this.#fromHeight, height);
    }
  }

  /** A pause counts only if it was reported in both rounds: a pool that reports one occasionally gains nothing. */
  looked(isPaused: boolean): void {
    const now = this.#clocks.nowMillis();
    if (!(isPaused && this.#wasPaused)) this.#watchedMillis += this.#passedAt(now);
    [this.#lookedMillis, this.#wasPaused] = [now, isPaused];
  }

  /** Time since the last round, if it counts. */
  #passedAt(now: number): number {
    const passed = now - (this.#lookedMillis ?? now);
    return passed > 0 && passed <= GAP_MILLIS ? Math.round(passed) : 0;
  }

  /** `own`: given by the user; `date`: what the pool's dates are compared with. */
  threshold(own: bigint | undefined, said: Thresholds, bound: number, date: number): Threshold {
    const { minimum } = said;
    this.#least = this.#least === undefined || minimum < this.#least ? minimum : this.#least;
    const atoms = own ?? highestThreshold(said, date, bound);
    const isRaised = own === undefined && minimum > this.#least;
    const before = this.#highest;
    const isOver = before === undefined || atoms >= before.atoms || this.#watchedMillis - before.atMillis >= bound;
    this.#highest = isOver ? { atoms, atMillis: this.#watchedMillis, isRaised } : before;
    return this.#highest;
  }

  get least(): bigint | undefined {
    return this.#least;
  }

  get count(): number {
    return this.#payments.size;
  }

  get paid(): bigint {
    return [...this.#payments.values()].reduce((sum, { atoms }) => sum + atoms, this.#oldPayments);
  }

  /** Credits that were known for so long, in watched time. */
  creditedFor(millis: number): bigint {
    let sum = this.#oldCredits;
    for (const { atoms, atMillis } of this.#credits.values())
      if (atMillis <= this.#watchedMillis - millis) sum += atoms;
    return sum;
  }

  get credits(): UnpaidEvidence['credits'] {
    return [...this.#credits].map(([name, { atoms }]) => ({
      service: name.split('/')[0] as BooksService,
      slice: sliceOf(name),
      amount: String(atoms),
    }));
  }

  save(): unknown {
    const { nowMillis, wallMillis } = this.#clocks;
    const highest = this.#highest;
    return {
      credits: [...this.#credits].map(([name, { atoms, atMillis }]) => [name, String(atoms), atMillis]),
      payments: [...this.#payments].map(([transaction, { atoms, height }]) => [transaction, String(atoms), height]),
      oldCredits: String(this.#oldCredits),
      oldPayments: String(this.#oldPayments),
      from: this.#from ?? null,
      fromHeight: this.#fromHeight,
      wasPaused: this.#wasPaused,
      least: this.#least === undefined ? null : String(this.#least),
      highest: highest === undefined ? null : [String(highest.atoms), highest.atMillis, highest.isRaised],
      watched: this.#watchedMillis,
      looked: this.#lookedMillis === undefined ? null : Math.round(this.#lookedMillis - nowMillis() + wallMillis()),
    };
  }

  /** A malformed state is ignored as a whole: a part of it could cause a false accusation. */
  restore(saved: unknown): void {
    const read = readSaved(saved);
    if (read === undefined) return;
    for (const [name, credit] of read.credits) this.#credits.set(name, credit);
    for (const [transaction, payment] of read.payments) this.#payments.set(transaction, payment);
    [this.#oldCredits, this.#oldPayments] = [read.oldCredits, read.oldPayments];
    [this.#from, this.#fromHeight] = [read.from, read.fromHeight];
    [this.#least, this.#highest, this.#wasPaused] = [read.least, read.highest, read.wasPaused];
    this.#watchedMillis = read.watched;
    const { nowMillis, wallMillis } = this.#clocks;
    // The time since then, by a clock that may have been set meanwhile, counts up to the gap alone.
    this.#lookedMillis = read.looked === undefined ? undefined : nowMillis() - (wallMillis() - read.looked);
  }
}

export class PaymentWatch {
  readonly known: KnownPayments;
  readonly #address: string;
  /** Given by the user; undefined if the pool's statement counts. */
  readonly #threshold: bigint | undefined;
  readonly #dependencies: PaymentReads;
  #lapse: string | undefined;
  #hasFallen = false;

  constructor(
    address: string,
    threshold: bigint | undefined,
    dependencies: PaymentReads,
    known = new KnownPayments(dependencies),
  ) {
    this.known = known;
    this.#address = address;
    this.#threshold = threshold;
    this.#dependencies = dependencies;
  }

  /** Why payments cannot be judged while something is owed. */
  get lapse(): string | undefined {
    if (this.#hasFallen) return FALLEN;
    return this.known.creditedFor(Number.NEGATIVE_INFINITY) > this.known.paid ? this.#lapse : undefined;
  }

  /** No answer is no accusation: another pool may not have these routes. */
  async round(round: PaymentRound): Promise<void> {
    this.#lapse = await this.#look(round).catch((error: unknown) =>
      error instanceof Error ? error.message : String(error),
    );
  }

  async #look({ lapse, closed, height, payer }: PaymentRound): Promise<string | undefined> {
    const { known } = this;
    const { node, pool } = this.#dependencies;
    if (lapse !== undefined && node !== null) return lapse;
    if (closed === undefined) return 'the pool does not say how far its books are';
    this.#hasFallen = known.hasFallen(closed);
    const terms = await readPayoutTerms(this.#address, pool);
    const { found, denied } = await newPayments(known.asked(this.#address, payer), { pool, node });
    known.found(found, closed, height ?? 0);
    known.looked(terms.isPaused);
    const bound = unpaidBound(terms.intervalMillis);
    const { atoms: threshold, isRaised } = known.threshold(this.#threshold, terms, bound, await this.#date());
    const facts = { ...terms, threshold, credited: known.creditedFor(bound), paid: known.paid };
    if (judgeUnpaid(facts) === 'unpaid') {
      // Without the payments that the pool omits it would owe too much.
      const unlisted = node === null ? 0n : await unlistedSum(known.asked(this.#address, payer), node);
      if (judgeUnpaid({ ...facts, unlisted }) === 'unlisted') return unlistedWords(unlisted);
      this.#dependencies.alarm(...this.#unpaid(facts, Math.floor(bound / 3_600_000), denied));
    }
    if (terms.isPaused) return 'the pool says that its payouts are paused';
    if (isRaised) return `the pool pays this address from ${threshold} atoms on, ${known.least} before`;
    return this.#wordAlone(threshold, terms.advanced);
  }

  /**
   * A threshold chosen by the pool could defer every payment for ever, and so could an advance. But one may be the
   * account's own choice, or high for a small miner, and the other true, so this is not an accusation.
   */
  #wordAlone(threshold: bigint, advanced: bigint): string | undefined {
    const owed = this.known.creditedFor(WORD_MILLIS) - this.known.paid;
    const isOwnWord = this.#threshold !== undefined;
    if (owed <= 0n || (isOwnWord && (advanced === 0n || owed < threshold))) return undefined;
    const more = advanced === 0n ? '' : `, and that it once paid it ${advanced} more than it had credited`;
    return `${owed} atoms are not paid after ${WORD_DAYS} days, and the pool says that it pays this address from ${threshold} on${more}`;
  }

  /** What the pool's dates are compared with: the ledger's, where there is a node. */
  async #date(): Promise<number> {
    const { node, wallMillis } = this.#dependencies;
    const newest = node === null ? undefined : (await node.cuts({ limit: 1 })).cuts[0];
    return newest?.finalized_at_millis ?? wallMillis();
  }

  /** `denied`: payments that the pool lists and the ledger does not show. */
  #unpaid({ credited, paid, threshold }: UnpaidFacts, hours: number, denied: number): Finding {
    const { count, credits } = this.known;
    const owed = credited - paid;
    const evidence: UnpaidEvidence = {
      format: UNPAID_EVIDENCE_FORMAT,
      address: this.#address,
      threshold: String(threshold),
      owed: String(owed),
      at_millis: this.#dependencies.wallMillis(),
      for_hours: hours,
      credits,
    };
    return ['unpaid', String(count), { owed, threshold, hours, paid, denied }, evidence];
  }
}

const sliceOf = (name: string): number => Number(name.split('/')[1]);

function whole(value: unknown): number {
  if (!isWhole(value)) throw new TypeError('no whole number');
  return value;
}

type SavedPayments = {
  readonly credits: [string, string, number][];
  readonly payments: [string, string, number][];
  readonly highest: [string, number, boolean] | null;
  readonly [name: string]: unknown;
};

function readSaved(saved: unknown) {
  const read = (saved ?? {}) as SavedPayments;
  try {
    return {
      credits: read.credits.map(([name, atoms, atMillis]) => {
        if (!/^(pplns|solo)[/][0-9]{1,15}$/.test(name)) throw new TypeError('a credit');
        return [name, { atoms: BigInt(atoms), atMillis: whole(atMillis) }] as const;
      }),
      payments: read.payments.map(
        ([transaction, atoms, height]) =>
          [String(transaction), { atoms: BigInt(atoms), height: whole(height) }] as const,
      ),
      oldCredits: BigInt(read.oldCredits as string),
      oldPayments: BigInt(read.oldPayments as string),
      // Before the first cut of the pool's second slice the newest closed one is -1.
      from: read.from === null || read.from === -1 ? (read.from ?? undefined) : whole(read.from),
      fromHeight: whole(read.fromHeight),
      wasPaused: read.wasPaused === true,
      least: typeof read.least === 'string' ? BigInt(read.least) : undefined,
      highest: read.highest === null ? undefined : readThreshold(read.highest),
      watched: whole(read.watched),
      looked: isWhole(read.looked) ? read.looked : undefined,
    };
  } catch {
    return undefined;
  }
}

const readThreshold = ([atoms, atMillis, isRaised]: NonNullable<SavedPayments['highest']>): Threshold => ({
  atoms: BigInt(atoms),
  atMillis: whole(atMillis),
  isRaised: isRaised === true,
});
