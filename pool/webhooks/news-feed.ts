/** Puts events of the pool into the miners' news queues, each once: the position is stored in the same transaction. */
import { eventsAfter } from '../api/event-follower.ts';
import type { Sql, Transaction } from '../database/connect.ts';
import { type MinerNews, newsOf } from './miner-news.ts';

/** `through`: the row of the table settings with the position. True while there may be more. */
export async function feedNews(
  sql: Sql,
  through: string,
  queue: (transaction: Transaction, news: MinerNews) => Promise<void>,
): Promise<boolean> {
  const [row] = await sql<{ value: string }[]>`insert into settings values (${through},
      (select coalesce(max(id), 0)::text from events)) on conflict (name) do update set value = settings.value
    returning value`;
  const events = await eventsAfter(sql, Number(row?.value ?? 0));
  const last = events.at(-1);
  if (last === undefined) return false;
  await sql.begin(async (transaction) => {
    for (const news of events.flatMap(newsOf)) await queue(transaction, news);
    await transaction`update settings set value = ${String(last.id)} where name = ${through}`;
  });
  return true;
}
