/**
 * What the checks of a pool's books find: a finding is acted on when it was seen twice (`Suspicions`), and told once, a
 * bounded number of each kind, with the pool's own texts truncated (`BooksAlarms`).
 */
import { NEWER_MILLIS } from '../../protocol/books/books-evidence.ts';
import type { EvidenceFile } from '../../protocol/evidence/evidence-file.ts';
import type { MonotonicClock } from '../../runtime/clock/clock.ts';

export const BOOKS_ALARMS = [
  'key_changed',
  'receipt_bad',
  'receipts_less',
  'late',
  'books_less',
  'two_books',
  'other_books',
  'books_hidden',
  'job_service',
  'list_false',
  'list_changed',
  'ledger_other',
  'address_other',
  'block_service',
  'block_finder',
  'block_unowned',
  'block_fee',
  'rewards_hidden',
  'rewards_withheld',
  'rewards_crowded',
  'lists_hidden',
  'terms_changed',
  'fee_unannounced',
  'window_unannounced',
  'terms_false',
  'slices_short',
  'receipts_ended',
  'unpaid',
] as const;
export type BooksAlarmKind = (typeof BOOKS_ALARMS)[number];

export type Fields = Readonly<Record<string, unknown>>;

/** What it is, what it is about, and what to say of it; with evidence where others can check it. */
export type Finding = readonly [kind: BooksAlarmKind, what: string, fields: Fields, evidence?: EvidenceFile];

export type BooksAlarm = {
  /** Identifies the finding. */
  readonly key: string;
  readonly kind: BooksAlarmKind;
  readonly message: string;
  readonly fields: Fields;
  readonly evidence: EvidenceFile | undefined;
};

const MESSAGES: Readonly<Record<BooksAlarmKind, string>> = {
  key_changed: 'the pool has another key than before: its receipts are not accepted',
  receipt_bad: 'the pool sent a receipt that its key did not sign',
  receipts_less: 'the pool signs less work than it said it accepted',
  late: 'work that the pool accepted long ago is in none of its slices',
  books_less: 'THE POOL BOOKED LESS WORK THAN IT SIGNED FOR',
  two_books: 'THE POOL SIGNED TWO DIFFERENT RECORDS OF ONE SLICE',
  other_books: 'the pool shows other books than it signed',
  books_hidden: 'the pool does not show the books of a slice that it signed a receipt for',
  job_service: 'the pool’s jobs are of another service than it books their work under',
  list_false: 'THE POOL’S CREDIT LIST IS FALSE',
  list_changed: 'SUSPICION: THE POOL SHOWS ANOTHER CREDIT LIST OF A SLICE THAN BEFORE',
  ledger_other: 'THE POOL SIGNED OTHER BOOKS THAN IT PUBLISHES OR ITS PAYOUTS COMMIT',
  address_other: 'the pool publishes another address than its jobs pay',
  block_service: 'THE POOL BOOKS A BLOCK OF THIS MINER UNDER ANOTHER SERVICE THAN IT IS OF',
  block_finder: 'THE POOL GIVES A SOLO BLOCK OF THIS MINER TO SOMEBODY ELSE',
  block_unowned:
    'SUSPICION: THE POOL KEEPS A SOLO BLOCK OF THIS MINER, AS ONE WHOSE FINDER IT DOES NOT KNOW: ask the operator for it',
  block_fee:
    'SUSPICION: THE POOL CREDITED A SOLO BLOCK OF THIS MINER LATE, UNDER A HIGHER FEE THAN WHEN IT WAS FOUND: ask the operator for the difference',
  rewards_hidden: 'THE POOL WAS PAID FOR BLOCKS THAT ARE IN NONE OF ITS CREDIT LISTS',
  rewards_withheld: 'SUSPICION: FOR HOURS THE POOL HAS CREDITED NOBODY WITH REWARDS THAT IT WAS PAID',
  rewards_crowded: 'the pool’s address received so many outputs that the rewards of a slice cannot all be looked for',
  lists_hidden: 'the pool does not show its credit lists',
  terms_changed: 'THE POOL CHANGED ITS TERMS FOR A SLICE THAT HAD BEGUN',
  fee_unannounced: 'SUSPICION: THE POOL RAISED ITS FEE WITHOUT A DAY OF NOTICE',
  window_unannounced: 'SUSPICION: THE POOL CHANGED ITS WINDOW WITHOUT A DAY OF NOTICE',
  terms_false: 'THE POOL PUBLISHES TERMS THAT NO POOL CAN HAVE',
  slices_short: 'the pool’s slices are so short that its credit lists cannot all be checked',
  receipts_ended: 'the pool gave receipts before, and gives none now',
  unpaid: 'SUSPICION: THE POOL HAS NOT PAID WHAT IT CREDITED',
};

/** Limit of alarms per kind: many of one kind do not displace others. */
const MAX_ALIKE = 32;
/** Longest text of the pool in an alarm. */
const MAX_SAID = 128;

export class BooksAlarms {
  readonly #raised = new Set<string>();

  get count(): number {
    return this.#raised.size;
  }

  /** Undefined if it was raised before, or the limit of its kind is reached. */
  raise(...[kind, what, fields, evidence]: Finding): BooksAlarm | undefined {
    const key = `${kind} ${what.slice(0, MAX_SAID)}`;
    const alike = [...this.#raised].filter((each) => each.startsWith(`${kind} `)).length;
    if (this.#raised.has(key) || alike >= MAX_ALIKE) return undefined;
    this.#raised.add(key);
    const said = Object.entries(fields).map(([name, value]) => [name, shortened(value)] as const);
    return { key, kind, message: MESSAGES[kind], fields: Object.fromEntries(said), evidence };
  }

  /** `without`: those whose evidence is not on disk yet. After a restart they are raised again. */
  save(without: ReadonlySet<string> = new Set()): string[] {
    return [...this.#raised].filter((key) => !without.has(key));
  }

  restore(saved: readonly string[]): void {
    for (const each of saved) this.#raised.add(each);
  }
}

/** The pool's text may have any form and length; the log and the alarm file keep only its beginning. */
function shortened(value: unknown): unknown {
  if (typeof value === 'bigint' || typeof value === 'number' || typeof value === 'boolean' || value === undefined)
    return value;
  const text = typeof value === 'string' ? value : (JSON.stringify(value) ?? '');
  return text.length > MAX_SAID ? `${text.slice(0, MAX_SAID)}...` : text;
}

const MAX_SUSPECTED = 256;
/** A suspicion that is not checked for this long is dropped. A pool that only fails is reported long before. */
const UNSEEN_MILLIS = 24 * 3_600_000;

/**
 * Documents that are read together may have different ages, because a pool and proxies cache answers. Anything that
 * looks false is read again when all answers are newer, before the pool is accused.
 */
export class Suspicions {
  readonly #nowMillis: MonotonicClock;
  /** What looked false, since when, and when it was last checked. */
  readonly #suspected = new Map<string, { readonly since: number; readonly seen: number }>();

  /** When reading of the current documents started. */
  #began: number | undefined;

  constructor(nowMillis: MonotonicClock) {
    this.#nowMillis = nowMillis;
  }

  /** Starts a new round of reading. */
  begin(): void {
    this.#began = this.#nowMillis();
  }

  get size(): number {
    return this.#suspected.size;
  }

  /** Whether a verdict can be acted on: 'false' must occur twice, some time apart. */
  isSure(what: string, isFalse: boolean, apartMillis: number = NEWER_MILLIS): boolean {
    const now = this.#nowMillis();
    const since = this.#suspected.get(what)?.since;
    if (isFalse && (since === undefined || (this.#began ?? now) - since < apartMillis)) {
      this.#suspected.set(what, { since: since ?? now, seen: now });
      for (const oldest of this.#suspected.keys())
        if (this.#suspected.size > MAX_SUSPECTED) this.#suspected.delete(oldest);
      return false;
    }
    this.#suspected.delete(what);
    return true;
  }

  dropUnseen(): void {
    const now = this.#nowMillis();
    for (const [what, { seen }] of this.#suspected) if (now - seen > UNSEEN_MILLIS) this.#suspected.delete(what);
  }
}
