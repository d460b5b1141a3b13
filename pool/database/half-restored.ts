/**
 * A restore moves the database away and the copy into its place: two renames. A power failure between them leaves no
 * database, and a start would create an empty one. A marker file beside the folder exists from before the first rename
 * until after the second.
 */
import { existsSync, readFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { syncDirectory, writeDurably } from '../../runtime/files/durable-file.ts';
import { PoolError } from '../pool-error.ts';

const markOf = (database: string): string => `${resolve(database)}.restoring`;

/** `kept` is the new path of the previous database. */
export const markRestoring = (database: string, kept: string | undefined): Promise<void> =>
  writeDurably(markOf(database), `${kept ?? ''}\n`);

export async function unmarkRestoring(database: string): Promise<void> {
  await rm(markOf(database), { force: true });
  await syncDirectory(dirname(resolve(database)));
}

/** The path to which an interrupted restore moved the database; undefined if there was none. */
export function keptBefore(database: string): string | undefined {
  const mark = markOf(database);
  return (existsSync(mark) && readFileSync(mark, 'utf8').trim()) || undefined;
}

export function insistWhole(database: string): void {
  if (!existsSync(markOf(database))) return;
  const kept = keptBefore(database);
  const back = kept === undefined ? '' : `; the database before it is ${kept}`;
  throw new PoolError(
    'restore_interrupted',
    `a restore to ${resolve(database)} was interrupted: run svc-pool restore with the same copy again${back}`,
  );
}
