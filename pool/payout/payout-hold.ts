/**
 * The public reason why payouts are held: the books and the wallet do not agree, and until they do nothing is reserved
 * or sent. Set and cleared only by the accountant; the operator's switch is separate (pool/api/operator/payout-pause.ts).
 */
import type { Sql, Transaction } from '../database/connect.ts';

const SETTING = 'payouts_held';

export async function payoutsHeld(sql: Sql): Promise<string | null> {
  const [row] = await sql<{ value: string }[]>`select value from settings where name = ${SETTING}`;
  return row?.value ?? null;
}

export async function holdPayouts(transaction: Transaction | Sql, reason: string | null): Promise<void> {
  if (reason === null) await transaction`delete from settings where name = ${SETTING}`;
  else
    await transaction`insert into settings values (${SETTING}, ${reason})
      on conflict (name) do update set value = excluded.value`;
}

/** Start of the reason of a payout whose recipient's books failed the audit (account-check.ts). */
export const AUDIT_FAILED = 'not paid, the audit of account ';

export async function refusedAccounts(sql: Sql): Promise<{ account: number; address: string; why: string }[]> {
  return sql<{ account: number; address: string; why: string }[]>`select i.account_id as account, a.address,
      p.needs_person as why
    from payouts p join payout_items i on i.payout_id = p.id join accounts a on a.id = i.account_id
    where p.state = 'reserved' and p.needs_person like ${`${AUDIT_FAILED}%`} order by i.account_id limit 200`.then(
    (rows) => [...rows],
  );
}
