/** The lock of the pool's data directory: a start waits for a backup, and for nothing else. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { openBooks } from '../../pool/database/open-books.ts';
import { lockAfterBackup, lockForBackup } from '../../pool/start/directory.ts';
import { lockDirectory } from '../../runtime/files/directory-lock.ts';
import type { Logger } from '../../runtime/log/log.ts';
import { quietLog } from '../quiet-log.ts';
import { temporaryDirectory } from '../temporary.ts';

/** A log that says when the first warning came. */
function watchedLog(): { readonly log: Logger; readonly warned: Promise<void> } {
  const { promise, resolve } = Promise.withResolvers<void>();
  return { log: { ...quietLog, warn: () => resolve() } as Logger, warned: promise };
}

test('a pool that starts during a backup waits for its end', async () => {
  const directory = temporaryDirectory();
  const copying = lockForBackup(directory);
  const { log, warned } = watchedLog();
  const taken = lockAfterBackup(directory, { log, started: () => undefined });
  await Promise.race([warned, taken]);
  copying.release();
  (await taken).release();
});

test('the wait ends with the program, and a pool that runs is not waited for', async () => {
  const directory = temporaryDirectory();
  const copying = lockForBackup(directory);
  const { log, warned } = watchedLog();
  const stops: (() => unknown)[] = [];
  const refused = expect(
    lockAfterBackup(directory, { log, started: (_name, stop) => stops.push(stop) }),
  ).rejects.toThrow(/\(svc-pool backup\)/);
  await warned;
  for (const stop of stops) stop();
  await refused;
  copying.release();
  const running = lockDirectory(directory);
  await expect(lockAfterBackup(directory, { log, started: () => undefined })).rejects.toMatchObject({
    code: 'directory_locked',
  });
  running.release();
});

test('a command that reads the books says at once that it waits for a backup, and goes on after it', async () => {
  const dataDir = temporaryDirectory();
  mkdirSync(join(dataDir, 'database'));
  writeFileSync(join(dataDir, 'database', 'ready'), '');
  const copying = lockForBackup(dataDir);
  const { log, warned } = watchedLog();
  // This database has no files: it goes on as far as that.
  const over = expect(openBooks({ dataDir, database: undefined }, 'test', log)).rejects.toMatchObject({
    code: 'database_unavailable',
  });
  await Promise.race([warned, over]);
  copying.release();
  await over;
});
