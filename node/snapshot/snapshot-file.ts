/**
 * The file of a snapshot: eight magic bytes, then parts of `u32 length | bytes`. The kind of the next part follows from
 * those before. A reader allocates no more than the file contains and the part may have.
 */
import { type FileHandle, open, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Bytes } from '../../protocol/bytes.ts';
import { syncDirectory } from '../../runtime/files/durable-file.ts';
import { SnapshotError } from './snapshot-error.ts';

export const MAGIC = Buffer.from('SVCSNAP1', 'latin1');
export const LENGTH_BYTES = 4;

/** Suffix of the name until the file is complete. */
export const UNFINISHED = '.part';

export class PartWriter {
  readonly #file: FileHandle;
  bytes = MAGIC.length;

  constructor(file: FileHandle) {
    this.#file = file;
  }

  async part(bytes: Bytes): Promise<void> {
    const length = Buffer.alloc(LENGTH_BYTES);
    length.writeUInt32LE(bytes.length);
    await this.#file.writeFile(Buffer.concat([length, bytes]));
    this.bytes += LENGTH_BYTES + bytes.length;
  }
}

/** Renamed once it is complete and on disk; a failed one is deleted. */
export async function writeParts(path: string, write: (parts: PartWriter) => Promise<void>): Promise<number> {
  const unfinished = `${path}${UNFINISHED}`;
  await rm(unfinished, { force: true });
  const file = await open(unfinished, 'wx', 0o644);
  const parts = new PartWriter(file);
  try {
    await file.write(MAGIC);
    await write(parts);
    await file.sync();
    await file.close();
    await rename(unfinished, path);
    await syncDirectory(dirname(path));
  } catch (error) {
    await file.close().catch(() => undefined);
    await rm(unfinished, { force: true });
    throw error;
  }
  return parts.bytes;
}

/** All but the last magic byte are those of every release. */
const reasonOf = (magic: Buffer): string =>
  magic.length === MAGIC.length && magic.subarray(0, -1).equals(MAGIC.subarray(0, -1))
    ? `this is a snapshot of the form ${magic.subarray(-1)}, and this release reads form ${MAGIC.subarray(-1)}: take one that this release wrote`
    : 'this is no snapshot';

const unreadable = (message: string): SnapshotError => new SnapshotError('snapshot_unreadable', message);

export class PartReader {
  readonly #file: FileHandle;
  #left: number;

  private constructor(file: FileHandle, bytes: number) {
    this.#file = file;
    this.#left = bytes;
  }

  static async open(path: string): Promise<PartReader> {
    const file = await open(path, 'r');
    const reader = new PartReader(file, (await file.stat()).size);
    try {
      const magic = await reader.#take(Math.min(MAGIC.length, reader.#left));
      if (!magic.equals(MAGIC)) throw unreadable(reasonOf(magic));
      return reader;
    } catch (error) {
      await file.close();
      throw error;
    }
  }

  async #take(length: number): Promise<Buffer> {
    if (length > this.#left) throw unreadable('the snapshot is cut short');
    const bytes = Buffer.allocUnsafeSlow(length);
    for (let at = 0; at < length; ) {
      const { bytesRead } = await this.#file.read(bytes, at, length - at);
      if (bytesRead === 0) throw unreadable('the snapshot is cut short');
      at += bytesRead;
    }
    this.#left -= length;
    return bytes;
  }

  async part(maxBytes: number): Promise<Buffer> {
    const length = (await this.#take(LENGTH_BYTES)).readUInt32LE();
    if (length > maxBytes) throw unreadable('a part of the snapshot is longer than it may be');
    return await this.#take(length);
  }

  end(): void {
    if (this.#left > 0) throw unreadable('something follows the snapshot');
  }

  async close(): Promise<void> {
    await this.#file.close();
  }
}
