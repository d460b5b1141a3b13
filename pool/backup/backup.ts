/**
 * Copies of the books in the embedded database. `backup` makes one, whether or not the pool is running; `restore`
 * replaces the database of a stopped pool by a copy, keeps the old one, and leaves payouts paused until a person
 * resumes them.
 */
import { existsSync } from 'node:fs';
import { mkdir, open, readdir, rename, rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { DirectoryLockedError, lockDirectory } from '../../runtime/files/directory-lock.ts';
import { syncDirectory, writeDurably } from '../../runtime/files/durable-file.ts';
import { makeDirectory } from '../../runtime/files/make-directory.ts';
import type { Logger } from '../../runtime/log/log.ts';
import { pausePayouts } from '../api/operator/payout-pause.ts';
import { copyDurably, copyFiles, copyRunning, giveTo } from '../database/base-copy.ts';
import {
  databaseOwner,
  endForgotten,
  isEmbeddedMade,
  runningEmbedded,
  startEmbeddedPostgres,
} from '../database/embedded.ts';
import { keptBefore, markRestoring, unmarkRestoring } from '../database/half-restored.ts';
import { insistPool, openBooks } from '../database/open-books.ts';
import { PoolError } from '../pool-error.ts';
import { POOL_KEY_FILE } from '../receipts/pool-key.ts';
import { lockForBackup } from '../start/directory.ts';
import { LAST_BACKUP_FILE } from '../upkeep-metrics.ts';

const NAME = /^books-\d{8}T\d{6}Z$/;
const DRAFT = /^books-\d{8}T\d{6}Z\.([0-9a-f]{16})\.(\d{1,10})\.part$/;
const KEY = POOL_KEY_FILE;

const stamp = (millis: number): string => new Date(millis).toISOString().replace(/[-:]|\.\d+/g, '');

export type Copy = { readonly name: string; readonly cluster: string | undefined };

/**
 * The copies to delete: the oldest ones of this pool beyond the number to keep, not counting copies with a later time.
 */
export const outdated = (copies: readonly Copy[], made: string, cluster: string, keep: number): string[] =>
  copies
    .filter((copy) => NAME.test(copy.name) && copy.cluster === cluster && copy.name <= made)
    .map(({ name }) => name)
    .sort()
    .slice(0, -keep);

/** Unfinished copies of this pool whose process has ended; another machine or pool may be writing the others. */
export const leftovers = (names: readonly string[], cluster: string, isAlive: (pid: number) => boolean): string[] =>
  names.filter((name) => {
    const [, owner, pid] = DRAFT.exec(name) ?? [];
    return owner === cluster && !isAlive(Number(pid));
  });

/** PostgreSQL's system identifier, which all copies of a database share: the first eight bytes of `pg_control`. */
async function clusterOf(folder: string): Promise<string | undefined> {
  const file = await open(join(folder, 'data', 'global', 'pg_control'), 'r').catch(() => undefined);
  try {
    const { bytesRead, buffer } = (await file?.read(Buffer.alloc(8), 0, 8, 0)) ?? { bytesRead: 0 };
    return bytesRead === 8 ? buffer?.toString('hex') : undefined;
  } finally {
    await file?.close();
  }
}

export type BackupOptions = {
  readonly dataDir: string;
  readonly to: string;
  /** Absent: all copies are kept. */
  readonly keep: number | undefined;
};

/** Returns the folder of the copy. It gets its final name only when it is complete. */
export async function backup(options: BackupOptions, log: Logger, nowMillis: number): Promise<string> {
  const { dataDir, to } = options;
  insistPool(dataDir);
  const database = join(dataDir, 'database');
  makeDirectory(to, 0o700);
  const cluster = (await clusterOf(database)) ?? '0'.repeat(16);
  const made = `books-${stamp(nowMillis)}`;
  const path = join(to, made);
  for (const name of leftovers(await readdir(to), cluster, isOthers))
    await rm(join(to, name), { recursive: true, force: true });
  if (existsSync(path)) throw new PoolError('backup_unusable', `${path} is there already`);
  const draft = `${path}.${cluster}.${process.pid}.part`;
  await mkdir(draft, { mode: 0o700 });
  try {
    await withServer(dataDir, log, (url) => copyRunning(join(database, 'data'), url, join(draft, 'data')));
    await copyDurably(join(database, 'password'), join(draft, 'password'));
    if (existsSync(join(dataDir, KEY))) await copyDurably(join(dataDir, KEY), join(draft, KEY));
    await writeDurably(join(draft, 'ready'), 'ready\n', 0o600);
    await rename(draft, path);
    await syncDirectory(to);
    await writeDurably(join(dataDir, LAST_BACKUP_FILE), '');
  } catch (error) {
    await rm(draft, { recursive: true, force: true });
    throw error;
  }
  if (options.keep !== undefined) await prune(to, { made, cluster, keep: options.keep }, log);
  return path;
}

type Pruning = { readonly made: string; readonly cluster: string; readonly keep: number };

async function prune(to: string, { made, cluster, keep }: Pruning, log: Logger): Promise<void> {
  const names = (await readdir(to)).filter((name) => NAME.test(name));
  const copies = await Promise.all(names.map(async (name) => ({ name, cluster: await clusterOf(join(to, name)) })));
  for (const name of outdated(copies, made, cluster, keep)) await rm(join(to, name), { recursive: true, force: true });
  const later = copies.filter((copy) => copy.cluster === cluster && copy.name > made);
  if (later.length > 0) log.warn('copies with a later time stay: look at the clock', { copies: later.length, made });
}

/** Whether another process with that id is running; an ended one may have had this process's id. */
function isOthers(pid: number): boolean {
  if (pid === process.pid) return false;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ESRCH';
  }
}

/** Uses the server of the running pool, or starts one for this. */
async function withServer(dataDir: string, log: Logger, run: (url: string) => Promise<void>): Promise<void> {
  const database = join(dataDir, 'database');
  try {
    const lock = lockForBackup(dataDir);
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
  if (!isEmbeddedMade(from)) throw new PoolError('backup_unusable', `${from} is not a complete copy of a pool's books`);
  const lock = lockDirectory(dataDir);
  const database = join(dataDir, 'database');
  const draft = `${database}.part`;
  try {
    // Servers left by a restore or a pool that was killed would keep writing to the folders that are moved.
    for (const folder of [draft, database]) await endForgotten(folder, log);
    await rm(draft, { recursive: true, force: true });
    await mkdir(draft, { mode: 0o755 });
    await copyFiles(join(from, 'data'), join(draft, 'data'));
    for (const name of ['password', 'ready']) await copyDurably(join(from, name), join(draft, name));
    const owner = databaseOwner();
    if (owner !== undefined) await giveTo(join(draft, 'data'), owner, owner);
    await syncDirectory(draft);
    // Paused before the copy takes its place: an interrupted restore must not leave books that pay at once, nor replace
    // good ones by a copy that cannot be opened.
    const poolAddress = await pauseAt(draft, log);
    if (existsSync(join(from, KEY)) && !existsSync(join(dataDir, KEY)))
      await copyDurably(join(from, KEY), join(dataDir, KEY));
    return { poolAddress, kept: await exchange(draft, database, nowMillis) };
  } finally {
    lock.release();
  }
}

/** Returns the new path of the previous database. */
async function exchange(draft: string, database: string, nowMillis: number): Promise<string | undefined> {
  const kept = existsSync(database) ? resolve(`${database}.before-${stamp(nowMillis)}`) : keptBefore(database);
  await markRestoring(database, kept);
  if (kept !== undefined && existsSync(database)) await rename(database, kept);
  await rename(draft, database);
  await unmarkRestoring(database);
  return kept;
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
