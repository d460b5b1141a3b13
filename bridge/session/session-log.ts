/**
 * The log of live sessions in the data directory, for a restart (docs/bridge.md, restarts): templates as they are
 * published, sessions with an accepted share, the jobs they get and the shares that were answered. It is written and not
 * synced: it outlives the process, however that ends, and not the machine; then sessions are new ones.
 *
 * Each living session is noted again every minute (connection/desk.ts), so files that are older than any job or ended
 * session are deleted, oldest first. If a write fails, all of it goes: with a gap in it, a share could count twice. For the
 * same reason files of an earlier start of the machine go: a power failure takes the end of what was not synced.
 */
import { type FileHandle, open, readdir, readFile, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import type { Bytes } from '../../protocol/bytes.ts';
import type { MonotonicClock } from '../../runtime/clock/clock.ts';
import { machineStart } from '../../runtime/files/directory-lock.ts';
import { makeDirectory } from '../../runtime/files/make-directory.ts';
import { PRIVATE_MODE } from '../../runtime/files/private-file.ts';
import type { Logger } from '../../runtime/log/log.ts';
import type { KeptTemplate } from '../nodes/template-store.ts';
import type { ShareSink } from '../shares/sink.ts';
import type { JudgedShare, Publication } from '../threads/hub.ts';
import type { JobLife } from './job-book.ts';
import type { JobLogState, TermsState } from './job-log.ts';
import { KeptSessions } from './kept-sessions.ts';
import {
  blockEntry,
  type NotedBlock,
  type Place,
  refusedEntry,
  sentEntry,
  sessionEntry,
  settledEntry,
  sharesEntry,
  templatesEntry,
} from './session-entries.ts';
import type { SessionRecord } from './session-record.ts';
import { isProven } from './session-shelf.ts';

export type SessionLogOptions = {
  readonly directory: string;
  readonly bootId: Bytes;
  readonly limits: { readonly jobs: JobLife; readonly resumeMillis: number; readonly resumeSessions: number };
  /** All files together. */
  readonly maxBytes?: number;
};

export type SessionLogDependencies = {
  readonly now: MonotonicClock;
  readonly log: Pick<Logger, 'info' | 'warn'>;
  /** Names the start of the machine; empty where the system tells none, and then nothing is read. */
  readonly machine?: string;
  /** Absent where nothing but this log tells. */
  readonly stored?: ShareSink['stored'] | undefined;
};

/** A file takes entries for this long; each session is noted in every file. */
const FILE_MILLIS = 60_000;
/** If all of it are shares, reading takes some twelve seconds of a core. */
const MAX_BYTES = 256 * 1024 * 1024;
/** What waits for a disk that hangs. */
const MAX_WAITING_BYTES = 64 * 1024 * 1024;
/** How long an answer waits for the log: one write takes less than a millisecond. */
const HANG_MILLIS = 1_000;
const DIGITS = 10;
/** Its number, the time of its first entry, and the start of the machine. */
const NAME = /^(\d{10})-(\d{1,16})(?:-([0-9a-f]*))?\.sessions$/;

const NOTHING = new Uint8Array(0);

type LogFile = { readonly path: string; bytes: number; readonly openedMillis: number };

export class SessionLog {
  /** What the process before left. */
  readonly kept: KeptSessions;
  readonly #options: SessionLogOptions;
  readonly #dependencies: SessionLogDependencies;
  readonly #machine: string;
  /** Oldest first; the last one is written. */
  #files: LogFile[] = [];
  #handle: FileHandle | undefined;
  #next = 1;
  #waiting: { readonly bytes: Bytes; readonly done: () => void }[] = [];
  #waitingBytes = 0;
  #writing: Promise<void> | undefined;
  #batch = 0;
  /** Batches of shares that the sink has not taken yet, oldest first. */
  readonly #open = new Set<number>();
  /** A share was answered that a write under way does not have yet: with a gap, all of it goes when that write ends. */
  #hangs = false;
  /** Nothing is written until then. */
  #failedUntil = 0;

  private constructor(options: SessionLogOptions, dependencies: SessionLogDependencies) {
    this.#options = options;
    this.#dependencies = dependencies;
    this.#machine = (dependencies.machine ?? machineStart()).replaceAll('-', '');
    const { bootId, limits } = options;
    this.kept = new KeptSessions({ bootId, resumeMillis: limits.resumeMillis, maxSessions: limits.resumeSessions });
  }

  static async open(options: SessionLogOptions, dependencies: SessionLogDependencies): Promise<SessionLog> {
    const log = new SessionLog(options, dependencies);
    makeDirectory(options.directory, 0o700);
    for (const name of (await readdir(options.directory)).sort()) {
      const [, number, openedMillis, machine = ''] = NAME.exec(name) ?? [];
      if (number === undefined) continue;
      const path = join(options.directory, name);
      log.#next = Number(number) + 1;
      if (machine === '' || machine !== log.#machine) {
        await rm(path, { force: true });
        continue;
      }
      log.#files.push({ path, bytes: (await stat(path)).size, openedMillis: Number(openedMillis) });
    }
    await log.#prune();
    for (const { path } of log.#files) log.kept.read(await readFile(path));
    await log.#settle();
    return log;
  }

  /** Asks the sink for the shares that were on their way to it, and notes its answer before there are others. */
  async #settle(): Promise<void> {
    const { kept } = this;
    const { shares, boots } = kept.open;
    if (shares.length === 0) return;
    const { stored } = this.#dependencies;
    const has =
      stored === undefined
        ? undefined
        : await stored(
            shares.map(({ identity }) => identity),
            boots,
          );
    const known = shares.filter((_, i) => has?.[i] ?? true);
    kept.settle(known);
    await this.append(settledEntry(known));
  }

  /** How long an entry may matter: as long as a job or an ended session is known. */
  get #keptMillis(): number {
    const { jobs, resumeMillis } = this.#options.limits;
    return Math.max(jobs.graceMillis + jobs.memoryMillis, resumeMillis) + 2 * FILE_MILLIS;
  }

  /** Deletes files, oldest first, whose entries do not matter any more, or that are too much. */
  async #prune(): Promise<void> {
    const { maxBytes = MAX_BYTES } = this.#options;
    for (;;) {
      const [oldest, next] = this.#files;
      if (oldest === undefined) return;
      // The last one takes entries for as long as its process lives.
      const endedMillis = next?.openedMillis ?? oldest.openedMillis + FILE_MILLIS;
      const isOld = this.#dependencies.now() - endedMillis > this.#keptMillis;
      const bytes = this.#files.reduce((sum, file) => sum + file.bytes, 0);
      if (!isOld && bytes <= maxBytes) return;
      await rm(oldest.path, { force: true });
      this.#files.shift();
    }
  }

  templates(publication: Publication, kept: readonly KeptTemplate[]): Promise<void> {
    return this.append(templatesEntry(publication, kept, this.#dependencies.now()));
  }

  /** It waits to be resumed. */
  ended(record: SessionRecord, place: Place): void {
    if (!isProven(record)) return;
    const bare = record.jobs === null ? null : { ...record.jobs, log: withoutSeen(record.jobs.log) };
    void this.append(sessionEntry({ ...record, jobs: bare }, this.#dependencies.now(), place));
  }

  /** Resolves when they would survive the end of the process, or when the disk hangs. */
  async shares(shares: readonly JudgedShare[]): Promise<number> {
    const batch = this.#batch++;
    this.#open.add(batch);
    const [oldestOpen = batch] = this.#open;
    const over = new AbortController();
    const noted = this.append(sharesEntry({ bootId: this.#options.bootId, batch, oldestOpen }, shares)).then(
      () => true,
    );
    const late = wait(HANG_MILLIS, false, { ref: false, signal: over.signal }).catch(() => true);
    if (!(await Promise.race([noted, late]))) this.#hangs = true;
    over.abort();
    return batch;
  }

  /** The sink has them; the next entry of shares says so. */
  taken(batch: number): void {
    this.#open.delete(batch);
  }

  /** The sink did not take them. */
  refused(batch: number): void {
    if (this.#open.delete(batch)) void this.append(refusedEntry(batch));
  }

  block(block: NotedBlock): void {
    void this.append(blockEntry(block));
  }

  /** A node has answered. */
  sent(blockId: Bytes): void {
    void this.append(sentEntry(blockId));
  }

  /** Never rejects: no miner is refused because of this log. */
  append(bytes: Bytes): Promise<void> {
    if (this.#dependencies.now() < this.#failedUntil) return Promise.resolve();
    return new Promise((done) => {
      this.#waiting.push({ bytes: this.#waitingBytes < MAX_WAITING_BYTES ? bytes : NOTHING, done });
      this.#waitingBytes += bytes.length;
      this.#writing ??= this.#drain();
    });
  }

  async #drain(): Promise<void> {
    while (this.#waiting.length > 0) {
      const batch = this.#waiting;
      this.#waiting = [];
      this.#waitingBytes = 0;
      try {
        // What waited when a write failed: with a part of it there would be a gap.
        if (this.#dependencies.now() < this.#failedUntil) continue;
        if (batch.some(({ bytes }) => bytes === NOTHING)) throw new Error('the disk is too slow');
        await this.#write(Buffer.concat(batch.map(({ bytes }) => bytes)));
        if (this.#hangs) throw new Error('the disk hung');
        if (this.#failedUntil > 0) this.#dependencies.log.info('sessions are kept for a restart again');
        this.#failedUntil = 0;
      } catch (error) {
        await this.#fail(error);
      } finally {
        for (const { done } of batch) done();
      }
    }
    this.#writing = undefined;
  }

  async #write(bytes: Bytes): Promise<void> {
    const handle = await this.#file();
    const file = this.#files.at(-1) as LogFile;
    for (let at = 0; at < bytes.length; ) {
      const { bytesWritten } = await handle.write(bytes, at, bytes.length - at, file.bytes);
      if (bytesWritten === 0) throw new Error('the disk wrote nothing');
      at += bytesWritten;
      file.bytes += bytesWritten;
    }
  }

  async #file(): Promise<FileHandle> {
    const now = this.#dependencies.now();
    const newest = this.#files.at(-1);
    const { maxBytes = MAX_BYTES } = this.#options;
    // By size too: a file is deleted as a whole.
    const isFull = newest !== undefined && newest.bytes > maxBytes / 8;
    if (this.#handle !== undefined && newest !== undefined && !isFull && now - newest.openedMillis < FILE_MILLIS)
      return this.#handle;
    await this.#handle?.close();
    this.#handle = undefined;
    const number = String(this.#next++).padStart(DIGITS, '0');
    const path = join(this.#options.directory, `${number}-${Math.floor(now)}-${this.#machine}.sessions`);
    this.#handle = await open(path, 'wx', PRIVATE_MODE);
    this.#files.push({ path, bytes: 0, openedMillis: now });
    await this.#prune();
    return this.#handle;
  }

  async #fail(error: unknown): Promise<void> {
    this.#hangs = false;
    this.#failedUntil = this.#dependencies.now() + FILE_MILLIS;
    this.#dependencies.log.warn('sessions cannot be kept for a restart', { error });
    await this.#handle?.close().catch(() => undefined);
    this.#handle = undefined;
    for (const { path } of this.#files) await rm(path, { force: true }).catch(() => undefined);
    this.#files = [];
  }

  async close(): Promise<void> {
    // After an orderly end nothing has to be asked.
    if (this.#batch > 0) await this.shares([]);
    await this.#writing;
    await this.#handle?.close();
    this.#handle = undefined;
  }
}

const NO_NUMBERS = new Float64Array(0);
const withoutNonces = (terms: TermsState): TermsState => ({
  ...terms,
  seen: [],
  farm: terms.farm && { ...terms.farm, seen: NO_NUMBERS },
});
const withoutSeen = (log: JobLogState): JobLogState => ({
  ...log,
  terms: log.terms.map(withoutNonces),
});
