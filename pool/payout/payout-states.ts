/**
 * The durable states of a payout (docs/pool.md, payouts): reserved, submitting, submitted, finalized or void. Each step
 * is one fenced transaction; money leaves a balance when it is reserved and comes back only when a finalized cut says
 * that the transaction can never execute. The request id is derived from the payout's number, which is recorded before
 * the wallet is asked.
 */
import type { Sql, Transaction } from '../database/connect.ts';
import { takeTurn } from '../database/row-turns.ts';
import { newestHead, payloadTextOf } from './commitment.ts';
import { requestIdOf } from './payout-series.ts';

export type PayoutState = 'reserved' | 'submitting' | 'submitted' | 'finalized' | 'void';

export type OpenPayout = {
  readonly id: string;
  readonly state: 'reserved' | 'submitting' | 'submitted';
  /** Its number among the wallet's payments to this pool's miners, assigned when the wallet is asked. */
  readonly number: number | null;
  readonly requestId: string | null;
  readonly requestTable: string | null;
  /** The commitment in the transaction (books rule 21), the same for every repetition of the request. */
  readonly payloadText: string | null;
  /** Of the last request that the wallet had no record of before: until when it can execute counts from here. */
  readonly askedHeight: number | null;
  readonly transactionId: string | null;
  readonly needsPerson: string | null;
  readonly items: readonly { readonly accountId: number; readonly address: string; readonly amount: bigint }[];
};

export const MAX_RECIPIENTS = 7;

export type ReserveOptions = {
  /** Smallest balance that is paid out, unless the account chose another. */
  readonly minimum: bigint;
  readonly maxRecipients?: number;
};

/**
 * Moves due balances, the largest first, into a new payout. Undefined when no account is due. Accounts that were set
 * aside wait for the operator and are skipped.
 */
export async function reservePayout(
  transaction: Transaction,
  id: string,
  options: ReserveOptions,
): Promise<{ recipients: number; total: bigint } | undefined> {
  await takeTurn(transaction, 'accounts');
  const due = await transaction<{ id: number; balance: bigint }[]>`select id, balance from accounts a
    where balance >= coalesce(payout_min, ${options.minimum}) and balance > 0 and not exists (select from payouts p
      join payout_items i on i.payout_id = p.id where i.account_id = a.id and p.state = 'reserved' and p.needs_person is not null)
    order by balance desc, id limit ${options.maxRecipients ?? MAX_RECIPIENTS} for no key update`;
  if (due.length === 0) return undefined;
  await transaction`insert into payouts (id, state) values (${id}, 'reserved')`;
  for (const account of due) {
    await transaction`insert into payout_items (payout_id, account_id, amount)
      values (${id}, ${account.id}, ${account.balance})`;
    await transaction`update accounts set balance = balance - ${account.balance}, in_flight = in_flight + ${account.balance}
      where id = ${account.id}`;
  }
  return { recipients: due.length, total: due.reduce((sum, account) => sum + account.balance, 0n) };
}

export async function openPayouts(sql: Sql | Transaction): Promise<OpenPayout[]> {
  const rows = await sql<
    {
      id: string;
      state: OpenPayout['state'];
      number: bigint | null;
      request_id: string | null;
      asked_height: bigint | null;
      request_table: string | null;
      transaction_id: Buffer | null;
      books_slice: number | null;
      books_head: Buffer | null;
      needs_person: string | null;
      account_id: number;
      address: string;
      amount: bigint;
    }[]
  >`select p.id, p.state, p.number, p.request_id, p.asked_height, p.request_table, p.transaction_id, p.books_slice,
      p.books_head, p.needs_person, i.account_id, a.address, i.amount
    from payouts p join payout_items i on i.payout_id = p.id join accounts a on a.id = i.account_id
    where p.state in ('reserved', 'submitting', 'submitted') order by p.created_at, p.id, i.account_id`;
  const payouts = new Map<string, OpenPayout & { items: OpenPayout['items'][number][] }>();
  for (const row of rows) {
    const payout = payouts.get(row.id) ?? {
      id: row.id,
      state: row.state,
      number: row.number === null ? null : Number(row.number),
      requestId: row.request_id,
      askedHeight: row.asked_height === null ? null : Number(row.asked_height),
      requestTable: row.request_table,
      payloadText: payloadTextOf(row.number === null ? null : Number(row.number), row.books_slice, row.books_head),
      transactionId: row.transaction_id?.toString('hex') ?? null,
      needsPerson: row.needs_person,
      items: [],
    };
    payout.items.push({ accountId: row.account_id, address: row.address, amount: row.amount });
    payouts.set(row.id, payout);
  }
  return [...payouts.values()];
}

async function step(
  transaction: Transaction,
  id: string,
  from: readonly PayoutState[],
  change: { state: PayoutState } & Record<string, unknown>,
): Promise<void> {
  const rows = await transaction`update payouts set ${transaction(change as never)}, updated_at = now()
    where id = ${id} and state = any(${[...from]}::text[]) returning id`;
  if (rows.length !== 1) throw new Error(`payout ${id} is not ${from.join(' or ')}: it cannot become ${change.state}`);
}

/**
 * Assigns the next number, recorded before the wallet is asked: whatever happens next, the same request is made again.
 * A number is assigned only when all before it are in the wallet's record, so the caller sends one payout after
 * another.
 */
export async function markSubmitting(
  transaction: Transaction,
  id: string,
  { prefix, requestTable, height }: { prefix: string; requestTable: string; height: number },
): Promise<{ requestId: string; payloadText: string | null }> {
  const [row] = await transaction<{ next: bigint }[]>`select coalesce(max(number), 0) + 1 as next from payouts`;
  const number = Number((row as { next: bigint }).next);
  const requestId = requestIdOf(prefix, number);
  const books = await newestHead(transaction);
  await step(transaction, id, ['reserved'], {
    state: 'submitting',
    number,
    request_id: requestId,
    request_table: requestTable,
    asked_height: height,
    books_slice: books?.slice ?? null,
    books_head: books?.head ?? null,
  });
  return { requestId, payloadText: payloadTextOf(number, books?.slice ?? null, books?.head ?? null) };
}

/** The height of the last request that the wallet may have signed. */
export async function noteAsked(transaction: Transaction, id: string, height: number): Promise<void> {
  await transaction`update payouts set asked_height = ${height} where id = ${id} and state = 'submitting'`;
}

/** The wallet signed nothing, so the request id was never used: the payout waits as reserved, and the number is free again. */
export const markRefused = (transaction: Transaction, id: string, reason: string): Promise<void> =>
  step(transaction, id, ['submitting'], { ...UNASKED, state: 'reserved', reason });

const UNASKED = {
  number: null,
  request_id: null,
  request_table: null,
  asked_height: null,
  books_slice: null,
  books_head: null,
};

export const markSubmitted = (
  transaction: Transaction,
  id: string,
  transactionId: string,
  fee: bigint | null,
  reason: string | null = null,
): Promise<void> =>
  step(transaction, id, ['submitting'], {
    state: 'submitted',
    transaction_id: Buffer.from(transactionId, 'hex'),
    fee,
    reason,
    needs_person: null,
  });

/** `fee` is given here if the answer to the request did not contain it. */
export async function markFinalized(
  transaction: Transaction,
  id: string,
  height: number,
  fee: bigint | null = null,
): Promise<void> {
  const told = fee === null ? {} : { fee };
  await step(transaction, id, ['submitted'], { state: 'finalized', final_height: height, needs_person: null, ...told });
  await takeTurn(transaction, 'accounts');
  await transaction`update accounts a set in_flight = a.in_flight - i.amount, paid = a.paid + i.amount
    from payout_items i where i.payout_id = ${id} and i.account_id = a.id`;
}

/**
 * Only for a transaction that, by a finalized cut, can never execute, or one that the wallet does not have:
 * `submitting` is for a payout whose request id the wallet reports as unused. Its number is taken where later ones may
 * have been given.
 */
export async function markVoid(
  transaction: Transaction,
  id: string,
  from: 'reserved' | 'submitting' | 'submitted',
  reason: string,
  isNumberTaken = from === 'submitted',
): Promise<void> {
  const unasked = isNumberTaken ? {} : UNASKED;
  await step(transaction, id, [from], { ...unasked, state: 'void', reason, needs_person: null });
  await takeTurn(transaction, 'accounts');
  await transaction`update accounts a set in_flight = a.in_flight - i.amount, balance = a.balance + i.amount,
      advance = a.advance - i.advanced
    from payout_items i where i.payout_id = ${id} and i.account_id = a.id`;
}

/**
 * Moves accounts whose books do not add up out of a reserved payout, each into a separate payout that waits for the
 * operator. True if something remains to be sent.
 */
export async function setAsideFailing(
  transaction: Transaction,
  payout: OpenPayout,
  failures: ReadonlyMap<number, string>,
  newId: () => string,
): Promise<boolean> {
  const [row] = await transaction`select 1 from payouts where id = ${payout.id} and state = 'reserved' for update`;
  if (row === undefined) throw new Error(`payout ${payout.id} is not reserved: nobody can be taken out of it`);
  let left = payout.items.length;
  for (const [account, why] of failures) {
    const id = left === 1 ? payout.id : newId();
    if (id !== payout.id) {
      await transaction`insert into payouts (id, state) values (${id}, 'reserved')`;
      await transaction`update payout_items set payout_id = ${id} where payout_id = ${payout.id} and account_id = ${account}`;
    }
    // Set by an update, not by the insert: the event is made by a trigger on updates.
    await transaction`update payouts set needs_person = ${why}, reason = ${why}, updated_at = now() where id = ${id}`;
    left--;
  }
  return left > 0;
}

/**
 * Moves one recipient that the wallet refuses out of a payout and into the operator's queue; the others are paid.
 * Without `account` it is not known which one is at fault: each gets a separate payout, and the next answers show it.
 * True if something remains to be sent.
 */
export async function setAside(
  transaction: Transaction,
  payout: OpenPayout,
  account: number | null,
  why: string,
  newId: () => string,
): Promise<boolean> {
  if (payout.items.length === 1) {
    await step(transaction, payout.id, ['submitting'], {
      ...UNASKED,
      state: 'reserved',
      reason: why,
      needs_person: why,
    });
    return false;
  }
  await markRefused(transaction, payout.id, why);
  for (const { accountId } of account === null ? payout.items.slice(1) : [{ accountId: account }]) {
    const id = newId();
    // Set by an update, not by the insert: the event is made by a trigger on updates.
    await transaction`insert into payouts (id, state, reason) values (${id}, 'reserved', ${why})`;
    await transaction`update payout_items set payout_id = ${id} where payout_id = ${payout.id} and account_id = ${accountId}`;
    if (account !== null) await transaction`update payouts set needs_person = ${why} where id = ${id}`;
  }
  return true;
}
