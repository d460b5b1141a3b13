/**
 * Copies of the books that are kept in the embedded database. `backup` makes one beside a running pool or without one; `restore` puts one in
 * the place of the database of a stopped pool, keeps what was there, and leaves payouts paused: a person looks first.
 */
import { existsSync } from 'node:fs';
import { copyFile, mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DirectoryLockedError, lockDirectory } from '../runtime/directory-lock.ts';
import { syncDirectory } from '../runtime/durable-file.ts';
import type { Logger } from '../runtime/log.ts';
import { makeDirectory } from '../runtime/make-directory.ts';
import { pausePayouts } from './api/payout-pause.ts';
import { copyFiles, copyRunning, giveTo } from './database/base-copy.ts';
import { databaseOwner, isEmbeddedMade, runningEmbedded, startEmbeddedPostgres } from './database/embedded.ts';
import { insistPool, openBooks } from './database/open-books.ts';
import { PoolError } from './pool-error.ts';
import { POOL_KEY_FILE } from './receipts/pool-key.ts';

const NAME = /^books-\d{8}T\d{6}Z$/;
const KEY = POOL_KEY_FILE;

const stamp = (millis: number): string => new Date(millis).toISOString().replace(/[-:]|\.\d+/g, '');

/** The newest are kept; a folder of any other name is nobody's business here. */
export const outdated = (names: readonly string[], keep: number): string[] =>
  names
    .filter((name) => NAME.test(name))
    .sort()
    .slice(0, -keep);

export type BackupOptions = {
  readonly dataDir: string;
  readonly to: string;
  /** All of them without it. */
  readonly keep: number | undefined;
};

/** Returns the folder of the copy. It has its name only when it is whole. */
export async function backup(options: BackupOptions, log: Logger, nowMillis: number): Promise<string> {
  const { dataDir, to } = options;
  insistPool(dataDir);
  const database = join(dataDir, 'database');
  makeDirectory(to, 0o700);
  const path = join(to, `books-${stamp(nowMillis)}`);
  if (existsSync(path)) throw new PoolError('backup_unusable', `${path} is there already`);
  const draft = `${path}.${process.pid}.part`;
  await mkdir(draft, { mode: 0o700 });
  try {
    await withServer(dataDir, log, (url) => copyRunning(join(database, 'data'), url, join(draft, 'data')));
    await copyFile(join(database, 'password'), join(draft, 'password'));
    if (existsSync(join(dataDir, KEY))) await copyFile(join(dataDir, KEY), join(draft, KEY));
    await writeFile(join(draft, 'ready'), 'ready\n', { mode: 0o600 });
    await syncDirectory(draft);
    await rename(draft, path);
    await syncDirectory(to);
  } catch (error) {
    await rm(draft, { recursive: true, force: true });
    throw error;
  }
  if (options.keep !== undefined)
    for (const name of outdated(await readdir(to), options.keep))
      await rm(join(to, name), { recursive: true, force: true });
  return path;
}

/** With the server of the running pool, or one that is started for this. */
async function withServer(dataDir: string, log: Logger, run: (url: string) => Promise<void>): Promise<void> {
  const database = join(dataDir, 'database');
  try {
    const lock = lockDirectory(dataDir);
    try {
      const server = await startEmbeddedPostgres(database, log);
      try {
        await run(server.url);
      } finally {
        await server.stop();
      }
    } finally {
      lock.release();
    }
  } catch (error) {
    if (!(error instanceof DirectoryLockedError)) throw error;
    const url = await runningEmbedded(database);
    if (url === undefined)
      throw new PoolError('backup_unusable', 'the pool is starting or stopping, or another command reads its books');
    await run(url);
  }
}

export type Restored = { readonly poolAddress: string; readonly kept: string | undefined };

/** The pool must be stopped. */
export async function restore(from: string, dataDir: string, log: Logger, nowMillis: number): Promise<Restored> {
  if (!isEmbeddedMade(from)) throw new PoolError('backup_unusable', `${from} is not a whole copy of a pool's books`);
  const lock = lockDirectory(dataDir);
  const database = join(dataDir, 'database');
  const draft = `${database}.part`;
  try {
    await rm(draft, { recursive: true, force: true });
    await mkdir(draft, { mode: 0o755 });
    await copyFiles(join(from, 'data'), join(draft, 'data'));
    for (const name of ['password', 'ready']) await copyFile(join(from, name), join(draft, name));
    const owner = databaseOwner();
    if (owner !== undefined) await giveTo(join(draft, 'data'), owner, owner);
    await syncDirectory(draft);
    // Before it takes its place: a restore that is interrupted must not leave books that pay at once, nor replace good ones by a copy that cannot be opened.
    const poolAddress = await pauseAt(draft, log);
    const kept = existsSync(database) ? `${database}.before-${stamp(nowMillis)}` : undefined;
    if (kept !== undefined) await rename(database, kept);
    await rename(draft, database);
    await syncDirectory(dataDir);
    if (existsSync(join(from, KEY)) && !existsSync(join(dataDir, KEY)))
      await writeFile(join(dataDir, KEY), await readFile(join(from, KEY)), { mode: 0o600 });
    return { poolAddress, kept };
  } finally {
    lock.release();
  }
}

async function pauseAt(database: string, log: Logger): Promise<string> {
  const server = await startEmbeddedPostgres(database, log);
  try {
    const books = await openBooks({ dataDir: '', database: server.url }, 'svc-pool-restore', log);
    try {
      await pausePayouts(books.sql, true);
      const details = { reason: 'restored' };
      await books.sql`insert into operator_log (actor, action, details)
        values ('svc-pool restore', 'pause', ${books.sql.json(details)})`;
      return books.poolAddress;
    } finally {
      await books.close();
    }
  } finally {
    await server.stop();
  }
}
