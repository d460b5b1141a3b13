/**
 * The local share journal: an accepted share is written to disk here before it is answered. Concurrent appends are
 * written and synced together (group commit). Sequences of a boot count 0, 1, 2, ... without a gap, so a missing one is
 * noticed. Files are segments of one boot: `<boot id>/<first sequence>.journal`, each a row of `u32 length | u32 crc32
 * | u64 sequence | record`; `.taken` instead of `.journal` says that the books had all of it at the file's time. A crash
 * or a full disk leaves a torn tail; it never contains answered shares, because those were synced before. If a tail and
 * the next segment both contain a sequence, the next segment's entry counts.
 *
 * What was acknowledged is booked or reported. The file `answered` beside the segments counts the answered entries, so
 * that a missing end is noticed. A reader skips damaged bytes to the next frame; the entries between are missing. A
 * file is deleted only if all of it was understood; others are moved to `damaged/<boot id>/`.
 */
import { constants, existsSync } from 'node:fs';
import { type FileHandle, mkdir, open, readdir, rename, rm, rmdir, stat, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { crc32 } from 'node:zlib';
import { type Bytes, toHex } from '../../protocol/bytes.ts';
import { syncDirectory } from '../../runtime/files/durable-file.ts';
import { readThroughDamage } from './damaged-blocks.ts';

const FRAME_BYTES = 16;
/** Records are a few hundred bytes. A longer one is damage, and none is written. */
export const MAX_RECORD_BYTES = 4_096;
/** More entries than a segment holds: a frame further on is no frame. */
const MAX_MISSING = 2 ** 24;
/** Files of a boot besides its segments: the ends of slices (feed/slice-marks.ts), and the count of answered entries. */
export const SLICES_FILE = 'slices';
const ANSWERED_FILE = 'answered';
/** Files with bytes that were not understood, by boot. They are never deleted by the pool. */
export const DAMAGED_FOLDER = 'damaged';
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
  /** Empty if the entry was answered and the journal does not have it any more: it is lost, as are those after `after`. */
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

type Frame = { readonly sequence: number; readonly from: number; readonly to: number };

/** The frame at an offset; undefined if there is none with this sequence or a later one. */
function frameAt(bytes: Bytes, view: DataView, at: number, least: number): Frame | undefined {
  if (bytes.length - at < FRAME_BYTES) return undefined;
  const length = view.getUint32(at, true);
  const to = at + FRAME_BYTES + length;
  if (length === 0 || length > MAX_RECORD_BYTES || to > bytes.length) return undefined;
  const sequence = Number(view.getBigUint64(at + 8, true));
  if (sequence < least || sequence - least > MAX_MISSING) return undefined;
  if (crc32(bytes.subarray(at + 8, to)) !== view.getUint32(at + 4, true)) return undefined;
  return { sequence, from: at, to };
}

/**
 * The complete frames of a segment, in the order of their sequences. Behind damage it tries every offset: a frame in the
 * middle of a record would have to have the checksum and a sequence that comes next, and miners do not choose such bytes.
 */
function* framesIn(bytes: Bytes, start: number): Generator<Frame> {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let least = start;
  for (let at = 0; at < bytes.length; ) {
    const frame = frameAt(bytes, view, at, least);
    at = frame?.to ?? at + 1;
    if (frame === undefined) continue;
    least = frame.sequence + 1;
    yield frame;
  }
}

/** The entries of a segment that starts with a sequence, and how many of its bytes are none. */
export function readFrames(
  bytes: Bytes,
  start = 0,
): { entries: { sequence: number; record: Bytes }[]; unread: number } {
  const entries: { sequence: number; record: Bytes }[] = [];
  let unread = bytes.length;
  for (const { sequence, from, to } of framesIn(bytes, start)) {
    entries.push({ sequence, record: bytes.subarray(from + FRAME_BYTES, to) });
    unread -= to - from;
  }
  return { entries, unread };
}

/** Frames that are checked in one turn of the event loop: a whole segment takes a tenth of a second. */
const FRAMES_A_TURN = 2_000;

/** Whether a segment consists of the entries from its first up to `last` or further, and of nothing else. */
async function isUnderstood(bytes: Bytes, start: number, last: number): Promise<boolean> {
  let [at, next] = [0, start];
  for (const { sequence, from, to } of framesIn(bytes, start)) {
    if (from !== at || sequence !== next) return false;
    [at, next] = [to, sequence + 1];
    if (next % FRAMES_A_TURN === 0) await nextTurn();
  }
  return at === bytes.length && next > last;
}

/** The count of answered entries, as text that shows a flipped bit. */
const answeredText = (count: number): string => {
  const digits = count.toString().padStart(SEQUENCE_DIGITS, '0');
  return `${digits} ${crc32(digits).toString(16).padStart(8, '0')}\n`;
};

/** The last sequence that was answered, at least; undefined if nothing says it. */
type Answered = { readonly last: number | undefined; readonly isDamaged: boolean };

async function readAnswered(directory: string, bootId: string): Promise<Answered> {
  const path = join(directory, bootId, ANSWERED_FILE);
  const text = (await readThroughDamage(path).catch(ifMissing(Buffer.alloc(0)))).toString('latin1');
  // A crash may leave an empty file.
  if (text === '') return { last: undefined, isDamaged: false };
  const count = Number(text.slice(0, SEQUENCE_DIGITS));
  const isWhole = Number.isSafeInteger(count) && text === answeredText(count);
  return isWhole ? { last: count - 1, isDamaged: false } : { last: undefined, isDamaged: true };
}

export const ifMissing =
  <T>(value: T) =>
  (error: NodeJS.ErrnoException): T => {
    if (error.code === 'ENOENT') return value;
    throw error;
  };

const SEQUENCE_DIGITS = 16;
const OPEN = '.journal';
const TAKEN = '.taken';
const SEGMENT = /^\d{16}\.(journal|taken)$/;
const segmentName = (sequence: number) => `${sequence.toString().padStart(SEQUENCE_DIGITS, '0')}${OPEN}`;
const segmentStart = (name: string) => Number(name.slice(0, SEQUENCE_DIGITS));

/** The writer: one per process, in a directory named by its boot id. */
export class Journal {
  readonly bootId: string;
  /** Where the journals of all boots are. */
  readonly directory: string;
  readonly #directory: string;
  readonly #segmentBytes: number;
  readonly #maxPendingBytes: number;
  #next = 0;
  #segment: { handle: FileHandle; bytes: number } | undefined;
  #answered: FileHandle | undefined;
  #waiting: Waiting[] = [];
  #pendingBytes = 0;
  #writing: Promise<void> | undefined;
  #failed: Error | undefined;

  private constructor(options: JournalOptions) {
    this.bootId = toHex(options.bootId);
    this.directory = options.directory;
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
    if (records.some(({ length }) => length === 0 || length > MAX_RECORD_BYTES))
      return Promise.reject(new RangeError(`a record has 1 to ${MAX_RECORD_BYTES} bytes`));
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
        await this.#count(first + records.length);
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

  /**
   * Counts what is answered next, on disk and without a sync: a power failure may leave a smaller count, never a larger
   * one. A failure is not one of the journal, which has the entries.
   */
  async #count(entries: number): Promise<void> {
    try {
      const flags = constants.O_RDWR | constants.O_CREAT;
      this.#answered ??= await open(join(this.#directory, ANSWERED_FILE), flags);
      await this.#answered.write(answeredText(entries), 0, 'latin1');
    } catch {
      await this.#answered?.close().catch(() => undefined);
      this.#answered = undefined;
    }
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
    await this.#answered?.datasync().catch(() => undefined);
    await this.#answered?.close();
    this.#answered = undefined;
  }
}

/** The boot ids that left a journal in this directory. */
export async function journalBoots(directory: string): Promise<string[]> {
  const names = await readdir(directory, { withFileTypes: true }).catch(ifMissing([]));
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

/** Files of other names are none. A copy that a person put back stands beside the segment of its name: the entries of both count. */
export async function journalSegments(directory: string, bootId: string): Promise<Segment[]> {
  const names = (await readdir(join(directory, bootId))).filter((name) => SEGMENT.test(name)).sort();
  return names.map((name, i) => {
    const start = segmentStart(name);
    const next = names.slice(i + 1, i + 3).find((other) => segmentStart(other) !== start);
    return {
      name,
      start,
      nextStart: next === undefined ? undefined : segmentStart(next),
      isTaken: name.endsWith(TAKEN),
    };
  });
}

async function segmentBytes(directory: string, bootId: string, name: string): Promise<Bytes> {
  const path = (file: string) => join(directory, bootId, file);
  // The mark may have changed since the directory was read.
  return (await readThroughDamage(path(name)).catch(ifMissing(undefined))) ?? readThroughDamage(path(otherName(name)));
}

export type Damage = {
  readonly bootId: string;
  readonly file: string;
  /** Bytes that were not understood. */
  readonly unread: number;
  /** The newest segment of a boot that is running has an end that is not complete yet. */
  readonly isNewest: boolean;
};
/** Called for a file with bytes that were not understood, each time that it is read. */
export type NoteDamage = (damage: Damage) => void;

export async function readSegment(
  directory: string,
  bootId: string,
  { name, start, nextStart }: Segment,
  note?: NoteDamage,
): Promise<JournalEntry[]> {
  const { entries, unread } = readFrames(await segmentBytes(directory, bootId, name), start);
  if (unread > 0) note?.({ bootId, file: name, unread, isNewest: nextStart === undefined });
  return entries
    .filter(({ sequence }) => nextStart === undefined || sequence < nextStart)
    .map((entry) => ({ bootId, ...entry }));
}

const otherName = (name: string): string => name.slice(0, SEQUENCE_DIGITS) + (name.endsWith(TAKEN) ? OPEN : TAKEN);

/**
 * Entries of one boot after `sequence` (-1 for all), in order, one batch per segment. If the end of the journal is
 * missing, the last entry is an empty one.
 */
export async function* readJournal(
  directory: string,
  bootId: string,
  after: number,
  note?: NoteDamage,
): AsyncGenerator<JournalEntry[]> {
  // Read first: the writer counts an entry after it is in its file.
  const { last: answered = -1 } = await readAnswered(directory, bootId);
  let last = after;
  for (const segment of await journalSegments(directory, bootId)) {
    if (segment.nextStart !== undefined && segment.nextStart <= after + 1) continue;
    const entries = await readSegment(directory, bootId, segment, note);
    const fresh = entries.filter((entry) => entry.sequence > after);
    last = Math.max(last, fresh.at(-1)?.sequence ?? -1);
    if (fresh.length > 0) yield fresh;
  }
  if (answered > last) yield [{ bootId, sequence: answered, record: new Uint8Array(0) }];
}

/** The newest sequence of an ended boot's journal, whether it still has the entry or not; -1 if there is none. */
export async function lastOfJournal(directory: string, bootId: string, note?: NoteDamage): Promise<number> {
  const { last: answered = -1, isDamaged } = await readAnswered(directory, bootId);
  if (isDamaged) note?.({ bootId, file: ANSWERED_FILE, unread: 1, isNewest: true });
  let newest: { readonly start: number; readonly last: number } | undefined;
  for (const segment of (await journalSegments(directory, bootId)).reverse()) {
    if (newest !== undefined && segment.start !== newest.start) break;
    const last = (await readSegment(directory, bootId, segment, note)).at(-1)?.sequence;
    if (last !== undefined) newest = { start: segment.start, last: Math.max(last, newest?.last ?? last) };
  }
  return Math.max(newest?.last ?? -1, answered);
}

/**
 * Marks on disk that the books now have all of a segment, or removes the mark. Where a copy has the name already, nothing is
 * replaced: what the books have is moved aside, and the answer is its path.
 */
export async function markSegment(
  directory: string,
  bootId: string,
  segment: Segment,
  isTaken: boolean,
  nowMillis: number,
): Promise<string | undefined> {
  const path = join(directory, bootId, segment.name);
  const marked = join(directory, bootId, otherName(segment.name));
  if (isTaken !== segment.isTaken && existsSync(marked))
    return isTaken ? setAside(directory, bootId, segment.name) : undefined;
  // The time is set first: a mark with an older time would delete the segment too soon.
  if (isTaken) await utimes(path, nowMillis / 1000, nowMillis / 1000);
  if (isTaken !== segment.isTaken) await rename(path, marked);
  return undefined;
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

/** Where a file with bytes that were not understood is kept. Nothing is replaced there. */
async function setAside(directory: string, bootId: string, name: string): Promise<string> {
  const folder = join(directory, DAMAGED_FOLDER, bootId);
  await mkdir(folder, { recursive: true });
  let path = join(folder, name);
  for (let n = 2; existsSync(path); n++) path = join(folder, `${name}.${n}`);
  await rename(join(directory, bootId, name), path);
  return path;
}

/** Deletes a segment if all of it was understood; otherwise it is moved aside, and the answer is its path. */
export async function dropSegment(
  directory: string,
  bootId: string,
  { name, start, nextStart }: Segment,
): Promise<string | undefined> {
  const last = nextStart === undefined ? (await readAnswered(directory, bootId)).last : nextStart - 1;
  if (!(await isUnderstood(await segmentBytes(directory, bootId, name), start, last ?? -1)))
    return setAside(directory, bootId, name);
  await rm(join(directory, bootId, name));
  return undefined;
}

/** Removes the remaining files of an ended boot. Those that were not understood are moved aside: the answer is their paths. */
export async function dropJournal(directory: string, bootId: string): Promise<string[]> {
  const aside: string[] = [];
  const folder = join(directory, bootId);
  const { isDamaged } = await readAnswered(directory, bootId);
  for (const name of await readdir(folder)) {
    const { size } = await stat(join(folder, name));
    const isKnown = name === SLICES_FILE || (name === ANSWERED_FILE && !isDamaged) || size === 0;
    if (isKnown) await rm(join(folder, name));
    else aside.push(await setAside(directory, bootId, name));
  }
  await rmdir(folder);
  return aside;
}

/** Files that were moved aside and that nobody has taken away. */
export async function filesAside(directory: string): Promise<number> {
  const found = await readdir(join(directory, DAMAGED_FOLDER), { withFileTypes: true, recursive: true }).catch(
    ifMissing([]),
  );
  return found.filter((entry) => entry.isFile()).length;
}
