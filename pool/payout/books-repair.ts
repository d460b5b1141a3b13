/**
 * Brings the books in line with the wallet's payments (books rule 16), after they were replaced by an older copy.
 * Reserved payouts are given back first: they were due, and are due again, unless the wallet has paid them. Then each
 * payment missing in the books is recorded. A payment that the balance does not cover is an advance: later income makes
 * up for it.
 */
import { randomUUID } from 'node:crypto';
import { parseAddress } from '../../protocol/address.ts';
import { toHex } from '../../protocol/bytes.ts';
import { unpackCredits } from '../books/packed.ts';
import { balanceSheet } from '../books/sheet.ts';
import { byteaTexts, type Sql, type Transaction } from '../database/connect.ts';
import { takeTurn } from '../database/row-turns.ts';
import { type PayoutSeries, requestIdOf } from './payout-series.ts';
import { markRefused, markVoid } from './payout-states.ts';
import type { ChainPayment, Recipient, WalletPayment } from './payout-wallet.ts';
import type { BookedPayout, Comparison } from './witness.ts';

export type RepairTerms = {
  readonly requestTable: string;
  /** All known shares and cuts are in the books: an amount that is not covered now will not be covered by waiting. */
  readonly isCaughtUp: boolean;
  /** The operator allows advances larger than what the pool has earned itself. */
  readonly isAdvanceAllowed: boolean;
};

export type Repaired = { readonly payments: number; readonly total: bigint; readonly advanced: bigint };

/** Thrown to roll back the transaction. */
export class UncoveredError extends Error {}

/** A payment to be recorded: by its number, or only by its transaction if the wallet has lost the number. */
export type LostPayment = {
  readonly number: number | null;
  readonly requestId: string | null;
  readonly transactionId: string | null;
  readonly recipients: readonly Recipient[];
  readonly fee: bigint | null;
  readonly createdMillis: number | null;
  readonly fate: WalletPayment['fate'];
};

export const lostOnChain = ({ transactionId, height, recipients, fee }: ChainPayment): LostPayment => ({
  ...UNNUMBERED,
  transactionId,
  recipients,
  fee,
  createdMillis: null,
  fate: { state: 'finalized', height, fee },
});
const UNNUMBERED = { number: null, requestId: null };

/** A payout whose number is taken, and whose payment never came to the chain: whom it would have paid is not known. */
const neverMade: LostPayment = {
  ...UNNUMBERED,
  transactionId: null,
  recipients: [],
  fee: null,
  createdMillis: null,
  fate: { state: 'void', reason: 'the wallet has forgotten it, and the chain does not have it' },
};

/**
 * Payouts that never came to the chain, between two that did. A round reserves twenty at most; a number farther away was
 * not given by a pool, and each number in between is a row.
 */
const MOST_NEVER_MADE = 1_000;

/**
 * Payouts of the chain by the numbers that they carry, and those between them: a number is given once (books rule 16).
 * `strays` carry numbers that follow from none before.
 */
export function lostByNumber(
  carried: ReadonlyMap<number, ChainPayment>,
  last: number,
  series: PayoutSeries,
): { readonly numbered: readonly LostPayment[]; readonly strays: readonly ChainPayment[] } {
  const numbered: LostPayment[] = [];
  const strays: ChainPayment[] = [];
  const book = (number: number, lost: LostPayment) =>
    void numbered.push({ ...lost, number, requestId: requestIdOf(series.payouts, number) });
  let next = last + 1;
  for (const [number, payment] of [...carried].sort(([a], [b]) => a - b)) {
    if (number - next > MOST_NEVER_MADE) {
      strays.push(payment);
      continue;
    }
    for (; next < number; next++) book(next, neverMade);
    book(next++, lostOnChain(payment));
  }
  return { numbered, strays };
}

/** Numbered payouts from a number on, up to another one. */
export async function bookedPayouts(
  sql: Sql | Transaction,
  from: number,
  through = Number.MAX_SAFE_INTEGER,
): Promise<BookedPayout[]> {
  type Row = {
    id: string;
    number: bigint;
    state: BookedPayout['state'];
    request_table: string | null;
    account_id: number | null;
    address: string;
    amount: bigint;
  };
  // Of one that never came to the chain nobody may know whom it would have paid.
  const rows = await sql<Row[]>`select p.id, p.number, p.state, p.request_table, i.account_id, a.address, i.amount
    from payouts p left join payout_items i on i.payout_id = p.id left join accounts a on a.id = i.account_id
    where p.number between ${from} and ${through} order by p.number`;
  const found = new Map<string, BookedPayout & { items: BookedPayout['items'][number][] }>();
  for (const { id, number, state, request_table, account_id: accountId, address, amount } of rows) {
    const payout = found.get(id) ?? { id, number: Number(number), state, requestTable: request_table, items: [] };
    if (accountId !== null) payout.items.push({ accountId, address, amount });
    found.set(id, payout);
  }
  return [...found.values()];
}

/** Throws an UncoveredError if the balances do not cover it and it must not be advanced. */
export async function bookLost(
  transaction: Transaction,
  lost: readonly LostPayment[],
  displaced: Comparison['displaced'],
  terms: RepairTerms,
): Promise<Repaired> {
  const why = 'given back while the books were compared with the wallet';
  for (const { id } of displaced) await markRefused(transaction, id, why);
  const reserved = await transaction<{ id: string }[]>`select id from payouts where state = 'reserved' for update`;
  for (const { id } of reserved) await markVoid(transaction, id, 'reserved', why);
  const before = await balanceSheet(transaction);
  const credits = await lateCredits(transaction, lost);
  let [total, advanced] = [0n, 0n];
  for (const payment of lost) {
    const id = await insertPayout(transaction, payment, terms.requestTable);
    for (const { address, amount } of payment.recipients) {
      advanced += await bookItem(
        transaction,
        { payout: id, address, amount, fate: payment.fate },
        { ...terms, credits },
      );
      total += amount;
    }
  }
  if (advanced > 0n && !terms.isAdvanceAllowed && advanced > before.poolFees)
    throw new UncoveredError(
      `the wallet paid ${advanced} atoms more than the books have credited, and the pool has earned ${before.poolFees}: they have lost income`,
    );
  return { payments: lost.length, total, advanced };
}

async function insertPayout(transaction: Transaction, payment: LostPayment, requestTable: string): Promise<string> {
  const id = randomUUID();
  const { fate } = payment;
  const row = {
    id,
    state: fate.state === 'open' ? 'submitted' : fate.state,
    number: payment.number,
    request_id: payment.requestId,
    request_table: payment.number === null || payment.createdMillis === null ? null : requestTable,
    transaction_id: payment.transactionId === null ? null : Buffer.from(payment.transactionId, 'hex'),
    fee: payment.fee,
    final_height: fate.state === 'finalized' ? fate.height : null,
    reason: fate.state === 'void' ? fate.reason : 'booked from the record of the wallet',
    ...(payment.createdMillis === null ? {} : { created_at: new Date(payment.createdMillis) }),
  };
  await transaction`insert into payouts ${transaction(row as never)}`;
  return id;
}

type LateCredit = { readonly closedHeight: number; readonly value: bigint };

/** By account: credits of lists whose slices closed after the first of these payments. A payment was not made for later ones, however late it is booked. */
async function lateCredits(
  transaction: Transaction,
  lost: readonly LostPayment[],
): Promise<ReadonlyMap<number, readonly LateCredit[]>> {
  const heights = lost.flatMap(({ fate }) => (fate.state === 'finalized' ? [fate.height] : []));
  const addresses = lost.flatMap(({ recipients }) => recipients.map(({ address }) => address));
  const payloads = byteaTexts(addresses.map((address) => toHex(parseAddress(address).payload)));
  const ids = await transaction<{ id: number }[]>`select account_id as id from account_names
      where payload = any(${payloads}::text[]::bytea[])
    union select id from accounts where address = any(${addresses})`;
  const found = new Map<number, LateCredit[]>(ids.map(({ id }) => [id, []]));
  if (heights.length === 0) return found;
  const lists = transaction<{ closes: bigint; credits: Buffer }[]>`select credits,
      (l.slice + 1)::bigint * s.slice_cuts as closes
    from credit_lists l join slices s on s.service = l.service and s.number = l.slice
    where (l.slice + 1)::bigint * s.slice_cuts > ${Math.min(...heights)}`.cursor(1);
  for await (const [list] of lists)
    if (list !== undefined)
      for (const { accountId, value } of unpackCredits(list.credits))
        found.get(accountId)?.push({ closedHeight: Number(list.closes), value });
  return found;
}

type LostItem = Recipient & { readonly payout: string; readonly fate: WalletPayment['fate'] };
type ItemTerms = RepairTerms & { readonly credits: Awaited<ReturnType<typeof lateCredits>> };

/** Returns how much of it the balance does not cover. What it did not cover when it was paid is the account's advance. */
async function bookItem(
  transaction: Transaction,
  { payout, address, amount, fate }: LostItem,
  { isCaughtUp, credits }: ItemTerms,
): Promise<bigint> {
  const account = await accountOf(transaction, address, isCaughtUp);
  const book = (advanced: bigint) =>
    transaction`insert into payout_items (payout_id, account_id, amount, advanced)
      values (${payout}, ${account.id}, ${amount}, ${advanced})`;
  if (fate.state === 'void') {
    // It was given back, or never reserved: it is in the balance.
    await book(0n);
    return 0n;
  }
  const uncovered = beyond(amount, account.balance);
  const height = fate.state === 'finalized' ? fate.height : Number.POSITIVE_INFINITY;
  const later = (credits.get(account.id) ?? []).filter(({ closedHeight }) => closedHeight > height);
  const advance = beyond(
    amount,
    later.reduce((balance, { value }) => balance - value, account.balance),
  );
  if (uncovered > 0n && !isCaughtUp)
    throw new UncoveredError('the wallet paid more than the books have credited so far: they are still catching up');
  const paid = fate.state === 'finalized' ? amount : 0n;
  await book(advance);
  await transaction`update accounts set advance = advance + ${advance}, balance = balance - ${amount},
    in_flight = in_flight + ${amount - paid}, paid = paid + ${paid} where id = ${account.id}`;
  return uncovered;
}

const beyond = (amount: bigint, balance: bigint): bigint => {
  const covered = balance > 0n ? balance : 0n;
  return amount > covered ? amount - covered : 0n;
};

async function accountOf(transaction: Transaction, address: string, isCaughtUp: boolean) {
  type Row = { id: number; balance: bigint };
  const payload = Buffer.from(parseAddress(address).payload);
  await takeTurn(transaction, 'accounts');
  const [named] = await transaction<Row[]>`select id, balance from accounts where id = (select min(account_id)
    from account_names where payload = ${payload}) for no key update`;
  if (named !== undefined) return named;
  const [row] = await transaction<Row[]>`select id, balance from accounts where address = ${address} for no key update`;
  if (row !== undefined) return row;
  if (!isCaughtUp)
    throw new UncoveredError(`the wallet paid ${address}, whom the books do not know yet: they are still catching up`);
  const [made] = await transaction<Row[]>`with made as (insert into accounts (payload, address)
      values (${payload}, ${address}) returning id, payload, balance),
    named as (insert into account_names (account_id, payload) select id, payload from made)
    select id, balance from made`;
  return made as Row;
}

/**
 * A payout that is settled in the books but not in the wallet is tracked again, by the transaction that the wallet names
 * where the books have none; only a person can decide this.
 */
export async function unsettle(
  transaction: Transaction,
  { payout: { id, state }, transactionId }: Comparison['unsettled'][number],
): Promise<void> {
  const known = await transaction`select 1 from payouts where id = ${id} and state = ${state} for update`;
  // Somebody else has done it meanwhile.
  if (known.length === 0) return;
  await takeTurn(transaction, 'accounts');
  if (state === 'finalized')
    await transaction`update accounts a set paid = a.paid - i.amount, in_flight = a.in_flight + i.amount
      from payout_items i where i.payout_id = ${id} and i.account_id = a.id`;
  else {
    await transaction`update payout_items i set advanced = greatest(i.amount - greatest(a.balance, 0), 0)
      from accounts a where i.payout_id = ${id} and i.account_id = a.id`;
    await transaction`update accounts a set advance = a.advance + i.advanced,
      balance = a.balance - i.amount, in_flight = a.in_flight + i.amount
      from payout_items i where i.payout_id = ${id} and i.account_id = a.id`;
  }
  // A trigger refuses this update without the setting.
  await transaction`select set_config('svc_pool.unsettle', 'on', true)`;
  await transaction`update payouts set state = 'submitted', final_height = null,
    transaction_id = coalesce(transaction_id, decode(${transactionId}::text, 'hex')), reason = 'not final any more',
    updated_at = now() where id = ${id}`;
}
