/**
 * Why payouts are held, for everybody to see: the books and the wallet do not agree, and until they do nothing is reserved or sent. Set and lifted by the
 * accountant alone; the operator's switch is another (pool/api/payout-pause.ts).
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
