/**
 * Files that the pool hands out with their checksums, such as the miner's archives. They are opened and summed up at the start: what is
 * sent is what the checksum says, also when a file is replaced meanwhile. One that is written over in its place is not sent any more.
 */
import { createHash } from 'node:crypto';
import { fstatSync } from 'node:fs';
import { type FileHandle, open, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { PoolError } from '../../pool-error.ts';

export type Download = { readonly name: string; readonly bytes: number; readonly sha256: string };

type Kept = Download & { readonly handle: FileHandle; readonly stamp: string };

const NAME = /^[A-Za-z0-9][A-Za-z0-9._+-]{0,127}$/;
const MOST_FILES = 64;
const PIECE = 65_536;

export class Downloads {
  readonly #files: ReadonlyMap<string, Kept>;

  private constructor(files: readonly Kept[]) {
    this.#files = new Map(files.map((file) => [file.name, file]));
  }

  /** Without a folder there are none. */
  static async open(directory: string | undefined): Promise<Downloads> {
    if (directory === undefined) return new Downloads([]);
    const entries = await readdir(directory, { withFileTypes: true }).catch((error: Error) => {
      throw new PoolError('downloads', `--downloads ${directory} cannot be read: ${error.message}`);
    });
    const names = entries.filter((entry) => entry.isFile() && NAME.test(entry.name)).map(({ name }) => name);
    if (names.length > MOST_FILES)
      throw new PoolError(
        'downloads',
        `--downloads ${directory} has ${names.length} files, at most ${MOST_FILES} are served`,
      );
    return new Downloads(await Promise.all(names.toSorted().map((name) => kept(directory, name))));
  }

  get list(): Download[] {
    return [...this.#files.values()].map(({ name, bytes, sha256 }) => ({ name, bytes, sha256 }));
  }

  get(name: string): Download | undefined {
    return this.#files.get(name);
  }

  /** False once a file was written over. */
  isUnchanged(name: string): boolean {
    const { handle, stamp } = this.#files.get(name) as Kept;
    return stampOf(handle) === stamp;
  }

  /** From the given byte on. The client's speed decides when the next piece is read. */
  read(name: string, from: number): Readable {
    return Readable.from(pieces(this.#files.get(name) as Kept, from), { objectMode: false });
  }

  async close(): Promise<void> {
    for (const { handle } of this.#files.values()) await handle.close();
  }
}

/** Size and time of the last write. */
function stampOf(handle: FileHandle): string {
  const { size, mtimeNs } = fstatSync(handle.fd, { bigint: true });
  return `${size} ${mtimeNs}`;
}

async function kept(directory: string, name: string): Promise<Kept> {
  try {
    const handle = await open(join(directory, name));
    const stamp = stampOf(handle);
    const file = { name, bytes: Number(stamp.split(' ')[0]), handle, stamp };
    const sum = createHash('sha256');
    for await (const piece of pieces(file, 0)) sum.update(piece);
    return { ...file, sha256: sum.digest('hex') };
  } catch (error) {
    throw new PoolError('downloads', `--downloads: ${(error as Error).message}`);
  }
}

async function* pieces({ name, bytes, handle, stamp }: Omit<Kept, 'sha256'>, from: number): AsyncGenerator<Buffer> {
  for (let at = from; at < bytes; ) {
    const wanted = Math.min(PIECE, bytes - at);
    const { bytesRead, buffer } = await handle.read(Buffer.allocUnsafe(wanted), 0, wanted, at);
    at += bytesRead;
    // Without its end nobody takes it for the file.
    if (bytesRead === 0 || (at === bytes && stampOf(handle) !== stamp))
      throw new Error(`${name} was changed while it was read`);
    yield buffer.subarray(0, bytesRead);
  }
}
