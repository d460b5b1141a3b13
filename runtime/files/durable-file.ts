/**
 * Small files that must survive a power failure intact: the new contents are written beside the old, flushed to the
 * disk and renamed over it, and the directory is flushed too. A reader sees the old file or the new one, never a part.
 */
import { randomBytes } from 'node:crypto';
import { link, open, readdir, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';

/** Writers of one path within a process wait for each other: they share the name of the temporary file. */
const writers = new Map<string, Promise<void>>();

export function writeDurably(path: string, contents: string | Uint8Array, mode = 0o640): Promise<void> {
  const before = writers.get(path) ?? Promise.resolve();
  const write = before.catch(() => undefined).then(() => replace(path, contents, mode));
  writers.set(path, write);
  const forget = () => {
    if (writers.get(path) === write) writers.delete(path);
  };
  write.then(forget, forget);
  return write;
}

/** Two processes may write the same file, also from two containers, where both have the same id: each write has a temporary file of its own, and the later one counts. */
const temporaryOf = (path: string): string => `${path}.${randomBytes(8).toString('hex')}.tmp`;

async function replace(path: string, contents: string | Uint8Array, mode: number): Promise<void> {
  const temporary = temporaryOf(path);
  try {
    await writeBeside(path, temporary, contents, mode);
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
  await syncDirectory(dirname(path));
}

/** No write takes longer: an older temporary file was left by a crash. Whether another container's process runs cannot be asked. */
const LEFT_MILLIS = 3_600_000;

/** `now` is by the clock of the file system. */
async function removeLeftovers(path: string, now: number): Promise<void> {
  const start = `${basename(path)}.`;
  for (const name of await readdir(dirname(path))) {
    if (!name.startsWith(start) || !/^[0-9a-f]{1,16}\.tmp$/.test(name.slice(start.length))) continue;
    const file = join(dirname(path), name);
    const written = await stat(file).catch(() => undefined);
    if (written !== undefined && now - written.mtimeMs > LEFT_MILLIS) await rm(file, { force: true });
  }
}

async function writeBeside(
  path: string,
  temporary: string,
  contents: string | Uint8Array,
  mode: number,
): Promise<void> {
  const file = await open(temporary, 'wx', mode);
  try {
    await removeLeftovers(path, (await file.stat()).mtimeMs);
    await file.writeFile(contents);
    await file.sync();
  } finally {
    await file.close();
  }
}

/** The same for a file that must not exist yet: an existing one is not changed, and the result is false. */
export async function createDurably(path: string, contents: string | Uint8Array, mode = 0o640): Promise<boolean> {
  const temporary = temporaryOf(path);
  try {
    await writeBeside(path, temporary, contents, mode);
    // Unlike a rename a link never replaces.
    await link(temporary, path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  } finally {
    await rm(temporary, { force: true });
  }
  await syncDirectory(dirname(path));
  return true;
}

/** Makes the contents of all files in it durable, and their names, also of files that others wrote. */
export async function syncFiles(directory: string): Promise<void> {
  for (const entry of await readdir(directory, { withFileTypes: true })) {
    const path = join(directory, entry.name);
    if (entry.isDirectory()) await syncFiles(path);
    else if (entry.isFile()) await syncPath(path);
  }
  await syncDirectory(directory);
}

/** Makes the creation, renaming and removal of files in it durable. */
export const syncDirectory = (path: string): Promise<void> => syncPath(path);

async function syncPath(path: string): Promise<void> {
  const opened = await open(path, 'r');
  try {
    await opened.sync();
  } finally {
    await opened.close();
  }
}
