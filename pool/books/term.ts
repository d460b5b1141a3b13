/**
 * The one active accountant (docs/pool.md, many instances). A PostgreSQL advisory lock on a connection of its own
 * elects it; each election raises the term, and every transaction of the books first checks that its own term is still
 * the newest, and that the server is the run of it that the term was won on. So an accountant that lost its connection
 * and returns late can write nothing. Nor can one whose database was replaced by an older copy under the same address,
 * until it has restarted from the state of that copy. A copy that was put back into the running server counts its terms
 * on from an earlier one: so no number is below the clock's milliseconds, and none is given twice.
 */
import type { Sql, Transaction } from '../database/connect.ts';
import { checkSchema } from '../database/migrate.ts';

const ACCOUNTANT_LOCK = 0x5356_4302;
/** An accountant uses its connection every second. One that has not for so long hangs: what it does later is fenced off. */
const SILENT_SECONDS = 60;

export class TermLostError extends Error {
  constructor(own: bigint, newest: bigint) {
    super(
      newest === own
        ? `term ${own} is over: the database server is not the one that it began on`
        : `term ${own} is over: term ${newest} has begun`,
    );
    this.name = 'TermLostError';
  }
}

export type Term = {
  readonly number: bigint;
  /** Resolves when the connection that holds the lock is lost. */
  readonly lost: Promise<void>;
  release(): Promise<void>;
};

/**
 * Tries once; undefined while another instance is the accountant. One that is silent loses the lock, for the next try. `sql` must be a separate client with one connection.
 * The connection is not reserved: the driver ends the process when a reserved one is used after it was lost. After a
 * loss it reconnects, and the lock is gone: the server's process has another id.
 */
export async function tryElection(sql: Sql, holder: string, silentSeconds = SILENT_SECONDS): Promise<Term | undefined> {
  await checkSchema(sql);
  const [row] = await sql<{ won: boolean; pid: number }[]>`select pg_try_advisory_lock(${ACCOUNTANT_LOCK}) as won,
    pg_backend_pid() as pid`;
  if (row?.won !== true) {
    await endSilent(sql, silentSeconds);
    return undefined;
  }
  await endAbandoned(sql, silentSeconds);
  const [term] = await sql<{ number: bigint }[]>`update term
    set number = greatest(number + 1, floor(extract(epoch from clock_timestamp()) * 1000)::bigint), holder = ${holder}, since = now(),
    server_started = pg_postmaster_start_time() returning number`;
  let over = false;
  const lost = (async () => {
    while (!over) {
      await new Promise((resolve) => setTimeout(resolve, 1000).unref());
      try {
        const [now] = over ? [row] : await sql<{ pid: number }[]>`select pg_backend_pid() as pid`;
        if (now?.pid !== row.pid) return;
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
      await sql`select pg_advisory_unlock(${ACCOUNTANT_LOCK}) where pg_backend_pid() = ${row.pid}`.catch(
        () => undefined,
      );
    },
  };
}

/** Ends the connection of an accountant that has done nothing on it for so long. */
const endSilent = (sql: Sql, seconds: number) => sql`select pg_terminate_backend(l.pid)
  from pg_locks l join pg_stat_activity a on a.pid = l.pid
  where l.locktype = 'advisory' and l.classid = 0 and l.objid = ${ACCOUNTANT_LOCK} and l.objsubid = 1 and l.granted
    and l.database = (select oid from pg_database where datname = current_database())
    and a.state = 'idle' and a.state_change <= now() - ${seconds} * interval '1 second'`;

/** Transactions of terms before, of which the server waits for the rest: one that hangs in the middle of a COPY never ends by itself. Who only reads, such as a backup, has another lock. */
const endAbandoned = (sql: Sql, seconds: number) => sql`select pg_terminate_backend(l.pid)
  from pg_locks l join pg_stat_activity a on a.pid = l.pid
  where l.locktype = 'relation' and l.relation = 'term'::regclass and l.mode <> 'AccessShareLock' and l.granted and l.pid <> pg_backend_pid()
    and l.database = (select oid from pg_database where datname = current_database())
    and a.wait_event_type = 'Client' and a.xact_start <= now() - ${seconds} * interval '1 second'`;

/** A transaction of the books, fenced. The lock on the row makes a newer election wait for transactions under way. */
export async function fenced<T>(sql: Sql, term: bigint, work: (transaction: Transaction) => Promise<T>): Promise<T> {
  return (await sql.begin(async (transaction) => {
    const [row] = await transaction<{ number: bigint; same: boolean }[]>`select number,
      coalesce(server_started = pg_postmaster_start_time(), true) as same from term for share`;
    const { number: newest, same } = row as { number: bigint; same: boolean };
    if (newest !== term || !same) throw new TermLostError(term, newest);
    return work(transaction);
  })) as T;
}
