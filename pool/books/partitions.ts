/**
 * Raw shares are stored in one partition per day, created with the first share of that day and dropped as a whole when
 * old.
 */
import type { Sql, Transaction } from '../database/connect.ts';

const DAY_MILLIS = 86_400_000;

const name = (day: number) => `shares_${new Date(day * DAY_MILLIS).toISOString().slice(0, 10).replaceAll('-', '_')}`;

export async function ensureSharePartitions(transaction: Transaction, times: readonly number[]): Promise<void> {
  const days = new Set(times.map((at) => Math.floor(at / DAY_MILLIS)));
  for (const day of days) {
    const [from, to] = [day, day + 1].map((d) => new Date(d * DAY_MILLIS).toISOString());
    const [present] = await transaction`select to_regclass(${name(day)}) is not null as present`;
    if (present?.present !== true)
      await transaction.unsafe(
        `create table if not exists ${name(day)} partition of shares for values from ('${from}') to ('${to}')`,
      );
  }
}

const PRUNED = 'shares_pruned_through_';

/**
 * Drops the partitions of days before `beforeMillis`; returns their names. Slices, which all credits are computed from,
 * stay. A share is stored by the day of its time and counted in the slice it was taken into; with a late journal or a
 * wrong clock these can be days apart, so the last slice that lost raw shares is recorded.
 */
export async function dropOldShares(sql: Sql, beforeMillis: number): Promise<string[]> {
  const rows = await sql<{ name: string }[]>`select c.relname as name from pg_inherits i
    join pg_class c on c.oid = i.inhrelid where i.inhparent = 'shares'::regclass order by 1`;
  const last = name(Math.floor(beforeMillis / DAY_MILLIS));
  const old = rows.map((row) => row.name).filter((partition) => /^shares_[\d_]+$/.test(partition) && partition < last);
  for (const partition of old)
    await sql.begin(async (transaction) => {
      await transaction.unsafe(`lock table ${partition} in access exclusive mode`);
      await transaction.unsafe(`insert into settings (name, value)
        select '${PRUNED}' || service, max(slice)::text from ${partition} group by service on conflict (name)
        do update set value = greatest(settings.value::bigint, excluded.value::bigint)::text`);
      await transaction.unsafe(`drop table ${partition}`);
    });
  return old;
}

/** By service, the last slice whose raw shares may be incomplete. */
export async function prunedThrough(sql: Sql): Promise<ReadonlyMap<number, number>> {
  const rows = await sql<
    { service: number; slice: number }[]
  >`select substr(name, ${PRUNED.length + 1})::int as service,
    value::int as slice from settings where name like ${`${PRUNED}%`}`;
  return new Map(rows.map((row) => [row.service, row.slice]));
}
