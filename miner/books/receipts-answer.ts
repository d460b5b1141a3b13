/**
 * The answer of `miners/ADDRESS/receipt-sheets`, or `receipts` of an earlier release, read strictly. It comes from the pool that is being watched: malformed answers are refused before
 * any part is kept, reported or written to a file.
 */
import { readWork, type SliceRecord } from '../../protocol/books/books-slice.ts';
import type { MembershipDocument } from '../../protocol/books/pool-proof.ts';
import type { Receipt } from '../../protocol/books/receipt.ts';

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

type Fields = Readonly<Record<string, unknown>>;

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

/** Throws if the answer is malformed. */
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
