/**
 * The write-ahead log on the disk (consensus rule 12): one file per height, appended and synced batch by batch. Nothing
 * may leave this node before its `append` has resolved. A failed write is truncated and can be retried: the disk may
 * have room later.
 */
import { type FileHandle, mkdir, open, readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { ByteReader, type Bytes, ByteWriter, concat, equalBytes } from '../../../protocol/bytes.ts';
import { ID_BYTES } from '../../../protocol/crypto/identifier.ts';
import { ProtocolError } from '../../../protocol/errors.ts';
import { syncDirectory } from '../../../runtime/files/durable-file.ts';
import type { LogRecord, Recovered } from '../engine/effects.ts';
import { RecoveryError, recover } from '../engine/recovery.ts';
import { frameOf, readFrames } from './log-frames.ts';
import { decodeRecord, encodeRecord } from './log-record.ts';

const VERSION = 1;
const HEAD_BYTES = 1 + 2 * ID_BYTES + 8;
const FILE = /^(\d{16})\.log$/;
const fileName = (height: number) => `${height.toString().padStart(16, '0')}.log`;

export type LogOwner = { readonly chainId: Bytes; readonly validatorId: Bytes };

export type OpenedLog = {
  readonly log: ConsensusLog;
  readonly recovered: Recovered | undefined;
  /** Bytes of torn ends; undefined where there is none. A file without a record is one too, if only of 0 bytes. */
  readonly torn: number | undefined;
  /**
   * The last height of which it certainly has every message; -1 for none. A log with a torn end has none: what is torn
   * may have been written, and sent, and lost later.
   */
  readonly coversTo: number;
};

type OpenFile = {
  readonly handle: FileHandle;
  readonly height: number;
  /** Length of the synced part, and its number of frames. */
  bytes: number;
  frames: number;
  /** A torn end follows. */
  isTorn: boolean;
};

export class ConsensusLog {
  readonly #directory: string;
  readonly #owner: LogOwner;
  #file: OpenFile | undefined;
  #floor: number;
  #queue: Promise<void> = Promise.resolve();

  private constructor(directory: string, owner: LogOwner, file: OpenFile | undefined) {
    this.#directory = directory;
    this.#owner = owner;
    this.#file = file;
    this.#floor = file?.height ?? -1;
  }

  /**
   * Reads the log. A torn end stays until the next record: a process that is started again before then must see it too.
   * Throws a RecoveryError if it could lead to signing twice.
   */
  static async open(directory: string, owner: LogOwner): Promise<OpenedLog> {
    let torn: number | undefined;
    await mkdir(directory, { recursive: true, mode: 0o700 });
    const heights = (await readdir(directory))
      .flatMap((name) => FILE.exec(name)?.[1] ?? [])
      .map(Number)
      .sort((a, b) => b - a);
    for (const height of heights) {
      const path = join(directory, fileName(height));
      const bytes = await readFile(path);
      const { records, goodBytes, frames } = readLog(bytes, height, owner);
      const isTorn = records.length === 0 || goodBytes < bytes.length;
      if (isTorn) torn = (torn ?? 0) + bytes.length - goodBytes;
      // A file without a record was left by a crash: the previous one still counts.
      const recovered = recover(records);
      if (recovered === undefined) continue;
      const handle = await open(path, 'r+');
      const file = { handle, height, bytes: goodBytes, frames, isTorn };
      return {
        log: new ConsensusLog(directory, owner, file),
        recovered,
        torn,
        coversTo: torn === undefined ? height : -1,
      };
    }
    return { log: new ConsensusLog(directory, owner, undefined), recovered: undefined, torn, coversTo: -1 };
  }

  /** Resolves when the record is on the disk. Records keep the order of the calls. */
  append(record: LogRecord): Promise<void> {
    const done = this.#queue.then(() => this.#append(record));
    this.#queue = done.catch(() => undefined);
    return done;
  }

  async #append(record: LogRecord): Promise<void> {
    if (record.height < this.#floor) throw new RangeError(`height ${record.height} is below the log's`);
    if (record.height !== this.#file?.height) {
      await this.#begin(record);
      return;
    }
    await write(this.#file, encodeRecord(record));
  }

  /** A new height: the previous file is deleted only when the first record of the new one is synced. */
  async #begin(record: LogRecord): Promise<void> {
    const { height } = record;
    const head = new ByteWriter(HEAD_BYTES)
      .u8(VERSION)
      .raw(this.#owner.chainId)
      .raw(this.#owner.validatorId)
      .height(height)
      .done();
    const file = {
      handle: await open(join(this.#directory, fileName(height)), 'w', 0o600),
      height,
      bytes: 0,
      frames: 0,
      isTorn: false,
    };
    try {
      await write(file, concat(head, encodeRecord(record)));
      await syncDirectory(this.#directory);
    } catch (error) {
      await file.handle.close();
      throw error;
    }
    await this.#file?.handle.close();
    this.#file = file;
    this.#floor = height;
    for (const name of await readdir(this.#directory))
      if (FILE.test(name) && name !== fileName(height)) await rm(join(this.#directory, name), { force: true });
  }

  async close(): Promise<void> {
    await this.#queue;
    await this.#file?.handle.close();
    this.#file = undefined;
  }
}

/**
 * A full disk may accept part of a write without an error: only the next write fails. A torn end is written over, and what
 * is left of it cut off last: it stays torn until the record is there.
 */
async function write(file: OpenFile, payload: Bytes): Promise<void> {
  const bytes = frameOf(file.frames, payload);
  const end = file.bytes + bytes.length;
  try {
    for (let at = 0; at < bytes.length; ) {
      const { bytesWritten } = await file.handle.write(bytes, at, bytes.length - at, file.bytes + at);
      if (bytesWritten === 0) throw new Error('the disk took nothing');
      at += bytesWritten;
    }
    await file.handle.datasync();
    if (file.isTorn) {
      await file.handle.truncate(end);
      await file.handle.datasync();
    }
  } catch (error) {
    if (!file.isTorn) await file.handle.truncate(file.bytes).catch(() => undefined);
    throw error;
  }
  file.isTorn = false;
  file.bytes = end;
  file.frames++;
}

/** The records of one file. */
export function readLog(
  bytes: Bytes,
  height: number,
  owner: LogOwner,
): { records: LogRecord[]; goodBytes: number; frames: number } {
  const { payloads, goodBytes, isDamaged } = readFrames(bytes);
  if (isDamaged) throw new RecoveryError('log_damaged', `the log of height ${height} has records behind a broken one`);
  const [first] = payloads;
  if (first === undefined) return { records: [], goodBytes, frames: 0 };
  checkHead(first, height, owner);
  try {
    const records = payloads.map((payload, i) => decodeRecord(i === 0 ? payload.subarray(HEAD_BYTES) : payload));
    if (records.some((record) => record.height !== height))
      throw new ProtocolError('out_of_range', 'a record of another height');
    return { records, goodBytes, frames: payloads.length };
  } catch (error) {
    if (!(error instanceof ProtocolError)) throw error;
    throw new RecoveryError('log_damaged', `the log of height ${height} cannot be read: ${error.message}`);
  }
}

function checkHead(head: Bytes, height: number, { chainId, validatorId }: LogOwner): void {
  const reader = new ByteReader(head);
  if (head.length < HEAD_BYTES) throw new RecoveryError('log_foreign', 'the log has no head');
  const version = reader.u8();
  if (version !== VERSION)
    throw new RecoveryError(
      'log_foreign',
      `the log has version ${version}, and this release reads ${VERSION}: run the release that wrote it, and never delete the log of a validator that signs`,
    );
  if (!equalBytes(reader.take(ID_BYTES), chainId))
    throw new RecoveryError('log_foreign', 'the log is of another chain');
  if (!equalBytes(reader.take(ID_BYTES), validatorId))
    throw new RecoveryError('log_foreign', 'the log is of another validator');
  if (reader.height() !== height) throw new RecoveryError('log_foreign', 'the log is of another height');
}
