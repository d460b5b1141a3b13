/** An account with the sums of its payouts, for the audit and for the check before a payout (books rule 23). */
import type { Sql, Transaction } from '../database/connect.ts';

export type AccountRow = {
  id: number;
  payload: Buffer;
  address: string;
  /** The payload that it was created with. */
  name: Buffer | null;
  balance: bigint;
  in_flight: bigint;
  paid: bigint;
  /** Sum of payouts that have not ended. */
  flying: string;
  settled: string;
};

/** Reads some accounts, or all, by id. */
export const accountRows = (sql: Sql | Transaction, ids?: readonly number[]) =>
  sql<AccountRow[]>`select a.id, a.payload, a.address, n.payload as name, a.balance, a.in_flight, a.paid,
      coalesce(sum(i.amount) filter (where p.state in ('reserved', 'submitting', 'submitted')), 0)::text as flying,
      coalesce(sum(i.amount) filter (where p.state = 'finalized'), 0)::text as settled
    from accounts a left join payout_items i on i.account_id = a.id left join payouts p on p.id = i.payout_id
      left join account_names n on n.account_id = a.id
    ${ids === undefined ? sql`` : sql`where a.id = any(${[...ids]}::int[])`} group by a.id, n.payload order by a.id`;

/** The expected balance of an account, from all of its credits. */
export const balanceOf = (credited: bigint, { flying, settled }: Pick<AccountRow, 'flying' | 'settled'>): bigint =>
  credited - BigInt(flying) - BigInt(settled);
