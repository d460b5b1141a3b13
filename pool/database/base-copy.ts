/**
 * A copy of the embedded database's files, taken while its server runs: a PostgreSQL base backup. Pages that changed
 * while they were read are repaired from the log, which a replication slot keeps until it is copied too.
 */
import type { Dirent } from 'node:fs';
import { chmod, chown, copyFile, lstat, mkdir, open, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { PoolError } from '../pool-error.ts';
import { connectDatabase } from './connect.ts';

/** Left out: files of the running server, or recreated at a start; the log is copied last. */
const LEFT_OUT = new Set(['postmaster.pid', 'postmaster.opts', 'pg_wal', 'backup_label', 'pg_replslot', 'pg_stat_tmp']);
/** Folders that must exist but may be empty. */
const EMPTY = ['pg_replslot', 'pg_stat_tmp'];

/** Files copied concurrently: a disk flushes several in the time of one. */
const AT_ONCE = 16;

const isGone = (error: unknown): boolean => (error as NodeJS.ErrnoException).code === 'ENOENT';

/** Files that vanish meanwhile are not needed. Each is on the disk before this ends. */
export async function copyFiles(from: string, to: string, leaveOut: ReadonlySet<string> = new Set()): Promise<void> {
  await mkdir(to, { mode: 0o700 });
  const entries = (await readdir(from, { withFileTypes: true })).filter(({ name }) => !leaveOut.has(name));
  const copy = async (entry: Dirent) => {
    const [source, target] = [join(from, entry.name), join(to, entry.name)];
    try {
      if (entry.isDirectory()) await copyFiles(source, target);
      else if (entry.isFile()) await copyDurably(source, target);
    } catch (error) {
      if (!isGone(error) || (await lstat(source).catch(() => undefined)) !== undefined) throw error;
    }
  };
  for (let i = 0; i < entries.length; i += AT_ONCE) await Promise.all(entries.slice(i, i + AT_ONCE).map(copy));
}

export async function copyDurably(source: string, target: string): Promise<void> {
  await copyFile(source, target);
  await chmod(target, 0o600);
  const file = await open(target, 'r+');
  try {
    await file.sync();
  } finally {
    await file.close();
  }
}

/** `data` is the folder of the server behind `url`; `to` must not exist. */
export async function copyRunning(data: string, url: string, to: string): Promise<void> {
  const sql = connectDatabase(url, { max: 1, name: 'svc-pool-backup' });
  try {
    // One connection for all of it, in a transaction so that it is not closed as idle: slot and backup end with it, whatever happens.
    await sql.begin(async (transaction) => {
      await transaction`set local statement_timeout = 0`;
      const slot = `svc_backup_${process.pid}`;
      await transaction`select pg_create_physical_replication_slot(${slot}, true, true)`;
      await transaction`select pg_backup_start('svc-pool', true)`;
      await copyFiles(data, to, LEFT_OUT);
      const [stopped] = await transaction<{ labelfile: string }[]>`select labelfile from pg_backup_stop(false)`;
      await writeFile(join(to, 'backup_label'), (stopped as { labelfile: string }).labelfile, { mode: 0o600 });
      await copyFiles(join(data, 'pg_wal'), join(to, 'pg_wal'));
      const [kept] = await transaction<{ status: string }[]>`
        select wal_status as status from pg_replication_slots where slot_name = ${slot}`;
      if (kept === undefined || kept.status === 'lost')
        throw new PoolError(
          'backup_unusable',
          'the copy took so long that the database no longer has the log of its beginning',
        );
    });
    for (const name of EMPTY) await mkdir(join(to, name), { mode: 0o700 });
  } finally {
    await sql.end({ timeout: 5 });
  }
}

/** Gives a folder and its contents to this user. */
export async function giveTo(path: string, uid: number, gid: number): Promise<void> {
  await chown(path, uid, gid);
  if (!(await lstat(path)).isDirectory()) return;
  for (const name of await readdir(path)) await giveTo(join(path, name), uid, gid);
}
