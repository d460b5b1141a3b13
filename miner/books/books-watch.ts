/**
 * Watches a pool's books for a miner (docs/miner.md, "The pool's books"): each finding is reported once, with evidence if the
 * pool's own signature proves it, and mining continues. What it knows of them is one state (`known-books.ts`), and each
 * property has a file with its checks: `accepted-work.ts`, `signed-books.ts`, `credit-lists.ts`, `own-blocks.ts`,
 * `rewards.ts`, `payments.ts`, `terms.ts`, and `unchecked-time.ts` for what could not be read. This file reads receipts and
 * puts them to the checks, `list-watch.ts` does so with all else that a pool shows, and `pool-books.ts` runs both.
 */
import type { VerifySignature } from '../../protocol/api/signed-answer.ts';
import type { BooksSources } from '../../protocol/books/books-evidence.ts';
import type { BooksService } from '../../protocol/books/books-slice.ts';
import { type PublishedTerms, sliceCutsOf } from '../../protocol/books/books-terms.ts';
import { isUnread, PoolSilence } from '../../protocol/books/pool-silence.ts';
import { OTHERS, poolKeyName, type Receipt, receiptRefusal } from '../../protocol/books/receipt.ts';
import { type Bytes, toHex } from '../../protocol/bytes.ts';
import type { ReceiptsOffer } from '../../protocol/stratum/receipt-messages.ts';
import { BoundedMap } from '../../runtime/bounded-map.ts';
import type { MonotonicClock, WallClock } from '../../runtime/clock/clock.ts';
import type { ToldBooks } from '../client/link-books.ts';
import { accounted, countedReceipt, type Shortfall, toldName } from './accepted-work.ts';
import type { BooksAlarm, Finding } from './books-alarms.ts';
import { KnownBooks } from './known-books.ts';
import { ListWatch } from './list-watch.ts';
import type { FoundBlock } from './own-blocks.ts';
import { type AnsweredSlice, ReadBudget, type ReceiptsAnswer, readReceiptsAnswer } from './pool-reads.ts';
import {
  checkSlice,
  hiddenSlice,
  KEPT_MILLIS,
  momentOf,
  ReceiptStall,
  type Signer,
  sinceMillis,
} from './signed-books.ts';
import { HiddenLists } from './unchecked-time.ts';

export type BooksWatchOptions = {
  readonly address: string;
  /** Undefined: all of the address together (svc-proxy). */
  readonly worker: string | undefined;
  /** URL of the API given by the user; otherwise the pool's own. */
  readonly api: string | undefined;
  /** The key that the user expects, in hex, or its short name. */
  readonly expectedKey: string | undefined;
  /** The payout threshold of this address in atoms, given by the user; otherwise the pool's statement counts. */
  readonly threshold?: bigint | undefined;
};

export type BooksWatchDependencies = {
  /** Reads a JSON document. */
  readonly read: (url: string) => Promise<unknown>;
  readonly alarm: (alarm: BooksAlarm) => void;
  readonly note: (message: string, fields: Readonly<Record<string, unknown>>) => void;
  /** Reports a warning to the user that is not an accusation. `note` without it. */
  readonly warn?: (message: string, fields: Readonly<Record<string, unknown>>) => void;
  readonly nowMillis: MonotonicClock;
  readonly wallMillis: WallClock;
  readonly verify?: VerifySignature;
  /** A node that the miner trusts; without one the ledger is not checked. */
  readonly node?: BooksSources['node'] | undefined;
  /** Without it credit lists are checked in every round. */
  readonly random?: () => number;
  /** The pool said whether it gives receipts; a receipt came. There may be something new to check. */
  readonly onOffer?: (offer: ReceiptsOffer) => void;
  readonly onReceipt?: () => void;
};

/** Slices requested again each time: another front end's receipts may arrive later. */
const OVERLAP = 3;
/** In one round, and until what was asked for counts as read: a day of ten thousand workers. */
const MAX_PAGES = 64;
const MAX_READ_PAGES = 8_192;
/** The fraction of rounds in which credit lists are checked. */
const LISTS_PART = 0.1;

/** Not an accusation: bridges and other pools give none. */
const NO_RECEIPTS = 'the pool offers no receipts, so its books are not checked: what it credits is its word alone';
const LISTS_ALONE =
  'the pool offers no receipts: its lists and payments are checked, but not whether all accepted work is in them';

const NEVER_SHOWN =
  'ACCEPTED WORK WAS NEVER SHOWN: the pool did not answer, or this miner was off, until its receipts were gone';

export class BooksWatch implements ToldBooks {
  readonly #options: BooksWatchOptions;
  readonly #dependencies: BooksWatchDependencies & Required<Pick<BooksWatchDependencies, 'warn'>>;
  readonly #known: KnownBooks;
  readonly #budget: ReadBudget;
  readonly #lists: ListWatch;
  readonly #stall: ReceiptStall;
  readonly #hiddenLists = new HiddenLists();
  readonly #verify: VerifySignature | undefined;
  /** The ledger shows that slices before the kept ones closed about a day ago. */
  #isDropped = false;
  #isChecking = false;
  #isFirst = true;
  /** The receipts that are being read, over several rounds where some fail. */
  #reading: Reading | undefined;
  /** The pool is of a release that does not give the receipts of one worker alone. */
  #isEarlier = false;
  #isUnoffered = false;
  /** Slices that were compared. */
  compared = 0;
  isChanged = false;

  /** `saved`: what was known before; a state that is malformed begins anew. */
  constructor(options: BooksWatchOptions, dependencies: BooksWatchDependencies, saved?: unknown) {
    this.#options = options;
    this.#dependencies = { ...dependencies, warn: dependencies.warn ?? dependencies.note };
    this.#known = KnownBooks.restored(saved, this.#dependencies);
    this.#verify = dependencies.verify && withKnownVerdicts(dependencies.verify);
    this.#budget = new ReadBudget(dependencies.read, dependencies.nowMillis);
    this.#stall = new ReceiptStall(dependencies.nowMillis);
    const watching = {
      ...dependencies,
      pool: (path: string) => this.#budget.read(`${this.#base}/api/v1/${path}`),
      node: dependencies.node ?? null,
      alarm: (...finding: Finding) => this.#alarm(...finding),
    };
    this.#lists = new ListWatch(options.address, watching, options.threshold, this.#known.lists);
  }

  get #base(): string {
    return this.api.replace(/\/+$/, '');
  }

  /** Credit lists that were proven, and those of which a part could not be checked. */
  get lists(): { readonly proven: number; readonly unchecked: number } {
    return this.#lists;
  }

  /** The newest slice that was compared. */
  get newest(): number {
    return this.#known.newest;
  }

  /** The address that the pool named, which the jobs pay. */
  pays(address: string | null): void {
    this.#lists.pays(address);
  }

  /** The service of a job; a connection has one service. */
  works(service: BooksService, before: BooksService | undefined): void {
    this.#lists.works(service);
    if (before !== undefined) this.#alarm('job_service', `${before} ${service}`, { before, service });
  }

  /** The height of a job that the pool gave. */
  worked(height: number): void {
    this.#lists.worked(height);
  }

  found(block: FoundBlock): void {
    this.#lists.found(block);
    this.isChanged = true;
  }

  get alarms(): number {
    return this.#known.alarms.count;
  }

  get api(): string {
    return this.#options.api ?? this.#known.api;
  }

  /** The pool's answer to the request for receipts. */
  offered(offer: ReceiptsOffer): void {
    if (offer === null) this.#offersNone();
    else this.#offers(offer);
    this.#dependencies.onOffer?.(offer);
  }

  #offersNone(): void {
    if (this.#known.key !== undefined) this.#alarm('receipts_ended', '', { key: poolKeyName(this.#known.key) });
    else if (!this.#isUnoffered) this.#dependencies.warn(this.api === '' ? NO_RECEIPTS : LISTS_ALONE, {});
    this.#isUnoffered = true;
  }

  #offers(offer: NonNullable<ReceiptsOffer>): void {
    const { expectedKey } = this.#options;
    const names = [toHex(offer.key), poolKeyName(offer.key)];
    const isExpected = expectedKey !== undefined && names.includes(expectedKey);
    const isKnown = expectedKey === undefined && (this.#known.key === undefined || toHex(this.#known.key) === names[0]);
    if (!isExpected && !isKnown) {
      const before = expectedKey ?? poolKeyName(this.#known.key as Uint8Array);
      this.#alarm('key_changed', names[1] as string, { before, now: names[1] });
      return;
    }
    if (this.#known.key === undefined) this.#dependencies.note('the key of the pool', { key: names[1] });
    this.isChanged ||= this.#known.key === undefined || this.#known.api !== offer.api;
    this.#known.key = offer.key;
    this.#known.api = offer.api;
    if (this.api === '')
      this.#dependencies.note('the pool does not say where its API is: its books are not checked (--pool-api)', {});
  }

  /** `boot` identifies the front end that answered. */
  told(boot: string, work: bigint, service?: BooksService): void {
    // Until the pool has said which slices are closed, receipts cannot be matched with the work.
    if (this.#known.key === undefined || this.#known.told.through === undefined) return;
    this.#known.told.tell(toldName(boot, service), work);
    this.#stall.told();
    this.isChanged = true;
  }

  /** A receipt that came by the connection. */
  received(receipt: Receipt): void {
    this.#dependencies.onReceipt?.();
    // Of thousands of rigs one receipt of a sheet is enough: each says the work of all of them.
    const isKnown = this.#options.worker === undefined && this.#known.awaited.hasSheet(receipt);
    if (this.#known.key === undefined || isKnown || !this.#isGood(receipt)) return;
    this.#count(receipt);
    this.isChanged = this.#known.awaited.add(receipt) || this.isChanged;
  }

  #count(receipt: Receipt, accountOpen?: ReadonlyMap<string, bigint>): void {
    const whole = countedReceipt(receipt, this.#options.worker, accountOpen);
    if (whole !== undefined && this.#known.told.receive(whole)) this.isChanged = true;
  }

  /** Once the pool has named its key. */
  get #signer(): Signer {
    return { key: this.#known.key as Uint8Array, verify: this.#verify };
  }

  #isGood(receipt: Receipt): boolean {
    const refusal = receiptRefusal(receipt, this.#known.key as Uint8Array, this.#verify);
    if (refusal === undefined && receipt.address === this.#options.address) return true;
    this.#alarm('receipt_bad', `${receipt.slice}`, { slice: receipt.slice, reason: refusal ?? 'address' });
    return false;
  }

  /** Reads the newly closed slices and compares them. A pool that does not answer is asked again the next time. */
  async check(): Promise<void> {
    const isUnsigned = this.#known.key === undefined;
    if (this.#isChecking || (isUnsigned && !this.#isUnoffered) || this.api === '') return;
    this.#isChecking = true;
    this.#budget.begin();
    try {
      // Separate: a pool without receipts still has to show its lists.
      const failure = isUnsigned ? undefined : await this.#round().then(() => undefined, asError);
      if (!isUnsigned) this.#known.unchecked.note('receipts', failure?.message ?? this.#stall.why);
      // Since when is kept over a restart.
      if (failure !== undefined) this.isChanged = true;
      // Jobs of another server may not say of which service they are.
      if (isUnsigned) for (const service of ['pplns', 'solo'] as const) this.#lists.works(service);
      // A list is made once per slice, and the requests of all miners are spread over time. The first round asks at once.
      const isTurn = (this.#dependencies.random?.() ?? 0) < LISTS_PART;
      const isUrgent = this.#lists.isSuspicious || this.#lists.isBehind;
      if (this.#isFirst || isUrgent || isTurn) await this.#checkLists();
      this.#isFirst = false;
      if (failure !== undefined) throw failure;
    } finally {
      this.#isChecking = false;
    }
  }

  /** Lists and signed records are read separately: an error in one does not prevent the check of the other. */
  async #checkLists(): Promise<void> {
    let failure: Error | undefined;
    for (const part of [
      () => this.#lists.round(),
      () => this.#known.signed.check((record) => this.#lists.signed(record)),
    ])
      await part().catch((error: Error) => {
        failure ??= error;
      });
    this.#known.unchecked.note('lists', failure?.message ?? this.#lists.unjudged);
    this.#known.unchecked.note('rewards', this.#lists.lapse);
    this.#known.unchecked.note('payments', this.#lists.paymentLapse);
    this.isChanged = true;
    const now = this.#dependencies.nowMillis();
    if (failure === undefined) return this.#hiddenLists.read(this.#lists.isSuspicious);
    const said = this.#hiddenLists.failed(isUnread(failure), now);
    if (said === 'log') this.#dependencies.note('credit lists cannot be read', { reason: failure.message });
    // A server that never signed nor showed anything may not have such books at all.
    else if (said === 'hidden' && (this.#known.key !== undefined || this.#hiddenLists.wereRead))
      this.#alarm('lists_hidden', '', { reason: failure.message });
  }

  async #round(): Promise<void> {
    const began = this.#dependencies.nowMillis();
    if (this.#known.told.through === undefined) {
      const { newest } = await this.#read(2_000_000_000);
      this.#known.told.close(newest ?? 0, began);
      this.#known.answered = momentOf(this.#dependencies);
      this.isChanged = true;
      return;
    }
    const oldest = Math.min(this.#known.told.through - OVERLAP, this.#known.awaited.oldest - 1);
    const start = {
      after: oldest,
      cursor: undefined,
      pages: 0,
      through: this.#known.told.through,
      keptFrom: undefined,
    };
    this.#reading ??= { beganMillis: began, askedMillis: began, ...start };
    await this.#readOn(this.#reading);
    const { through, keptFrom, beganMillis, askedMillis } = this.#reading;
    this.#reading = undefined;
    for (const short of this.#known.told.close(through, beganMillis)) await this.#missing(short);
    for (const receipt of this.#known.awaited.hidden(through, keptFrom ?? null, this.#isDropped))
      this.#alarm(...hiddenSlice(receipt, this.#signer));
    this.#unshown(askedMillis);
    if (this.#stall.isHidden(through, this.#lists.closed))
      this.#alarm('receipts_ended', 'shown', { reason: this.#stall.why });
    this.#known.answered = momentOf(this.#dependencies);
    this.isChanged = true;
  }

  /** Reads up to the last page, which may take several rounds; a failure loses nothing of what was read. */
  async #readOn(reading: Reading): Promise<void> {
    const wasAway = sinceMillis(this.#known.answered, this.#dependencies) >= KEPT_MILLIS;
    for (let page = 0; page < MAX_PAGES; page++) {
      const answer = await this.#read(reading.after, reading.cursor);
      // This miner was offline for longer than receipts are kept. The pool's statement alone must not reset the count.
      const isGone = reading.through > 0 && (answer.kept_from ?? 0) > reading.through + 1;
      if (reading.keptFrom === undefined) {
        this.#isDropped =
          this.#known.answered.steadyMillis === undefined && (await this.#areOld(answer.kept_from ?? 0));
        if (isGone && (wasAway || this.#isDropped)) this.#forget();
      }
      reading.keptFrom ??= answer.kept_from;
      reading.through = Math.max(reading.through, answer.through);
      for (const slice of answer.slices) this.#compare(slice);
      // Pages without end are documents too: after so many, what they do not show is not there.
      if (isLast(answer, reading.after) || ++reading.pages >= MAX_READ_PAGES) return;
      [reading.after, reading.cursor] = [answer.through, answer.next_cursor];
    }
    throw new PoolSilence('there are more receipts than are read in one round');
  }

  /**
   * Whether all slices before this one closed as long ago as receipts are kept, by the dates of the ledger: after a restart
   * the clock of this machine may hide how long the miner was off.
   */
  async #areOld(slice: number): Promise<boolean> {
    const { node } = this.#dependencies;
    if (slice === 0 || node === undefined || node === null) return false;
    try {
      const { terms } = (await this.#budget.read(`${this.#base}/api/v1/terms`)) as PublishedTerms;
      const cuts = sliceCutsOf(terms);
      if (cuts === undefined) return false;
      const [newest] = (await node.cuts({ limit: 1 })).cuts;
      const [closed] = (await node.cuts({ before: slice * cuts + 1, limit: 1 })).cuts;
      if (newest === undefined || closed?.height !== slice * cuts) return false;
      return newest.finalized_at_millis - closed.finalized_at_millis >= KEPT_MILLIS;
    } catch {
      return false;
    }
  }

  /** Not an accusation: who did not ask, or got no answer, for a day has seen nothing. But nobody can check that work any more. */
  #forget(): void {
    const work = this.#known.told.forgetAll();
    if (work > 0n)
      this.#dependencies.warn(NEVER_SHOWN, {
        work: String(work),
        since: new Date(this.#known.answered.wallMillis).toISOString(),
      });
  }

  async #read(after: number, cursor?: string, worker = this.#options.worker): Promise<ReceiptsAnswer> {
    // Without `after` the answer begins with slice 0, if that one is kept.
    const query = new URLSearchParams({
      ...(after < 0 ? {} : { after: `${after}` }),
      ...(cursor === undefined ? {} : { cursor }),
    });
    const askedMillis = this.#dependencies.nowMillis();
    const given = await this.#receipts(query, worker);
    try {
      return readReceiptsAnswer(given);
    } catch (error) {
      this.#unshown(askedMillis);
      throw error;
    }
  }

  /** Only those of one worker, or one of each sheet: others of the address may be any number, and strangers' inventions. */
  async #receipts(query: URLSearchParams, worker: string | undefined): Promise<unknown> {
    const base = `${this.#base}/api/v1/miners/${this.#options.address}`;
    if (worker === undefined)
      return this.#budget.read(`${base}/receipt-sheets?${new URLSearchParams([...query, ['of', 'account']])}`);
    if (!this.#isEarlier)
      try {
        const own = new URLSearchParams([...query, ['worker', worker || NO_NAME]]);
        return await this.#budget.read(`${base}/receipt-sheets?${own}`);
      } catch (error) {
        if (!(error instanceof PoolSilence) || error.status !== 404) throw error;
        this.#isEarlier = true;
      }
    return this.#budget.read(`${base}/receipts?${query}`);
  }

  /** One page at a time, so that memory does not depend on how many the pool sends. */
  async *#answers(after: number, worker: string | undefined): AsyncGenerator<ReceiptsAnswer> {
    let cursor: string | undefined;
    for (let page = 0, at = after; page < MAX_PAGES; page++) {
      const answer = await this.#read(at, cursor, worker);
      yield answer;
      if (isLast(answer, at)) return;
      [at, cursor] = [answer.through, answer.next_cursor];
    }
  }

  /** A pool whose answers do not come to what it signed is late; after too long it counts as hiding its books. */
  #unshown(askedMillis: number): void {
    const unshown = this.#known.awaited.unshown(askedMillis);
    if (unshown !== undefined) this.#alarm('books_hidden', 'unshown', unshown);
  }

  #compare(answered: AnsweredSlice): void {
    const { service, slice, receipts: shown, accountOpen } = answered;
    const isOf = (receipt: Receipt) => receipt.service === service && receipt.slice === slice;
    const kept = this.#known.awaited.of(service, slice);
    const receipts = [...kept, ...shown.filter((receipt) => isOf(receipt) && this.#isGood(receipt))];
    for (const receipt of receipts) this.#count(receipt, accountOpen);
    const [first] = receipts;
    if (first === undefined) return;
    for (const finding of checkSlice(answered, receipts, this.#signer)) this.#alarm(...finding);
    this.#known.awaited.drop(service, slice);
    // Tracked individually: one slice that is far ahead must not prevent the comparison of others.
    if (!this.#known.signed.add(first)) return;
    this.#known.newest = Math.max(this.newest, slice);
    this.compared++;
  }

  /**
   * A receipt may have been missed: all that the pool still keeps is requested before a shortfall is reported, and then
   * those of the others too. What they say is compared with the books: so a pool cannot invent them.
   */
  async #missing(short: Shortfall): Promise<void> {
    const boot = this.#known.told.boots.get(short.boot);
    if (boot === undefined) return;
    const received = () => (short.kind === 'late' ? boot.received : accounted(boot));
    const isThere = () => (short.kind === 'job_service' && boot.slice !== -1) || short.told <= received();
    const { worker: own } = this.#options;
    for (const worker of own === undefined ? [own] : [own, OTHERS]) {
      for await (const answer of this.#answers(Math.max(0, boot.from), worker))
        for (const slice of answer.slices) this.#compare(slice);
      if (isThere()) return;
    }
    const missing = short.told - received();
    this.#alarm(short.kind, `${short.boot}/${short.slice}`, { ...short, received: received(), missing });
  }

  #alarm(...finding: Finding): void {
    const alarm = this.#known.alarms.raise(...finding);
    if (alarm === undefined) return;
    this.isChanged = true;
    this.#dependencies.alarm(alarm);
  }

  save(unwritten?: ReadonlySet<string>): unknown {
    this.isChanged = false;
    return this.#known.save(unwritten);
  }
}

/** `through`: the newest slice that was read; `keptFrom`: the oldest that the pool keeps, by its first answer. */
type Reading = {
  readonly beganMillis: number;
  /** The same by the wall clock. */
  readonly askedMillis: number;
  after: number;
  cursor: string | undefined;
  pages: number;
  through: number;
  keptFrom: number | null | undefined;
};

/** The name of a worker without one, in the pool's API. */
const NO_NAME = '-';

const isLast = ({ more, through, next_cursor }: ReceiptsAnswer, after: number): boolean =>
  !more || (through <= after && next_cursor === undefined);

const asError = (error: unknown): Error => (error instanceof Error ? error : new Error(String(error)));

/** More than the sheets of an answer. */
const KEPT_VERDICTS = 512;

/**
 * Receipts of one sheet have one signature, and an answer of the pool has a thousand of them: it is verified once, good or
 * false. So a verification costs a pool the bytes of a signature, whatever it puts under its heads.
 */
function withKnownVerdicts(verify: VerifySignature): VerifySignature {
  const known = new BoundedMap<string, boolean>(KEPT_VERDICTS);
  let lastKey: Bytes | undefined;
  return (signature, message, publicKey) => {
    if (publicKey !== lastKey) known.clear();
    lastKey = publicKey;
    const name = toHex(message) + toHex(signature);
    const verdict = known.use(name) ?? verify(signature, message, publicKey);
    known.set(name, verdict);
    return verdict;
  };
}
