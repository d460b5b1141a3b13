/**
 * Opens the books of a pool, for the commands that read or repair them. Nothing is created: a directory without a pool
 * is refused.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { NetworkName } from '../../protocol/network.ts';
import type { Logger } from '../../runtime/log/log.ts';
import { booksOf } from '../audit/books-of.ts';
import { PoolError } from '../pool-error.ts';
import { lockAfterBackup } from '../start/directory.ts';
import { connectDatabase, type Sql } from './connect.ts';
import { isEmbeddedMade, runningEmbedded, startEmbeddedPostgres } from './embedded.ts';
import { insistWhole } from './half-restored.ts';

export type OpenBooks = {
  readonly sql: Sql;
  readonly network: NetworkName;
  readonly poolAddress: string;
  close(): Promise<void>;
};

export type BooksPlace = {
  readonly dataDir: string;
  readonly database: string | undefined;
  /** The command uses the data directory for more than the database. */
  readonly locksDirectory?: boolean;
  /** The command only reads, so the pool may be running. */
  readonly isReader?: boolean;
};

export async function openBooks(place: BooksPlace, name: string, log: Logger): Promise<OpenBooks> {
  const stops: (() => unknown)[] = [];
  const close = async () => {
    for (const stop of stops.splice(0).reverse()) await stop();
  };
  try {
    if (place.database === undefined) insistPool(place.dataDir);
    const folder = join(place.dataDir, 'database');
    const running =
      place.database ?? (place.isReader === true ? await runningEmbedded(folder).catch(() => undefined) : undefined);
    if (running === undefined || place.locksDirectory === true) {
      const lock = await lockAfterBackup(place.dataDir, { log, started: () => undefined });
      stops.push(() => lock.release());
    }
    const server = running === undefined ? await startEmbeddedPostgres(folder, log) : undefined;
    stops.push(() => server?.stop());
    const sql = connectDatabase(running ?? (server?.url as string), { max: 2, name });
    stops.push(() => sql.end({ timeout: 5 }));
    return { sql, ...(await booksOf(sql)), close };
  } catch (error) {
    await close();
    const { code, message } = error as { code?: unknown; message: string };
    if (error instanceof PoolError || code === 'directory_locked') throw error;
    throw new PoolError('database_unavailable', `the database cannot be used: ${message}`);
  }
}

export function insistPool(dataDir: string): void {
  insistWhole(join(dataDir, 'database'));
  if (isEmbeddedMade(join(dataDir, 'database'))) return;
  const what = existsSync(dataDir) ? 'holds no pool with an embedded database' : 'does not exist';
  throw new PoolError(
    'not_a_pool',
    `${dataDir} ${what}: name the pool's own directory with --data-dir, or its server with --database`,
  );
}
