/**
 * Small files that must survive a power cut whole: the new contents are written beside the old, flushed to the disk and
 * renamed over it, and the directory is flushed too. A reader sees the old file or the new one, never a part.
 */
import { open, readdir, rename, rm } from 'node:fs/promises';
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

async function replace(path: string, contents: string | Uint8Array, mode: number): Promise<void> {
  // Two processes may write the same file, such as two miners of one user: each has a temporary file of its own, and the later one counts.
  const temporary = `${path}.${process.pid}.tmp`;
  await removeLeftovers(path);
  try {
    const file = await open(temporary, 'wx', mode);
    try {
      await file.writeFile(contents);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
  await syncDirectory(dirname(path));
}

/** Temporary files of this path that a crash left behind: those of processes that are gone, or that had the number of this one. */
async function removeLeftovers(path: string): Promise<void> {
  const start = `${basename(path)}.`;
  for (const name of await readdir(dirname(path))) {
    const owner = name.startsWith(start) ? /^(\d{1,10})\.tmp$/.exec(name.slice(start.length))?.[1] : undefined;
    if (owner !== undefined && (Number(owner) === process.pid || !isAlive(Number(owner))))
      await rm(join(dirname(path), name), { force: true });
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ESRCH';
  }
}

/** Makes the creation, renaming and removal of files in it durable. */
export async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path, 'r');
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}
