/**
 * The one active accountant (docs/pool.md, many instances). A PostgreSQL advisory lock on a connection of its own elects
 * it; each election raises the term, and every transaction of the books first checks that its own term is still the
 * newest. So an accountant that was cut off and comes back late can write nothing, whatever it believes.
 */
import type { Sql, Transaction } from '../database/connect.ts';

const ACCOUNTANT_LOCK = 0x5356_4302;

export class TermLostError extends Error {
  constructor(own: bigint, newest: bigint) {
    super(`term ${own} is over: term ${newest} has begun`);
    this.name = 'TermLostError';
  }
}

export type Term = {
  readonly number: bigint;
  /** Resolves when the connection that holds the lock is gone. */
  readonly lost: Promise<void>;
  release(): Promise<void>;
};

/** Tries once; undefined while another instance is the accountant. `sql` must be a client of one connection of its own. */
export async function tryElection(sql: Sql, holder: string): Promise<Term | undefined> {
  // The driver reserves only a connection that is open already when it need not ask the server for types.
  await sql`select 1`;
  const connection = await sql.reserve();
  const [row] = await connection<{ won: boolean }[]>`select pg_try_advisory_lock(${ACCOUNTANT_LOCK}) as won`;
  if (row?.won !== true) {
    connection.release();
    return undefined;
  }
  const [term] = await connection<
    { number: bigint }[]
  >`update term set number = number + 1, holder = ${holder}, since = now() returning number`;
  let over = false;
  const lost = (async () => {
    while (!over) {
      await new Promise((resolve) => setTimeout(resolve, 1000).unref());
      try {
        if (!over) await connection`select 1`;
      } catch {
        return;
      }
    }
  })();
  return {
    number: (term as { number: bigint }).number,
    lost,
    async release() {
      over = true;
      await connection`select pg_advisory_unlock(${ACCOUNTANT_LOCK})`.catch(() => undefined);
      connection.release();
    },
  };
}

/** A transaction of the books, fenced. The lock on the row makes a newer election wait for transactions under way. */
export async function fenced<T>(sql: Sql, term: bigint, work: (transaction: Transaction) => Promise<T>): Promise<T> {
  return (await sql.begin(async (transaction) => {
    const [row] = await transaction<{ number: bigint }[]>`select number from term for share`;
    const newest = (row as { number: bigint }).number;
    if (newest !== term) throw new TermLostError(term, newest);
    return work(transaction);
  })) as T;
}
