/**
 * Numbered migrations, forward only: `migrations/NNNN-name.sql`, each in a transaction of its own, run at start under an
 * advisory lock so that several instances may start at once. A database from a newer release is refused: at the start, and
 * by an accountant that was running when the newer release came (its term ends with the migration).
 */
import { readdir, readFile } from 'node:fs/promises';
import type { Sql } from 'postgres';
import type { Logger } from '../../runtime/log/log.ts';

const LOCK = 0x5356_4301;
export const MIGRATIONS = new URL('./migrations/', import.meta.url);

type Migration = { readonly number: number; readonly name: string };

async function migrations(directory: URL): Promise<Migration[]> {
  const names = (await readdir(directory)).filter((name) => name.endsWith('.sql')).sort();
  return names.map((name, i) => {
    if (Number(name.slice(0, 4)) !== i + 1) throw new Error(`migration ${name} is out of order`);
    return { number: i + 1, name };
  });
}

export async function migrate(sql: Sql, log: Logger, directory = MIGRATIONS): Promise<void> {
  const known = await migrations(directory);
  while (await migrateOne(sql, known, log, directory));
}

const tooNew = (present: number, known: number): Error =>
  new Error(`the database has schema ${present}, this release knows ${known}: run a newer release`);

/** Throws when a newer release has changed the database since this one started. */
export async function checkSchema(sql: Sql): Promise<void> {
  const known = (await migrations(MIGRATIONS)).length;
  const [row] = await sql<{ number: number }[]>`select max(number) as number from schema_version`;
  if (row !== undefined && row.number > known) throw tooNew(row.number, known);
}

/** True when it ran a migration: there may be another. */
const migrateOne = (sql: Sql, known: readonly Migration[], log: Logger, directory: URL): Promise<boolean> =>
  sql.begin(async (transaction) => {
    await transaction`select pg_advisory_xact_lock(${LOCK})`;
    await transaction`create table if not exists schema_version (number integer primary key, name text not null,
      applied_at timestamptz not null default now())`;
    const [row] = await transaction<{ number: number | null }[]>`select max(number) as number from schema_version`;
    const present = row?.number ?? 0;
    if (present > known.length) throw tooNew(present, known.length);
    const next = known[present];
    if (next === undefined) return false;
    log.info('migrating the database', { migration: next.name });
    // An accountant of the previous release does not know the change: this stops its writes. First of all, as its transactions lock this row first:
    // one that is under way is waited for, and does not wait for a table that is changed here.
    if (present > 0) await transaction`update term set number = number + 1`;
    await transaction.unsafe(await readFile(new URL(next.name, directory), 'utf8'));
    await transaction`insert into schema_version (number, name) values (${next.number}, ${next.name})`;
    return true;
  }) as Promise<boolean>;
