/**
 * Files that the pool hands out with their checksums, such as the miner's archives. They are opened and summed up at the start: what is
 * sent is what the checksum says, also when a file is replaced meanwhile.
 */
import { createHash } from 'node:crypto';
import { type FileHandle, open, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { PoolError } from '../../pool-error.ts';

export type Download = { readonly name: string; readonly bytes: number; readonly sha256: string };

type Kept = Download & { readonly handle: FileHandle };

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

  /** From the given byte on. The client's speed decides when the next piece is read. */
  read(name: string, from: number): Readable {
    return Readable.from(pieces(this.#files.get(name) as Kept, from), { objectMode: false });
  }

  async close(): Promise<void> {
    for (const { handle } of this.#files.values()) await handle.close();
  }
}

async function kept(directory: string, name: string): Promise<Kept> {
  const handle = await open(join(directory, name)).catch((error: Error) => {
    throw new PoolError('downloads', `--downloads: ${error.message}`);
  });
  const { size: bytes } = await handle.stat();
  const sum = createHash('sha256');
  for await (const piece of pieces({ name, bytes, handle }, 0)) sum.update(piece);
  return { name, bytes, sha256: sum.digest('hex'), handle };
}

async function* pieces({ name, bytes, handle }: Omit<Kept, 'sha256'>, from: number): AsyncGenerator<Buffer> {
  for (let at = from; at < bytes; ) {
    const wanted = Math.min(PIECE, bytes - at);
    const { bytesRead, buffer } = await handle.read(Buffer.allocUnsafe(wanted), 0, wanted, at);
    if (bytesRead === 0) throw new Error(`${name} became shorter while it was read`);
    at += bytesRead;
    yield buffer.subarray(0, bytesRead);
  }
}
