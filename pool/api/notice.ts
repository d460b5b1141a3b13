/** What the operator says to everybody who looks at the pool's page: plain text, kept in the books, shown until it is taken away. */
import type { Sql } from '../database/connect.ts';

const SETTING = 'notice';
export const MAX_NOTICE = 500;

export async function readNotice(sql: Sql): Promise<string | null> {
  const [row] = await sql<{ value: string }[]>`select value from settings where name = ${SETTING}`;
  return row?.value ?? null;
}

/** Empty takes it away. */
export async function setNotice(sql: Sql, text: string): Promise<void> {
  if (text === '') await sql`delete from settings where name = ${SETTING}`;
  else
    await sql`insert into settings values (${SETTING}, ${text})
      on conflict (name) do update set value = excluded.value`;
}
