/** Opens the pool's database: a server named by --database, or the embedded one under the data directory. */
import { join } from 'node:path';
import type { PoolValues } from '../options.ts';
import { PoolError } from '../pool-error.ts';
import type { PoolDependencies } from '../start/pool-dependencies.ts';
import { connectDatabase, type Sql } from './connect.ts';
import { startEmbeddedPostgres } from './embedded.ts';
import { migrate } from './migrate.ts';

const CONNECTIONS = 10;
/** The locks of a process that hangs must not stop its successor (books/term.ts). */
const IDLE_TRANSACTION_MILLIS = 60_000;

export async function openDatabase(
  values: PoolValues,
  dependencies: PoolDependencies,
): Promise<{ readonly sql: Sql; readonly databaseUrl: string }> {
  const { log, started } = dependencies;
  const databaseUrl = values.database ?? (await startServer(values, dependencies));
  const sql = connectDatabase(databaseUrl, {
    max: CONNECTIONS,
    idleTransactionMillis: IDLE_TRANSACTION_MILLIS,
  });
  started('database connections', () => sql.end({ timeout: 5 }));
  await migrate(sql, log.child('database')).catch((error: Error) => {
    throw new PoolError('database_unavailable', `the database cannot be used: ${error.message}`);
  });
  return { sql, databaseUrl };
}

async function startServer(values: PoolValues, { log, started, fault }: PoolDependencies): Promise<string> {
  try {
    const server = await startEmbeddedPostgres(join(values.dataDir, 'database'), log.child('database'));
    let isStopping = false;
    started('database', () => {
      isStopping = true;
      return server.stop();
    });
    void server.exited.then(() => {
      if (!isStopping) fault('the embedded database ended');
    });
    return server.url;
  } catch (error) {
    if (error instanceof PoolError) throw error;
    throw new PoolError('database_unavailable', (error as Error).message);
  }
}
