/** The operator's switch that stops new payouts; the payout loop reads it before it reserves anything. */
import type { Sql } from '../../database/connect.ts';

const SETTING = 'payouts_paused';

export async function payoutsPaused(sql: Sql): Promise<boolean> {
  const [row] = await sql<{ value: string }[]>`select value from settings where name = ${SETTING}`;
  return row?.value === 'true';
}

export async function pausePayouts(sql: Sql, isPaused: boolean): Promise<void> {
  await sql`insert into settings values (${SETTING}, ${String(isPaused)})
    on conflict (name) do update set value = excluded.value`;
}
