/**
 * The pool's data directory: one chain, and one process at a time. A backup ends by itself, so a pool that starts meanwhile, or a
 * command that reads the books, waits for it and reports that.
 */
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { claimFormat } from '../../runtime/files/directory-format.ts';
import { type DirectoryLock, DirectoryLockedError, lockDirectory } from '../../runtime/files/directory-lock.ts';
import { createDurably } from '../../runtime/files/durable-file.ts';
import { readSmallFile } from '../../runtime/files/small-file.ts';
import { PoolError } from '../pool-error.ts';
import type { PoolDependencies } from './pool-dependencies.ts';

const BACKUP = 'svc-pool backup';
const LOOK_MILLIS = 200;
const TOLD_MILLIS = 10_000;

export const lockForBackup = (dataDir: string): DirectoryLock => lockDirectory(dataDir, BACKUP);

/** A directory of a newer release is not kept locked. */
async function claimed(dataDir: string): Promise<DirectoryLock> {
  const lock = lockDirectory(dataDir);
  try {
    await claimFormat(dataDir, 'pool');
    return lock;
  } catch (error) {
    lock.release();
    throw error;
  }
}

export async function lockAfterBackup(
  dataDir: string,
  { log, started }: Pick<PoolDependencies, 'log' | 'started'>,
): Promise<DirectoryLock> {
  const stop = new AbortController();
  let told = Number.NEGATIVE_INFINITY;
  for (;;) {
    try {
      return await claimed(dataDir);
    } catch (error) {
      if (!(error instanceof DirectoryLockedError) || error.purpose !== BACKUP || stop.signal.aborted) throw error;
      if (told === Number.NEGATIVE_INFINITY) started('wait for a backup', () => stop.abort());
      if (performance.now() >= told + TOLD_MILLIS) {
        told = performance.now();
        log.warn('waiting for the end of a backup', { process: error.pid });
      }
    }
    await sleep(LOOK_MILLIS, undefined, { signal: stop.signal }).catch(() => undefined);
  }
}

/**
 * A network can begin anew under its name. Journals of the chain before would be booked by a new database as work on this
 * one, and the key in the directory has signed slices by their numbers, which come again: two records convict the pool
 * (books rule 20).
 */
export async function claimChain(dataDir: string, chainId: string): Promise<void> {
  const path = join(dataDir, 'pool.chain');
  if (await createDurably(path, `${chainId}\n`)) return;
  const known = readSmallFile(path).trim();
  if (known !== chainId)
    throw new PoolError(
      'directory_other_chain',
      `the nodes follow chain ${chainId}, and ${path} says that this directory is of chain ${known}: name nodes of that chain, or begin with another --data-dir, database and key`,
    );
}
