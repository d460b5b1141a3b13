/**
 * Numbered migrations, forward only: `migrations/NNNN-name.sql`, each in a transaction of its own, run at start under an
 * advisory lock so that several instances may start at once. A database from a newer release is refused.
 */
import { readdir, readFile } from 'node:fs/promises';
import type { Sql } from 'postgres';
import type { Logger } from '../../runtime/log.ts';

const LOCK = 0x5356_4301;
const DIRECTORY = new URL('./migrations/', import.meta.url);

type Migration = { readonly number: number; readonly name: string };

async function migrations(): Promise<Migration[]> {
  const names = (await readdir(DIRECTORY)).filter((name) => name.endsWith('.sql')).sort();
  return names.map((name, i) => {
    if (Number(name.slice(0, 4)) !== i + 1) throw new Error(`migration ${name} is out of order`);
    return { number: i + 1, name };
  });
}

export async function migrate(sql: Sql, log: Logger): Promise<void> {
  const known = await migrations();
  const connection = await sql.reserve();
  try {
    await connection`select pg_advisory_lock(${LOCK})`;
    await connection`create table if not exists schema_version (number integer primary key, name text not null, applied_at timestamptz not null default now())`;
    const [row] = await connection<{ number: number | null }[]>`select max(number) as number from schema_version`;
    const present = row?.number ?? 0;
    if (present > known.length)
      throw new Error(`the database has schema ${present}, this release knows ${known.length}: run a newer release`);
    for (const { number, name } of known.slice(present)) {
      log.info('migrating the database', { migration: name });
      const text = await readFile(new URL(name, DIRECTORY), 'utf8');
      await connection`begin`;
      try {
        await connection.unsafe(text);
        await connection`insert into schema_version (number, name) values (${number}, ${name})`;
        await connection`commit`;
      } catch (error) {
        await connection`rollback`;
        throw error;
      }
    }
  } finally {
    await connection`select pg_advisory_unlock(${LOCK})`.catch(() => undefined);
    connection.release();
  }
}
