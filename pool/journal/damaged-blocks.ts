/**
 * Reads a file of which the disk does not give back some blocks: they are zeros, which no reader of a journal takes for entries. One bad sector must hold up neither the
 * start of a pool nor the entries around it.
 */
import { type FileHandle, open, readFile } from 'node:fs/promises';

/** The smallest piece that a disk reads. */
const BLOCK_BYTES = 4_096;

const isUnreadable = (error: unknown): boolean => (error as NodeJS.ErrnoException).code === 'EIO';

export async function readThroughDamage(path: string): Promise<Buffer> {
  try {
    return await readFile(path);
  } catch (error) {
    if (!isUnreadable(error)) throw error;
  }
  const file = await open(path, 'r');
  try {
    return await readBlocks(file, (await file.stat()).size);
  } finally {
    await file.close();
  }
}

/** At least one zero: a file that cannot be read is not an empty one. */
export async function readBlocks(file: Pick<FileHandle, 'read'>, size: number): Promise<Buffer> {
  const bytes = Buffer.alloc(Math.max(size, 1));
  for (let at = 0; at < size; at += BLOCK_BYTES)
    try {
      await file.read(bytes, at, Math.min(BLOCK_BYTES, size - at), at);
    } catch (error) {
      if (!isUnreadable(error)) throw error;
      bytes.fill(0, at, at + BLOCK_BYTES);
    }
  return bytes;
}
