/**
 * Payments of a pool to one address: its list, and which of them are on the ledger. A payment listed as final counts if
 * a node confirms the output and that its transaction spent from the pool's address; without a node the pool's list
 * counts.
 */
import { parseAtoms } from '../amount.ts';
import type { ChangeDocument } from '../api/address-documents.ts';
import { ProtocolError } from '../errors.ts';
import type { Thresholds } from '../evidence/unpaid-evidence.ts';
import type { BooksSources } from './books-evidence.ts';
import { isWhole } from './books-slice.ts';

type PaymentRow = {
  readonly payout_id: string;
  readonly state: string;
  readonly address: string;
  readonly amount: string;
  readonly transaction_id: string | null;
  readonly final_height: number | null;
};

const PAGE = 200;
/** Maximum number of pages: a pool with more than 4,000 unknown payments is refused. */
const MAX_PAGES = 20;
/** After this many payments missing on the ledger, no more are read. */
const MAX_DENIED = 200;
const PAGE_CHANGES = 1_024;
/** Of one cut and address. */
const MAX_CHANGES_PAGES = 16;
const MAX_TEXT = 256;
/** A longer interval is refused. */
const MAX_INTERVAL_MILLIS = 7 * 24 * 3_600_000;

export type PaymentSources = {
  readonly pool: BooksSources['pool'];
  readonly node: Pick<NonNullable<BooksSources['node']>, 'addressChanges'> | null;
};

/** Why payments cannot be added up; not anybody's fault. */
export class PaymentsUnread extends Error {}

export type PayoutTerms = Thresholds & {
  readonly intervalMillis: number;
  readonly isPaused: boolean;
  /** When payouts were last resumed; undefined if the pool does not say. */
  readonly resumedMillis: number | undefined;
  /** What the account was paid beyond its credits, all times together, by the pool's word: no more than it says to have paid. */
  readonly advanced: bigint;
};

/** More than a pool names. */
const MAX_EARLIER = 256;

/** Undefined if the pool does not say. */
function readEarlier(value: unknown): Thresholds['earlier'] {
  if (value === undefined) return undefined;
  if (!Array.isArray(value) || value.length > MAX_EARLIER || !value.every((each) => isWhole(each?.until_millis)))
    throw new ProtocolError('out_of_range', 'the thresholds have no such form');
  return value.map((each) => ({ atoms: parseAtoms(String(each.amount)), untilMillis: each.until_millis }));
}

/** The pool's payout status, and the threshold of this account. */
export async function readPayoutTerms(address: string, pool: BooksSources['pool']): Promise<PayoutTerms> {
  const { payouts } = ((await pool('pool')) ?? {}) as { payouts?: Readonly<Record<string, unknown>> };
  const account = ((await pool(`miners/${encodeURIComponent(address)}`)) ?? {}) as {
    payout_minimum?: unknown;
    payout_minimums?: unknown;
    advanced?: unknown;
  };
  const { interval_seconds: seconds, paused, resumed_millis: resumed } = payouts ?? {};
  const { payout_minimum: minimum } = account;
  if (typeof minimum !== 'string' || typeof seconds !== 'number' || !(seconds >= 0) || typeof paused !== 'boolean')
    throw new ProtocolError('out_of_range', 'the pool does not say when it pays');
  const advanced = parseAtoms(String(account.advanced ?? 0));
  const listed = advanced === 0n ? undefined : await listedSum(address, pool);
  return {
    minimum: parseAtoms(minimum),
    earlier: readEarlier(account.payout_minimums),
    intervalMillis: Math.min(seconds * 1_000, MAX_INTERVAL_MILLIS),
    isPaused: paused,
    resumedMillis: isWhole(resumed) ? resumed : undefined,
    advanced: listed !== undefined && listed < advanced ? listed : advanced,
  };
}

/** All final payments to an address that a pool lists, each transaction once; undefined if they are too many to be read. Others anybody could promise for ever. */
async function listedSum(address: string, pool: BooksSources['pool']): Promise<bigint | undefined> {
  const sums = new Map<string, bigint>();
  let cursor: string | undefined;
  for (let page = 0; page < MAX_PAGES; page++) {
    const { rows, next } = await paymentPage(address, pool, cursor);
    for (const { state, transaction_id: transaction, amount } of rows)
      if (state === 'finalized' && transaction !== null) sums.set(transaction, parseAtoms(amount));
    if (next === undefined) return [...sums.values()].reduce((sum, atoms) => sum + atoms, 0n);
    cursor = next;
  }
  return undefined;
}

/** A page of payments to an address, newest first. */
async function paymentPage(address: string, pool: BooksSources['pool'], cursor: string | undefined) {
  const query = `payments?address=${encodeURIComponent(address)}&limit=${PAGE}${cursor === undefined ? '' : `&cursor=${encodeURIComponent(cursor)}`}`;
  const answer = (await pool(query)) as { payments?: unknown; next_cursor?: unknown };
  if (!Array.isArray(answer?.payments) || answer.payments.length > PAGE)
    throw new ProtocolError('out_of_range', "the pool's payments have no such form");
  const { next_cursor: next } = answer;
  const isLast = typeof next !== 'string' || next.length > MAX_TEXT;
  return { rows: answer.payments.map((row) => readRow(row, address)), next: isLast ? undefined : next };
}

function readRow(value: unknown, address: string): PaymentRow {
  const row = value as PaymentRow;
  const texts = [row?.payout_id, row?.state, row?.amount, row?.transaction_id ?? ''];
  const isForm =
    texts.every((text) => typeof text === 'string' && text.length <= MAX_TEXT) &&
    row.address === address &&
    (row.final_height === null || isWhole(row.final_height));
  if (!isForm) throw new ProtocolError('out_of_range', "the pool's payments have no such form");
  parseAtoms(row.amount);
  return row;
}

/** Changes of an address in one cut; undefined if the node has not read it yet. */
async function changesAt(address: string, height: number, node: NonNullable<PaymentSources['node']>) {
  const found: ChangeDocument[] = [];
  let cursor: string | undefined;
  for (let page = 0; page < MAX_CHANGES_PAGES; page++) {
    const asked = { addresses: [address], after_height: height - 1, limit: PAGE_CHANGES };
    const answer = await node.addressChanges(cursor === undefined ? asked : { ...asked, cursor });
    if (answer.indexed_height < height) return undefined;
    const at = answer.changes.filter((change) => change.finalized_height === height);
    found.push(...at);
    cursor = answer.next_cursor;
    if (cursor === undefined || at.length < answer.changes.length) return found;
  }
  // Anybody can send so much dust that one cut exceeds the pages.
  throw new PaymentsUnread('the address received too many outputs in one cut');
}

/** Outputs to the address in one cut that the payer paid, as `transaction amount`. */
async function paidAt(address: string, payer: string, height: number, node: NonNullable<PaymentSources['node']>) {
  const spent = await changesAt(payer, height, node);
  const received = await changesAt(address, height, node);
  if (spent === undefined || received === undefined) return undefined;
  const spends = new Set(spent.filter(({ kind }) => kind === 'spent').map((change) => change.transaction_id));
  return new Set(
    received
      .filter(({ kind, transaction_id: transaction }) => kind === 'received' && spends.has(transaction))
      .map((change) => `${change.transaction_id} ${change.amount}`),
  );
}

/** Of an address since a cut: strangers can send dust, but not so much for nothing. */
const MAX_HISTORY_PAGES = 200;

/**
 * What the payer paid an address by the ledger alone, without transactions that are known: a pool whose database fell back
 * to an older copy lists its newest payments again only when it has compared its books with its wallet.
 */
export async function unlistedSum(
  { address, payer, known, fromHeight }: AskedPayments,
  node: NonNullable<PaymentSources['node']>,
): Promise<bigint> {
  const isNew = (transaction: string): boolean => known?.has(transaction) !== true;
  const heights = new Set<number>();
  let cursor: string | undefined;
  for (let page = 0; ; page++) {
    if (page === MAX_HISTORY_PAGES) throw new PaymentsUnread('the address received too many outputs');
    const asked = { addresses: [address], after_height: Math.max(0, fromHeight - 1), limit: PAGE_CHANGES };
    const answer = await node.addressChanges(cursor === undefined ? asked : { ...asked, cursor });
    for (const { kind, transaction_id: transaction, finalized_height: height } of answer.changes)
      if (kind === 'received' && isNew(transaction)) heights.add(height);
    cursor = answer.next_cursor;
    if (cursor === undefined) break;
  }
  let sum = 0n;
  for (const height of heights)
    for (const output of (await paidAt(address, payer, height, node)) ?? []) {
      const [transaction = '', amount = ''] = output.split(' ');
      if (isNew(transaction)) sum += parseAtoms(amount);
    }
  return sum;
}

export type Payment = { readonly atoms: bigint; readonly height: number };

export type NewPayments = {
  /** By transaction, newest first. */
  readonly found: ReadonlyMap<string, Payment>;
  /** Payments listed as final whose cut the node has, but without such an output. */
  readonly denied: number;
};

export type AskedPayments = {
  readonly address: string;
  /** The pool's address: it pays from no other (rule 25). */
  readonly payer: string;
  /**
   * By transaction: a payout pays an address once, and a pool can name one transaction under many ids. Null if only the
   * newest page is read, without a node.
   */
  readonly known: ReadonlyMap<string, unknown> | null;
  /** Payments of cuts before this one are left out. */
  readonly fromHeight: number;
};

/**
 * New final payments of a pool to an address, newest first: up to the first page with one that is known or too old.
 * Payments that the node does not confirm are left out, and checked again the next time.
 */
export async function newPayments(
  { address, payer, known, fromHeight }: AskedPayments,
  { pool, node }: PaymentSources,
): Promise<NewPayments> {
  const found = new Map<string, Payment>();
  let denied = 0;
  const paid = new Map<number, ReadonlySet<string> | undefined>();
  let cursor: string | undefined;
  for (let page = 0; ; page++) {
    const { rows, next } = await paymentPage(address, pool, cursor);
    for (const { state, final_height: height, transaction_id: transaction, amount } of rows) {
      if (state !== 'finalized' || height === null || transaction === null || height < fromHeight) continue;
      if (known?.has(transaction) || found.has(transaction)) continue;
      if (node !== null && known !== null) {
        // There are no payments in the genesis, and no changes before it.
        if (!paid.has(height)) paid.set(height, height === 0 ? new Set() : await paidAt(address, payer, height, node));
        const outputs = paid.get(height);
        const isPaid = outputs?.has(`${transaction} ${amount}`) === true;
        if (outputs !== undefined && !isPaid) denied++;
        if (!isPaid) continue;
      }
      found.set(transaction, { atoms: parseAtoms(amount), height });
    }
    const isJoined = rows.some(
      ({ transaction_id: transaction, final_height: height }) =>
        known?.has(transaction ?? '') || (height !== null && height < fromHeight),
    );
    if (next === undefined || isJoined || known === null || denied >= MAX_DENIED) return { found, denied };
    if (page + 1 >= MAX_PAGES) throw new PaymentsUnread('the pool lists too many payments');
    cursor = next;
  }
}
