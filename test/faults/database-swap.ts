/**
 * A real PostgreSQL that falls back to an older copy of itself: what a failover to an asynchronous replica does, and a restore from a
 * backup. The copy is a base backup, taken while the server runs; swapped in, it answers under the same address and password. Everything
 * that was committed after the copy is gone, and no program that uses the database gets a notice.
 */
import { execFile } from 'node:child_process';
import { chownSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { onTestFinished } from 'vitest';
import { connectDatabase } from '../../pool/database/connect.ts';
import type { PostgresServer } from '../pool/postgres-server.ts';

const run = promisify(execFile);

export type DatabaseCopy = { readonly path: string };

/** The state of this moment, as `pg_basebackup` would take it (that program is not among those that come with the package). */
export async function takeBaseBackup(server: PostgresServer): Promise<DatabaseCopy> {
  const path = mkdtempSync(join(tmpdir(), 'svc-basebackup-'));
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  const data = join(server.directory, 'data');
  const sql = connectDatabase(server.url, { max: 1, name: 'test-backup' });
  try {
    // Both calls must come by one connection, and this client has only one.
    await sql`select pg_backup_start('test', true)`;
    // Files come and go while they are copied: the log makes up for whatever was read half.
    await run('cp', ['-a', data, path]).catch((error: Error & { stderr?: string }) => {
      if (!/No such file/.test(error.stderr ?? '')) throw error;
    });
    const [stopped] = await sql<{ labelfile: string }[]>`select labelfile from pg_backup_stop(false)`;
    const label = join(path, 'data', 'backup_label');
    writeFileSync(label, (stopped as { labelfile: string }).labelfile);
    const { uid, gid } = statSync(data);
    chownSync(label, uid, gid);
    // The log up to the end of the copy, as it is now; what ran when the server did belongs to nobody.
    // A piece that is being made has another name until it is whole, and is gone from under that one: then all is copied again.
    for (let isWhole = false; !isWhole; )
      isWhole = await run('cp', ['-a', join(data, 'pg_wal'), join(path, 'data')]).then(
        () => true,
        (error: Error & { stderr?: string }) => {
          if (/No such file/.test(error.stderr ?? '')) return false;
          throw error;
        },
      );
    rmSync(join(path, 'data', 'postmaster.pid'), { force: true });
  } finally {
    await sql.end({ timeout: 1 });
  }
  return { path };
}

/** Ends the server at once and starts the copy in its place. A copy may be swapped in any number of times. */
export async function swapIn(server: PostgresServer, copy: DatabaseCopy): Promise<void> {
  const data = join(server.directory, 'data');
  await server.kill();
  rmSync(data, { recursive: true, force: true });
  await run('cp', ['-a', join(copy.path, 'data'), data]);
  await server.start();
}

/** Copies of fifty rounds would fill a small disk. */
export function removeCopy(copy: DatabaseCopy): void {
  rmSync(copy.path, { recursive: true, force: true });
}
