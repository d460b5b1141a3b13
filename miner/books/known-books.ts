/**
 * All that a miner knows of one pool's books: what the pool accepted, signed, showed and announced, and what was found so far.
 * It is one state, kept over a restart as one document; the checks of this room look at it and at what was just read.
 * Nothing here asks anybody.
 */
import { isWhole } from '../../protocol/books/books-slice.ts';
import { type Bytes, fromHex, toHex } from '../../protocol/bytes.ts';
import { ToldLedger } from './accepted-work.ts';
import { BooksAlarms } from './books-alarms.ts';
import { CreditLists } from './credit-lists.ts';
import { OwnBlocks } from './own-blocks.ts';
import { KnownPayments } from './payments.ts';
import { DueRewards } from './rewards.ts';
import { AwaitedReceipts, type Clocks, type Moment, SignedRecords } from './signed-books.ts';
import { KnownTerms } from './terms.ts';
import { UncheckedTime, type UncheckedTimeDependencies } from './unchecked-time.ts';

/** What it knows of lists, blocks, rewards, payments and terms. */
export class KnownLists {
  readonly lists = new CreditLists();
  readonly blocks = new OwnBlocks();
  readonly terms = new KnownTerms();
  readonly rewards = new DueRewards();
  readonly payments: KnownPayments;

  constructor(clocks: Clocks) {
    this.payments = new KnownPayments(clocks);
  }

  save(): unknown {
    return {
      ...this.lists.save(),
      blocks: this.blocks.save(),
      payments: this.payments.save(),
      terms: this.terms.save(),
      ...this.rewards.save(),
    };
  }

  /** A malformed state is ignored. */
  restore(saved: unknown): void {
    const state = (saved ?? {}) as Readonly<Record<string, unknown>>;
    if (!this.lists.restore(state)) return;
    this.blocks.restore(state.blocks);
    this.terms.restore(state.terms);
    this.rewards.restore(state);
    this.payments.restore(state.payments);
  }
}

export class KnownBooks {
  readonly #clocks: Clocks;
  /** The pool's key, and where its API is by its own word. */
  key: Bytes | undefined;
  api = '';
  told = new ToldLedger();
  readonly awaited: AwaitedReceipts;
  readonly signed = new SignedRecords();
  readonly lists: KnownLists;
  readonly unchecked: UncheckedTime;
  readonly alarms = new BooksAlarms();
  /** When the pool last answered about receipts. */
  answered: Moment = { wallMillis: 0, steadyMillis: undefined };
  /** The newest slice that was compared. */
  newest = -1;

  constructor(clocks: UncheckedTimeDependencies) {
    this.#clocks = clocks;
    this.unchecked = new UncheckedTime(clocks);
    this.awaited = new AwaitedReceipts(clocks);
    this.lists = new KnownLists(clocks);
  }

  /** `unwritten`: alarms whose evidence is not on disk yet. */
  save(unwritten?: ReadonlySet<string>): Readonly<Record<string, unknown>> {
    return {
      key: this.key === undefined ? null : toHex(this.key),
      api: this.api,
      ledger: this.told.save(),
      waiting: this.awaited.save(),
      answered: this.answered.wallMillis,
      alarmed: this.alarms.save(unwritten),
      newest: this.newest,
      lists: this.lists.save(),
      signed: this.signed.save(),
      unchecked: this.unchecked.save(),
    };
  }

  /** A malformed state begins anew. */
  static restored(saved: unknown, clocks: UncheckedTimeDependencies): KnownBooks {
    const known = new KnownBooks(clocks);
    if (saved === undefined) return known;
    try {
      known.#restore(saved);
      return known;
    } catch {
      return new KnownBooks(clocks);
    }
  }

  #restore(saved: unknown): void {
    type Unread = 'ledger' | 'waiting' | 'answered' | 'lists' | 'signed' | 'unchecked';
    type Read = {
      readonly key: string | null;
      readonly api: string;
      readonly alarmed: string[];
      readonly newest: number;
    };
    const state = saved as Read & Readonly<Partial<Record<Unread, unknown>>>;
    this.told = ToldLedger.restore(state.ledger, this.#clocks.nowMillis());
    this.key = state.key === null ? undefined : fromHex(state.key);
    this.api = state.api;
    this.awaited.restore(state.waiting);
    this.answered = { wallMillis: isWhole(state.answered) ? state.answered : 0, steadyMillis: undefined };
    this.alarms.restore(state.alarmed);
    this.newest = state.newest;
    this.lists.restore(state.lists);
    this.signed.restore(state.signed);
    this.unchecked.restore(state.unchecked);
  }
}
