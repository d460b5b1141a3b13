/**
 * Small files that must survive a power cut whole: the new contents are written beside the old, flushed to the disk and
 * renamed over it, and the directory is flushed too. A reader sees the old file or the new one, never a part.
 */
import { open, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';

/** Writers of one path wait for each other: they share the name of the temporary file, so none is ever left to rot. */
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
  const temporary = `${path}.tmp`;
  // One left by a crash may have other rights.
  await rm(temporary, { force: true });
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

/** Makes the creation, renaming and removal of files in it durable. */
export async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path, 'r');
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}
