/**
 * The local share journal: an accepted share is here, on disk, before it is answered. Appends of the same moment are
 * written and synced as one (group commit). Files are segments of one boot: `<boot id>/<first sequence>.journal`, each a
 * row of `u32 length | u32 crc32 | u64 sequence | record`. A torn tail, left by a crash, ends a segment; what was answered
 * is never in it, because it was synced before.
 */
import { type FileHandle, mkdir, open, readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import { type Bytes, concat, toHex } from '../protocol/bytes.ts';
import { syncDirectory } from '../runtime/durable-file.ts';

const FRAME_BYTES = 16;
export const JOURNAL_DEFAULTS = { segmentBytes: 16 * 1024 * 1024, maxPendingBytes: 8 * 1024 * 1024 } as const;

export type JournalOptions = {
  readonly directory: string;
  /** 8 random bytes per process start. */
  readonly bootId: Bytes;
  readonly segmentBytes?: number;
  /** Bytes that may wait for the disk; beyond them `accepting` is false. */
  readonly maxPendingBytes?: number;
};

export type JournalEntry = { readonly bootId: string; readonly sequence: number; readonly record: Bytes };

type Waiting = { readonly frames: Bytes; readonly resolve: () => void; readonly reject: (error: Error) => void };

function frame(sequence: number, record: Bytes): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(FRAME_BYTES + record.length);
  const view = new DataView(bytes.buffer);
  view.setUint32(0, record.length, true);
  view.setBigUint64(8, BigInt(sequence), true);
  bytes.set(record, FRAME_BYTES);
  view.setUint32(4, crc32(bytes.subarray(8)), true);
  return bytes;
}

/** The whole frames of a segment's bytes; stops at the first that is torn or damaged and says how far it came. */
export function readFrames(bytes: Bytes): { entries: { sequence: number; record: Bytes }[]; goodBytes: number } {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const entries: { sequence: number; record: Bytes }[] = [];
  let at = 0;
  while (bytes.length - at >= FRAME_BYTES) {
    const length = view.getUint32(at, true);
    const end = at + FRAME_BYTES + length;
    if (end > bytes.length || crc32(bytes.subarray(at + 8, end)) !== view.getUint32(at + 4, true)) break;
    entries.push({ sequence: Number(view.getBigUint64(at + 8, true)), record: bytes.subarray(at + FRAME_BYTES, end) });
    at = end;
  }
  return { entries, goodBytes: at };
}

const segmentName = (sequence: number) => `${sequence.toString().padStart(16, '0')}.journal`;
const segmentStart = (name: string) => Number(name.slice(0, 16));

/** The writing end: one per process, in a directory of its own boot id. */
export class Journal {
  readonly bootId: string;
  readonly #directory: string;
  readonly #segmentBytes: number;
  readonly #maxPendingBytes: number;
  #next = 0;
  #segment: { handle: FileHandle; bytes: number } | undefined;
  #waiting: Waiting[] = [];
  #pendingBytes = 0;
  #writing: Promise<void> | undefined;
  #failed: Error | undefined;

  private constructor(options: JournalOptions) {
    this.bootId = toHex(options.bootId);
    this.#directory = join(options.directory, this.bootId);
    this.#segmentBytes = options.segmentBytes ?? JOURNAL_DEFAULTS.segmentBytes;
    this.#maxPendingBytes = options.maxPendingBytes ?? JOURNAL_DEFAULTS.maxPendingBytes;
  }

  static async open(options: JournalOptions): Promise<Journal> {
    const journal = new Journal(options);
    await mkdir(journal.#directory, { recursive: true });
    await syncDirectory(options.directory);
    return journal;
  }

  /** False while the disk is behind or refused the last write: take no shares that could not be kept. */
  get accepting(): boolean {
    return this.#failed === undefined && this.#pendingBytes < this.#maxPendingBytes;
  }

  /** Why the last write failed; a later append that succeeds clears it. */
  get failure(): Error | undefined {
    return this.#failed;
  }

  /** The sequence the next record gets. */
  get nextSequence(): number {
    return this.#next;
  }

  /** Resolves, with the first sequence, when the records are on disk. Records keep the order of the calls. */
  append(records: readonly Bytes[]): Promise<number> {
    const first = this.#next;
    const frames = concat(...records.map((record) => frame(this.#next++, record)));
    this.#pendingBytes += frames.length;
    return new Promise((resolve, reject) => {
      this.#waiting.push({ frames, resolve: () => resolve(first), reject });
      this.#writing ??= this.#drain();
    });
  }

  async #drain(): Promise<void> {
    // Waiting one turn lets the shares of this moment share one sync.
    await new Promise<void>((resolve) => setImmediate(resolve));
    while (this.#waiting.length > 0) {
      const batch = this.#waiting;
      this.#waiting = [];
      const frames = concat(...batch.map((waiting) => waiting.frames));
      try {
        await this.#write(frames);
        this.#failed = undefined;
        for (const waiting of batch) waiting.resolve();
      } catch (error) {
        this.#failed = error as Error;
        await this.#abandonSegment();
        for (const waiting of batch) waiting.reject(error as Error);
      }
      this.#pendingBytes -= frames.length;
    }
    this.#writing = undefined;
  }

  async #write(frames: Bytes): Promise<void> {
    if (this.#segment !== undefined && this.#segment.bytes >= this.#segmentBytes) await this.#closeSegment();
    if (this.#segment === undefined) {
      const first = Number(new DataView(frames.buffer, frames.byteOffset).getBigUint64(8, true));
      const handle = await open(join(this.#directory, segmentName(first)), 'wx');
      this.#segment = { handle, bytes: 0 };
      await syncDirectory(this.#directory);
    }
    const { handle, bytes } = this.#segment;
    // A disk that fills up takes a part and says nothing: only the next write is refused.
    for (let at = 0; at < frames.length; ) {
      const { bytesWritten } = await handle.write(frames, at, frames.length - at, bytes + at);
      if (bytesWritten === 0) throw new Error('the disk took nothing');
      at += bytesWritten;
    }
    await handle.datasync();
    this.#segment.bytes += frames.length;
  }

  /** After a failed write the segment's tail is unknown: it is cut to what was synced, and the next write starts anew. */
  async #abandonSegment(): Promise<void> {
    const segment = this.#segment;
    this.#segment = undefined;
    if (segment === undefined) return;
    await segment.handle.truncate(segment.bytes).catch(() => undefined);
    await segment.handle.close().catch(() => undefined);
  }

  async #closeSegment(): Promise<void> {
    await this.#segment?.handle.close();
    this.#segment = undefined;
  }

  async close(): Promise<void> {
    await this.#writing;
    await this.#closeSegment();
  }
}

/** The boot ids that left a journal in this directory. */
export async function journalBoots(directory: string): Promise<string[]> {
  const names = await readdir(directory, { withFileTypes: true }).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return [];
    throw error;
  });
  return names.filter((entry) => entry.isDirectory() && /^[0-9a-f]{16}$/.test(entry.name)).map((entry) => entry.name);
}

async function segments(directory: string, bootId: string): Promise<string[]> {
  const names = await readdir(join(directory, bootId));
  return names.filter((name) => name.endsWith('.journal')).sort();
}

/** Entries of one boot after `sequence` (-1 for all), in order, one batch per segment. */
export async function* readJournal(directory: string, bootId: string, after: number): AsyncGenerator<JournalEntry[]> {
  const names = await segments(directory, bootId);
  for (const [i, name] of names.entries()) {
    const next = names[i + 1];
    if (next !== undefined && segmentStart(next) <= after + 1) continue;
    const { entries } = readFrames(await readFile(join(directory, bootId, name)));
    const fresh = entries.filter((entry) => entry.sequence > after);
    if (fresh.length > 0) yield fresh.map((entry) => ({ bootId, ...entry }));
  }
}

/** Deletes the segments whose every record is at or before `through`; all of them, and the directory, when the boot is over. */
export async function dropJournal(directory: string, bootId: string, through: number, ended: boolean): Promise<void> {
  const names = await segments(directory, bootId);
  for (const [i, name] of names.entries()) {
    const next = names[i + 1];
    if (next !== undefined && segmentStart(next) <= through + 1) await rm(join(directory, bootId, name));
  }
  if (ended) await rm(join(directory, bootId), { recursive: true });
}
