/**
 * The durable states of a payout (docs/pool.md, payouts): reserved, submitting, submitted, finalized or void. Each step is
 * one fenced transaction; money leaves a balance when it is reserved and comes back only when a finalized cut says that
 * the transaction can never execute. The request id is the payout's own id, on record before the wallet hears of it.
 */
import type { Sql, Transaction } from '../database/connect.ts';

export type PayoutState = 'reserved' | 'submitting' | 'submitted' | 'finalized' | 'void';

export type OpenPayout = {
  readonly id: string;
  readonly state: 'reserved' | 'submitting' | 'submitted';
  readonly requestTable: string | null;
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

/** Moves due balances, the largest first, into a new payout. Undefined when nobody is due. */
export async function reservePayout(
  transaction: Transaction,
  id: string,
  options: ReserveOptions,
): Promise<{ recipients: number; total: bigint } | undefined> {
  const due = await transaction<{ id: number; balance: bigint }[]>`select id, balance from accounts
    where balance >= coalesce(payout_min, ${options.minimum}) and balance > 0
    order by balance desc, id limit ${options.maxRecipients ?? MAX_RECIPIENTS} for update`;
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
      request_table: string | null;
      transaction_id: Buffer | null;
      needs_person: string | null;
      account_id: number;
      address: string;
      amount: bigint;
    }[]
  >`select p.id, p.state, p.request_table, p.transaction_id, p.needs_person, i.account_id, a.address, i.amount
    from payouts p join payout_items i on i.payout_id = p.id join accounts a on a.id = i.account_id
    where p.state in ('reserved', 'submitting', 'submitted') order by p.created_at, p.id, i.account_id`;
  const payouts = new Map<string, OpenPayout & { items: OpenPayout['items'][number][] }>();
  for (const row of rows) {
    const payout = payouts.get(row.id) ?? {
      id: row.id,
      state: row.state,
      requestTable: row.request_table,
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

/** On record before the wallet is asked: whatever happens next, the same id is asked again. */
export const markSubmitting = (transaction: Transaction, id: string, requestTable: string): Promise<void> =>
  step(transaction, id, ['reserved'], { state: 'submitting', request_table: requestTable });

/** The wallet refused before it signed anything, so the request id was never used: the payout waits as reserved. */
export const markRefused = (transaction: Transaction, id: string, reason: string): Promise<void> =>
  step(transaction, id, ['submitting'], { state: 'reserved', request_table: null, reason });

export const markSubmitted = (
  transaction: Transaction,
  id: string,
  transactionId: string,
  fee: bigint,
): Promise<void> =>
  step(transaction, id, ['submitting'], {
    state: 'submitted',
    transaction_id: Buffer.from(transactionId, 'hex'),
    fee,
    reason: null,
  });

export async function markFinalized(transaction: Transaction, id: string, height: number): Promise<void> {
  await step(transaction, id, ['submitted'], { state: 'finalized', final_height: height, needs_person: null });
  await transaction`update accounts a set in_flight = a.in_flight - i.amount, paid = a.paid + i.amount
    from payout_items i where i.payout_id = ${id} and i.account_id = a.id`;
}

/** Only for a transaction that a finalized cut declared impossible, or one that was reserved and never submitted. */
export async function markVoid(
  transaction: Transaction,
  id: string,
  from: 'reserved' | 'submitted',
  reason: string,
): Promise<void> {
  await step(transaction, id, [from], { state: 'void', reason, needs_person: null });
  await transaction`update accounts a set in_flight = a.in_flight - i.amount, balance = a.balance + i.amount
    from payout_items i where i.payout_id = ${id} and i.account_id = a.id`;
}

/** Puts a payout into the operator's queue. It is asked for no more until a person lets it go on. */
export async function callForPerson(transaction: Transaction, id: string, why: string): Promise<void> {
  await transaction`update payouts set needs_person = ${why}, updated_at = now() where id = ${id}`;
}
