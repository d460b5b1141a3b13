/** The operator's switches of the payout loop, which reads both before it reserves anything: one stops new payouts, the other begins a round now. */
import type { Sql, Transaction } from '../../database/connect.ts';
import type { LedgerDate } from '../../payout/earlier-minimums.ts';

const SETTING = 'payouts_paused';
const RESUMED = 'payouts_resumed_millis';

export async function payoutsPaused(sql: Sql): Promise<boolean> {
  const [row] = await sql<{ value: string }[]>`select value from settings where name = ${SETTING}`;
  return row?.value === 'true';
}

/** When payouts were last resumed; null if they never were. */
export async function payoutsResumed(sql: Sql | Transaction): Promise<number | null> {
  const [row] = await sql<{ value: string }[]>`select value from settings where name = ${RESUMED}`;
  return row === undefined ? null : Number(row.value);
}

/**
 * From now on the pool has as long to pay as after a pause, by the later of the database's time and the ledger's: checkers
 * compare it with the ledger's.
 */
export async function noteResumed(sql: Sql | Transaction, ledger?: LedgerDate): Promise<number> {
  const [row] = await sql<{ value: string }[]>`insert into settings values (${RESUMED}, greatest(
      (extract(epoch from now()) * 1000)::bigint, ${ledger?.newestMillis ?? 0}::bigint)::text)
    on conflict (name) do update set value = excluded.value returning value`;
  return Number(row?.value);
}

export async function pausePayouts(sql: Sql, isPaused: boolean, ledger?: LedgerDate): Promise<void> {
  if (!isPaused && (await payoutsPaused(sql))) await noteResumed(sql, ledger);
  await sql`insert into settings values (${SETTING}, ${String(isPaused)})
    on conflict (name) do update set value = excluded.value`;
}

/** When the last round of payouts was complete: the next one is due an interval later, or at once without it. */
export const LAST_PAYOUT = 'last_payout_millis';

export async function payNow(sql: Sql): Promise<void> {
  await sql`delete from settings where name = ${LAST_PAYOUT}`;
}
