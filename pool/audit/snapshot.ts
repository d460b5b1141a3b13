/**
 * One moment of the books for a whole audit: a read-only transaction in which every statement sees the same rows. The
 * pool goes on meanwhile, and what it writes is judged by the next audit.
 */
import type postgres from 'postgres';
import type { Sql } from '../database/connect.ts';

/** Runs `work` on one connection; `isGood` may refuse a moment, and then another one is taken after a pause. */
export async function inSnapshot<T>(
  sql: Sql,
  isGood: (snapshot: Sql) => Promise<boolean>,
  work: (snapshot: Sql) => Promise<T>,
): Promise<T> {
  const connection = (await sql.reserve()) as unknown as Sql & { release(): void };
  try {
    for (;;) {
      await connection`begin transaction isolation level repeatable read read only`;
      try {
        if (await isGood(connection)) return await work(connection);
      } finally {
        await connection`rollback`;
      }
    }
  } finally {
    connection.release();
  }
}

let cursors = 0;

/** The rows of a query in batches. Between two of them the same connection answers other queries, unlike the driver's cursors. */
export async function* batches<Row extends object>(
  sql: Sql,
  query: postgres.PendingQuery<Row[]>,
  size: number,
): AsyncGenerator<readonly Row[]> {
  const name = `audit_${++cursors}`;
  await sql`declare ${sql(name)} no scroll cursor for ${query}`;
  for (;;) {
    const rows = (await sql.unsafe(`fetch ${size} from ${name}`)) as unknown as readonly Row[];
    if (rows.length === 0) break;
    yield rows;
  }
  await sql.unsafe(`close ${name}`);
}
