/**
 * The local share journal: an accepted share is written to disk here before it is answered. Concurrent appends are
 * written and synced together (group commit). Sequences of a boot count 0, 1, 2, ... without a gap, so a missing one is
 * noticed. Files are segments of one boot: `<boot id>/<first sequence>.journal`, each a row of `u32 length | u32 crc32
 * | u64 sequence | record`; `.taken` instead of `.journal` says that the books had all of it at the file's time. A torn
 * tail, left by a crash or a full disk, ends a segment; it never contains answered shares, because those were synced
 * before. If a tail and the next segment both contain a sequence, the next segment's entry counts.
 */
import { type FileHandle, mkdir, open, readdir, readFile, rename, rm, stat, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import { type Bytes, toHex } from '../protocol/bytes.ts';
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

export type JournalEntry = {
  readonly bootId: string;
  readonly sequence: number;
  readonly record: Bytes;
  /** Set only if the journal itself has a gap: the last sequence before this one that is still on disk, or -1. */
  readonly after?: number;
  /**
   * The slice that the entry counted in before the database was replaced, or the first that it can count in; see
   * slice-marks.ts.
   */
  readonly slice?: number;
};

type Waiting = {
  readonly records: readonly Bytes[];
  readonly resolve: (first: number) => void;
  readonly reject: (error: Error) => void;
};

const framedBytes = (records: readonly Bytes[]): number =>
  records.reduce((sum, record) => sum + FRAME_BYTES + record.length, 0);

/** The records as frames, numbered from `first` on. */
function framesOf(records: readonly Bytes[], first: number): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(framedBytes(records));
  const view = new DataView(bytes.buffer);
  let at = 0;
  for (const [i, record] of records.entries()) {
    const end = at + FRAME_BYTES + record.length;
    view.setUint32(at, record.length, true);
    view.setBigUint64(at + 8, BigInt(first + i), true);
    bytes.set(record, at + FRAME_BYTES);
    view.setUint32(at + 4, crc32(bytes.subarray(at + 8, end)), true);
    at = end;
  }
  return bytes;
}

/** The complete frames of a segment; stops at the first torn or damaged one and returns its offset. */
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

const SEQUENCE_DIGITS = 16;
const OPEN = '.journal';
const TAKEN = '.taken';
const segmentName = (sequence: number) => `${sequence.toString().padStart(SEQUENCE_DIGITS, '0')}${OPEN}`;
const segmentStart = (name: string) => Number(name.slice(0, SEQUENCE_DIGITS));

/** The writer: one per process, in a directory named by its boot id. */
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

  /** False while the disk is behind or the last write failed: then shares must not be accepted. */
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
    this.#pendingBytes += framedBytes(records);
    return new Promise((resolve, reject) => {
      this.#waiting.push({ records, resolve, reject });
      this.#writing ??= this.#drain();
    });
  }

  async #drain(): Promise<void> {
    // Waiting one turn of the event loop lets concurrent shares share one sync.
    await new Promise<void>((resolve) => setImmediate(resolve));
    while (this.#waiting.length > 0) {
      const batch = this.#waiting;
      this.#waiting = [];
      const records = batch.flatMap((waiting) => waiting.records);
      const first = this.#next;
      const frames = framesOf(records, first);
      try {
        await this.#write(frames, first);
        this.#failed = undefined;
        // Sequences advance only after a successful write: a failure leaves no gap.
        for (const waiting of batch) {
          waiting.resolve(this.#next);
          this.#next += waiting.records.length;
        }
      } catch (error) {
        this.#failed = error as Error;
        await this.#abandonSegment();
        for (const waiting of batch) waiting.reject(error as Error);
      }
      this.#pendingBytes -= frames.length;
    }
    this.#writing = undefined;
  }

  async #write(frames: Bytes, first: number): Promise<void> {
    if (this.#segment !== undefined && this.#segment.bytes >= this.#segmentBytes) await this.#closeSegment();
    if (this.#segment === undefined) {
      // An existing file of this name was left by a failed write: nothing in it was answered.
      const handle = await open(join(this.#directory, segmentName(first)), 'w');
      this.#segment = { handle, bytes: 0 };
      await syncDirectory(this.#directory);
    }
    const { handle, bytes } = this.#segment;
    // A full disk may accept part of a write without an error: only the next write fails.
    for (let at = 0; at < frames.length; ) {
      const { bytesWritten } = await handle.write(frames, at, frames.length - at, bytes + at);
      if (bytesWritten === 0) throw new Error('the disk wrote nothing');
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

export type Segment = {
  readonly name: string;
  readonly start: number;
  /** Sequence that the next segment starts with; undefined for the newest. */
  readonly nextStart: number | undefined;
  /** Whether the books are known to have had all of it. */
  readonly isTaken: boolean;
};

export async function journalSegments(directory: string, bootId: string): Promise<Segment[]> {
  const names = (await readdir(join(directory, bootId)))
    .filter((name) => name.endsWith(OPEN) || name.endsWith(TAKEN))
    .sort();
  return names.map((name, i) => {
    const next = names[i + 1];
    return {
      name,
      start: segmentStart(name),
      nextStart: next === undefined ? undefined : segmentStart(next),
      isTaken: name.endsWith(TAKEN),
    };
  });
}

async function readSegment(directory: string, bootId: string, { name, nextStart }: Segment): Promise<JournalEntry[]> {
  const bytes = await readFile(join(directory, bootId, name)).catch((error: NodeJS.ErrnoException) => {
    // The mark may have changed since the directory was read.
    if (error.code !== 'ENOENT') throw error;
    return readFile(join(directory, bootId, otherName(name)));
  });
  return readFrames(bytes)
    .entries.filter(({ sequence }) => nextStart === undefined || sequence < nextStart)
    .map((entry) => ({ bootId, ...entry }));
}

const otherName = (name: string): string => name.slice(0, SEQUENCE_DIGITS) + (name.endsWith(TAKEN) ? OPEN : TAKEN);

/** Entries of one boot after `sequence` (-1 for all), in order, one batch per segment. */
export async function* readJournal(directory: string, bootId: string, after: number): AsyncGenerator<JournalEntry[]> {
  for (const segment of await journalSegments(directory, bootId)) {
    if (segment.nextStart !== undefined && segment.nextStart <= after + 1) continue;
    const entries = await readSegment(directory, bootId, segment);
    const fresh = entries.filter((entry) => entry.sequence > after);
    if (fresh.length > 0) yield fresh;
  }
}

/** The newest sequence that a boot's journal holds, or -1. */
export async function lastOfJournal(directory: string, bootId: string): Promise<number> {
  for (const segment of (await journalSegments(directory, bootId)).reverse()) {
    const last = (await readSegment(directory, bootId, segment)).at(-1);
    if (last !== undefined) return last.sequence;
  }
  return -1;
}

/** Marks on disk that the books now have all of a segment, or removes the mark. */
export async function markSegment(
  directory: string,
  bootId: string,
  segment: Segment,
  isTaken: boolean,
  nowMillis: number,
): Promise<void> {
  const path = join(directory, bootId, segment.name);
  // The time is set first: a mark with an older time would delete the segment too soon.
  if (isTaken) await utimes(path, nowMillis / 1000, nowMillis / 1000);
  if (isTaken !== segment.isTaken) await rename(path, join(directory, bootId, otherName(segment.name)));
}

/** Bytes of a segment, and when it was marked or written last. */
export async function segmentState(
  directory: string,
  bootId: string,
  { name }: Segment,
): Promise<{ bytes: number; atMillis: number }> {
  const { size, mtimeMs } = await stat(join(directory, bootId, name));
  return { bytes: size, atMillis: mtimeMs };
}

export const dropSegment = (directory: string, bootId: string, { name }: Segment): Promise<void> =>
  rm(join(directory, bootId, name));

/** Removes the remaining files of an ended boot. */
export const dropJournal = (directory: string, bootId: string): Promise<void> =>
  rm(join(directory, bootId), { recursive: true, force: true });
