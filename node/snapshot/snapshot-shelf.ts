/**
 * Serves the snapshots in a node's folder to peers, part by part, in limited chunks. Files stay open, so that a deleted
 * one can still be read to its end; it is closed a minute after the last request, and of several deleted ones only the
 * newest is kept. Only files of the own chain are offered.
 */
import { constants } from 'node:fs';
import { type FileHandle, open, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { type Bytes, equalBytes } from '../../protocol/bytes.ts';
import { cutId, MAX_CUT_BLOCKS } from '../../protocol/ledger/cut.ts';
import type { SteadyClock } from '../../runtime/clock/clock.ts';
import type { Logger } from '../../runtime/log/log.ts';
import { SET_NAMES } from './committed-sets.ts';
import { MAX_PIECES } from './set-outline.ts';
import { SnapshotError } from './snapshot-error.ts';
import { LENGTH_BYTES, MAGIC } from './snapshot-file.ts';
import { decodeSnapshotHead, SNAPSHOT_CUTS } from './snapshot-head.ts';
import { headRule } from './snapshot-parts.ts';
import { heightOfName } from './snapshot-writer.ts';

const LINGER_MILLIS = 60_000;
/** When a file of a cut beyond the own chain is checked again. */
const LOOK_AGAIN_MILLIS = 5_000;
/** Reads at once, of all peers. */
const MAX_READS = 8;
const MAX_PARTS = 1 + SET_NAMES.length * (1 + MAX_PIECES) + SNAPSHOT_CUTS * MAX_CUT_BLOCKS;

type Shelved = {
  readonly file: FileHandle;
  readonly cutId: Bytes;
  /** Offsets of the parts, and the end. */
  readonly offsets: readonly number[];
  isDeleted: boolean;
  askedAt: number;
};

export type ShelfDependencies = {
  readonly directory: string;
  /** Of the own chain. */
  cutIdOf(height: number): Bytes | undefined;
  readonly steady: SteadyClock;
  readonly log: Logger;
};

const unreadable = (message: string): SnapshotError => new SnapshotError('snapshot_unreadable', message);

async function bytesAt(file: FileHandle, at: number, length: number): Promise<Buffer> {
  const bytes = Buffer.allocUnsafeSlow(length);
  for (let done = 0; done < length; ) {
    const { bytesRead } = await file.read(bytes, done, length - done, at + done);
    if (bytesRead === 0) throw unreadable('the snapshot is cut short');
    done += bytesRead;
  }
  return bytes;
}

async function offsetsOf(file: FileHandle, size: number): Promise<number[]> {
  if (size < MAGIC.length || !(await bytesAt(file, 0, MAGIC.length)).equals(MAGIC))
    throw unreadable('this is no snapshot');
  const offsets = [MAGIC.length];
  for (let at = MAGIC.length; at < size; offsets.push(at)) {
    if (offsets.length > MAX_PARTS) throw unreadable('it has too many parts');
    at += LENGTH_BYTES + (await bytesAt(file, at, LENGTH_BYTES)).readUInt32LE();
    if (at > size) throw unreadable('the snapshot is cut short');
  }
  return offsets;
}

export class SnapshotShelf {
  readonly #with: ShelfDependencies;
  readonly #shelved = new Map<number, Shelved>();
  #timer: NodeJS.Timeout | undefined;
  #reads = 0;
  #isBeyond = false;
  #lookedAt = 0;
  #looking: Promise<void> = Promise.resolve();

  constructor(dependencies: ShelfDependencies) {
    this.#with = dependencies;
  }

  /** The folder may have changed. */
  look(): Promise<void> {
    this.#looking = this.#looking.then(() => this.#look());
    return this.#looking;
  }

  async #look(): Promise<void> {
    const { directory, log } = this.#with;
    this.#lookedAt = this.#with.steady();
    this.#isBeyond = false;
    const names = await readdir(directory).catch(() => []);
    const heights = new Map<number, string>();
    for (const name of names) {
      const height = heightOfName(name);
      if (height !== undefined) heights.set(height, name);
    }
    for (const [height, name] of heights) {
      if (this.#shelved.has(height)) continue;
      try {
        const shelved = await this.#open(height, join(directory, name));
        if (shelved === undefined) this.#isBeyond = true;
        else this.#shelved.set(height, shelved);
      } catch (error) {
        log.warn('a snapshot is not offered to peers', { file: name, error });
      }
    }
    for (const [height, shelved] of this.#shelved) shelved.isDeleted = !heights.has(height);
    await this.#tidy();
  }

  /** Undefined if the own chain has not reached it. */
  async #open(height: number, path: string): Promise<Shelved | undefined> {
    const id = this.#with.cutIdOf(height);
    if (id === undefined) return undefined;
    const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW);
    try {
      const status = await file.stat();
      if (!status.isFile()) throw unreadable('this is no file');
      const offsets = await offsetsOf(file, status.size);
      const [first = 0, second = 0] = offsets;
      const length = second - first - LENGTH_BYTES;
      if (length < 0 || length > headRule(undefined).maxBytes) throw unreadable('it has no head');
      const { cuts } = decodeSnapshotHead(await bytesAt(file, first + LENGTH_BYTES, length));
      if (!equalBytes(cutId((cuts.at(-1) as { header: Bytes }).header), id))
        throw new SnapshotError('snapshot_other_chain', `it is not of cut ${height} of this chain`);
      return { file, cutId: id, offsets, isDeleted: false, askedAt: this.#with.steady() };
    } catch (error) {
      await file.close();
      throw error;
    }
  }

  async #tidy(): Promise<void> {
    clearTimeout(this.#timer);
    const now = this.#with.steady();
    const deleted = [...this.#shelved].filter(([, { isDeleted }]) => isDeleted).sort(([a], [b]) => b - a);
    for (const [i, [height, { file, askedAt }]] of deleted.entries())
      if ((i > 0 || now - askedAt >= LINGER_MILLIS) && this.#shelved.delete(height)) await file.close();
    if (deleted.length > 0) this.#timer = setTimeout(() => void this.look(), LINGER_MILLIS).unref();
  }

  /** Including deleted ones that are still being read. */
  offers(): { readonly height: number; readonly cutId: Bytes }[] {
    if (this.#isBeyond && this.#with.steady() - this.#lookedAt > LOOK_AGAIN_MILLIS) void this.look();
    return [...this.#shelved].map(([height, { cutId: id }]) => ({ height, cutId: id }));
  }

  /**
   * A limited number of bytes of a part, and its length; undefined if it is not here, `busy` while others are reading.
   */
  async part(
    height: number,
    part: number,
    from: number,
    maxBytes: number,
  ): Promise<{ readonly length: number; readonly bytes: Bytes } | 'busy' | undefined> {
    const shelved = this.#shelved.get(height);
    const [offset, next] = [shelved?.offsets[part], shelved?.offsets[part + 1]];
    if (shelved === undefined || offset === undefined || next === undefined) return undefined;
    const length = next - offset - LENGTH_BYTES;
    if (from >= length) return undefined;
    if (this.#reads >= MAX_READS) return 'busy';
    shelved.askedAt = this.#with.steady();
    this.#reads++;
    try {
      const bytes = await bytesAt(shelved.file, offset + LENGTH_BYTES + from, Math.min(maxBytes, length - from));
      return { length, bytes };
    } catch (error) {
      this.#with.log.warn('a snapshot cannot be read', { height, error });
      return undefined;
    } finally {
      this.#reads--;
    }
  }

  async close(): Promise<void> {
    await this.#looking;
    clearTimeout(this.#timer);
    for (const { file } of this.#shelved.values()) await file.close();
    this.#shelved.clear();
  }
}
