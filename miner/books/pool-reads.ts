/**
 * How a pool is asked for its books, and how its answers are read: with a limit on the time that it takes, and strictly,
 * because they come from the pool that is being watched. No answer is not a finding; a malformed answer is false. They are
 * different error classes, because `fetch` throws a TypeError for a lost connection, and a malformed document causes
 * one too.
 */
import type { Fetch } from '../../protocol/api/client-calls.ts';
import type { BooksSources } from '../../protocol/books/books-evidence.ts';
import { isWhole, readWork, type SliceRecord } from '../../protocol/books/books-slice.ts';
import type { PublishedTerms, TermsFrom } from '../../protocol/books/books-terms.ts';
import type { MembershipDocument } from '../../protocol/books/pool-proof.ts';
import { PoolSilence, silenceOf } from '../../protocol/books/pool-silence.ts';
import type { Receipt } from '../../protocol/books/receipt.ts';
import { ProtocolError } from '../../protocol/errors.ts';
import type { MonotonicClock, WallClock } from '../../runtime/clock/clock.ts';
import type { Fields, Finding } from './books-alarms.ts';

/** What a check may ask, and where it tells what it found. */
export type Watching = {
  /** Reads `api/v1/PATH` of the pool. */
  readonly pool: BooksSources['pool'];
  /** A node that the miner trusts; null without one. */
  readonly node: BooksSources['node'];
  readonly alarm: (...finding: Finding) => void;
  readonly note: (message: string, fields: Fields) => void;
  /** Monotonic, with any origin. */
  readonly nowMillis: MonotonicClock;
  /** The wall clock: timestamps of cuts are compared with it. */
  readonly wallMillis: WallClock;
};

/** `height`: the newest cut that the books have taken in. A pool may leave it out. */
export type Terms = PublishedTerms & { readonly height?: unknown };

const READ_MILLIS = 15_000;

/** A JSON document of a pool's API. */
export async function readDocument(fetch: Fetch, url: string): Promise<unknown> {
  const answer = await fetch(url, { method: 'GET', headers: {}, signal: AbortSignal.timeout(READ_MILLIS) });
  if (answer.status !== 200) throw silenceOf(answer.status, answer.headers.get('retry-after'));
  return JSON.parse(new TextDecoder().decode(await answer.arrayBuffer()));
}

/** Limit on changes of terms: the list is searched for each slice, so its length determines the time. */
const MAX_TERMS = 10_000;
const FIELDS = ['from_slice', 'slice_cuts', 'window_thousandths', 'fee_ppm'] as const;

export const poolReads =
  (pool: BooksSources['pool']): BooksSources['pool'] =>
  async (path) => {
    const answer = await pool(path).catch((error: unknown) => {
      throw error instanceof PoolSilence
        ? error
        : new PoolSilence(error instanceof Error ? error.message : String(error));
    });
    if (path === 'terms' && !isTerms(answer))
      throw new ProtocolError('out_of_range', "the pool's terms have no such form");
    return answer;
  };

function isTerms(answer: unknown): answer is Terms {
  const { address, window_fee_from: from, terms } = (answer ?? {}) as Partial<PublishedTerms>;
  const isFrom = from === undefined || isWhole(from);
  return typeof address === 'string' && isFrom && isAscending(terms?.pplns) && isAscending(terms?.solo);
}

function isAscending(list: readonly TermsFrom[] | undefined): boolean {
  if (!Array.isArray(list) || list.length > MAX_TERMS) return false;
  let before = 0;
  for (const each of list) {
    if (!FIELDS.every((name) => isWhole(each?.[name])) || each.from_slice < before) return false;
    before = each.from_slice;
  }
  return true;
}

/** A malformed document of a pool counts as false. */
export async function judged<T>(judge: () => Promise<T>, malformed: T): Promise<T> {
  try {
    return await judge();
  } catch (error) {
    if (error instanceof ProtocolError || error instanceof TypeError || error instanceof RangeError) return malformed;
    throw error;
  }
}

const ROUND_MILLIS = 10 * 60_000;
/** A pool that asks for more is asked after this time. */
const MAX_WAIT = 10 * 60_000;

/**
 * Time limit for all answers of a pool in one round of a watch. Each answer has its own limit, but a pool chooses the
 * number of pages: with slow pages a round would last for hours, and the user would not learn that the books are not
 * checked. A pool that asks to wait (`retry-after`) is not asked again before that time.
 */
export class ReadBudget {
  readonly #read: (url: string) => Promise<unknown>;
  readonly #nowMillis: MonotonicClock;
  #spentMillis = 0;
  #notBefore = Number.NEGATIVE_INFINITY;

  constructor(read: (url: string) => Promise<unknown>, nowMillis: MonotonicClock) {
    this.#read = read;
    this.#nowMillis = nowMillis;
  }

  begin(): void {
    this.#spentMillis = 0;
  }

  /** Only the pool's own time counts, not that of a node. */
  async read(url: string): Promise<unknown> {
    const began = this.#nowMillis();
    if (this.#spentMillis > ROUND_MILLIS) throw new PoolSilence('the pool answers too slowly');
    if (began < this.#notBefore) throw new PoolSilence('the pool asked to wait');
    try {
      return await this.#read(url);
    } catch (error) {
      const wait = error instanceof PoolSilence ? error.retryAfterMillis : undefined;
      if (wait !== undefined) this.#notBefore = this.#nowMillis() + Math.min(wait, MAX_WAIT);
      throw error;
    } finally {
      this.#spentMillis += this.#nowMillis() - began;
    }
  }
}

export type AnsweredSlice = {
  readonly service: string;
  readonly slice: number;
  readonly receipts: readonly Receipt[];
  /** By boot, what all workers of the account had open, where that was asked for; no receipt says it. */
  readonly accountOpen: ReadonlyMap<string, bigint>;
  readonly leaf: MembershipDocument;
  readonly record: SliceRecord;
};

export type ReceiptsAnswer = {
  readonly kept_from: number | null;
  readonly newest: number | null;
  readonly through: number;
  readonly more: boolean;
  /** Where the answer ends within a slice. */
  readonly next_cursor: string | undefined;
  readonly slices: readonly AnsweredSlice[];
};

/** More than a pool gives in one answer. */
const MAX_SLICES = 64;
const MAX_RECEIPTS = 1_024;
/** One for each front end, and for each start of it. */
const MAX_SHEETS = 256;
/** A leaf with its branches and a record, as JSON. */
const MAX_SHOWN = 64 * 1024;
const MAX_SLICE = 2_000_000_000;

/** Fields of a receipt and their longest texts. The signature shows whether they are right. */
const TEXTS = {
  network: 16,
  service: 8,
  boot: 16,
  chain: 96,
  root: 96,
  total_work: 40,
  receipts_root: 96,
  signature: 8_192,
  address: 128,
  worker: 255,
  work: 40,
  open: 40,
  account_work: 40,
  siblings: 8_192,
} as const;
const NUMBERS = ['slice', 'accounts', 'receipts', 'shares', 'index'] as const;

const refused = (): Error => new Error('the pool’s answer has no such form');

function fieldsOf(value: unknown): Fields {
  if (typeof value !== 'object' || value === null) throw refused();
  return value as Fields;
}

function listOf(value: unknown, most: number): readonly unknown[] {
  if (!Array.isArray(value) || value.length > most) throw refused();
  return value;
}

function numberOf(value: unknown, most = Number.MAX_SAFE_INTEGER): number {
  if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < 0 || value > most) throw refused();
  return value;
}

function textOf(value: unknown, longest: number): string {
  if (typeof value !== 'string' || value.length > longest) throw refused();
  return value;
}

const sliceOrNull = (value: unknown): number | null => (value == null ? null : numberOf(value, MAX_SLICE));

function receiptOf(value: unknown): Receipt {
  const fields = fieldsOf(value);
  const texts = Object.entries(TEXTS).map(([name, longest]) => [name, textOf(fields[name], longest)] as const);
  const numbers = NUMBERS.map((name) => [name, numberOf(fields[name])] as const);
  return Object.fromEntries([...texts, ...numbers]) as unknown as Receipt;
}

/** Receipts as they are kept: each with the head and the signature of its sheet. */
function sheetOf(value: unknown): Receipt[] {
  const { receipts: own, count, account_open: _, ...head } = fieldsOf(value);
  return listOf(own, MAX_RECEIPTS).map((each) => receiptOf({ ...head, receipts: count, ...fieldsOf(each) }));
}

function openOf(value: unknown): readonly (readonly [string, bigint])[] {
  const { boot, account_open: open } = fieldsOf(value);
  return open === undefined ? [] : [[textOf(boot, TEXTS.boot), readWork(textOf(open, TEXTS.open))]];
}

function sliceOf(value: unknown): AnsweredSlice {
  const { service, slice, sheets, receipts, leaf, record } = fieldsOf(value);
  if ((JSON.stringify([leaf, record]) ?? '').length > MAX_SHOWN) throw refused();
  return {
    service: textOf(service, TEXTS.service),
    slice: numberOf(slice, MAX_SLICE),
    receipts:
      sheets === undefined
        ? listOf(receipts, MAX_RECEIPTS).map(receiptOf)
        : listOf(sheets, MAX_SHEETS).flatMap(sheetOf),
    accountOpen: new Map(sheets === undefined ? [] : listOf(sheets, MAX_SHEETS).flatMap(openOf)),
    leaf: leaf as MembershipDocument,
    record: record as SliceRecord,
  };
}

/**
 * The answer of `miners/ADDRESS/receipt-sheets`, or `receipts` of an earlier release. Throws if it is malformed, before any
 * part is kept, reported or written to a file.
 */
export function readReceiptsAnswer(value: unknown): ReceiptsAnswer {
  const { kept_from, newest, through, more, next_cursor, slices } = fieldsOf(value);
  return {
    kept_from: sliceOrNull(kept_from),
    newest: sliceOrNull(newest),
    through: numberOf(through, MAX_SLICE),
    more: more === true,
    next_cursor: next_cursor === undefined ? undefined : textOf(next_cursor, 64),
    slices: listOf(slices, MAX_SLICES).map(sliceOf),
  };
}
