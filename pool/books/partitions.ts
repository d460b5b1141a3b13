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
    if (present?.present === true) continue;
    // Made and then attached: to make it as a partition would wait for whoever reads the shares, such as an audit.
    await transaction.unsafe(`create table ${name(day)} (like shares including all)`);
    await transaction.unsafe(
      `alter table shares attach partition ${name(day)} for values from ('${from}') to ('${to}')`,
    );
  }
}

const PRUNED = 'shares_pruned_through_';
const PATIENCE_MILLIS = 500;
const LOCK_TIMEOUT = '55P03';

/**
 * Drops the partitions of days before `beforeMillis`; returns their names. Slices, which all credits are computed from,
 * stay. A share is stored by the day of its time and counted in the slice it was taken into; with a late journal or a
 * wrong clock these can be days apart, so the last slice that lost raw shares is recorded. Those that somebody reads, such
 * as an audit, stay until the next time: whoever waits for such a lock holds up all who come after it, the books too.
 */
export async function dropOldShares(sql: Sql, beforeMillis: number): Promise<string[]> {
  const rows = await sql<{ name: string }[]>`select c.relname as name from pg_inherits i
    join pg_class c on c.oid = i.inhrelid where i.inhparent = 'shares'::regclass order by 1`;
  const last = name(Math.floor(beforeMillis / DAY_MILLIS));
  const old = rows.map((row) => row.name).filter((partition) => /^shares_[\d_]+$/.test(partition) && partition < last);
  const dropped: string[] = [];
  for (const partition of old) {
    try {
      await sql.begin((transaction) => drop(transaction, partition));
    } catch (error) {
      if ((error as { code?: string }).code !== LOCK_TIMEOUT) throw error;
      break;
    }
    dropped.push(partition);
  }
  return dropped;
}

async function drop(transaction: Transaction, partition: string): Promise<void> {
  await transaction.unsafe(`set local lock_timeout = ${PATIENCE_MILLIS}`);
  await transaction.unsafe(`lock table ${partition} in access exclusive mode`);
  await transaction.unsafe(`insert into settings (name, value)
    select '${PRUNED}' || service, max(slice)::text from ${partition} group by service on conflict (name)
    do update set value = greatest(settings.value::bigint, excluded.value::bigint)::text`);
  await transaction.unsafe(`drop table ${partition}`);
}

/** By service, the last slice whose raw shares may be incomplete. */
export async function prunedThrough(sql: Sql): Promise<ReadonlyMap<number, number>> {
  const rows = await sql<
    { service: number; slice: number }[]
  >`select substr(name, ${PRUNED.length + 1})::int as service,
    value::int as slice from settings where name like ${`${PRUNED}%`}`;
  return new Map(rows.map((row) => [row.service, row.slice]));
}
