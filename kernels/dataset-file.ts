/**
 * Datasets on disk, so that a restart does not build them again. Node only.
 *
 * File: 64 bytes of head (magic, version, network, sizes, epoch, dataset seed), the dataset, and the SHA-256 of all
 * before it. Written under another name, synced and renamed: a file with the right name is whole or was damaged later.
 * An unreadable or mismatching file counts as absent; a file that cannot be written is only logged. Reading and hashing
 * 2 GiB blocks for seconds, so both run in a worker thread (kernels/dataset-file-thread.ts).
 */
import { createHash } from 'node:crypto';
import {
  closeSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readdirSync,
  readSync,
  renameSync,
  rmSync,
  writeSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { ByteWriter, equalBytes, utf8 } from '../protocol/bytes.ts';
import { datasetSeed } from '../protocol/crypto/pow.ts';
import { type WallClock, wallMillis } from '../runtime/clock/clock.ts';
import type { Progress } from './backend.ts';
import type { Layout } from './cpu/layout.ts';
import type { DatasetStore } from './cpu/prepare-epoch.ts';
import { threadEnvironment } from './cpu/thread.ts';
import { DatasetUse, epochsToKeep } from './dataset-use.ts';

const MAGIC = utf8('SVCDATA1');
export const HEAD_BYTES = 64;
export const SUM_BYTES = 32;
/** Read, hashed and written in pieces of this size. */
const PIECE = 8 << 20;

type Log = (message: string, fields: Readonly<Record<string, unknown>>) => void;

export const datasetFileName = (layout: Layout, epoch: number): string =>
  `dataset-${layout.parameters.networkId}-${layout.parameters.pagesLog2}-${epoch}.bin`;

function headOf(layout: Layout, epoch: number): Uint8Array<ArrayBuffer> {
  const { networkId, cacheLog2, pagesLog2 } = layout.parameters;
  const head = new Uint8Array(HEAD_BYTES);
  const fields = new ByteWriter(HEAD_BYTES).raw(MAGIC).u32(networkId).u8(cacheLog2).u8(pagesLog2).u64(BigInt(epoch));
  head.set(fields.raw(datasetSeed(networkId, epoch)).done());
  return head;
}

export type FileTask = {
  readonly act: 'read' | 'write';
  readonly path: string;
  readonly epoch: number;
  readonly layout: Layout;
  readonly memory: WebAssembly.Memory;
};

export type FileResult = { readonly ok: true } | { readonly ok: false; readonly reason: string };

function readWhole(file: number, into: Uint8Array): boolean {
  let at = 0;
  while (at < into.length) {
    const got = readSync(file, into, at, into.length - at, null);
    if (got === 0) return false;
    at += got;
  }
  return true;
}

/** Fills the dataset's part of the memory. */
export function readDataset(task: FileTask, onPiece: (done: number) => void): FileResult {
  const { layout, memory } = task;
  const file = openSync(task.path, 'r');
  try {
    const hash = createHash('sha256');
    const head = new Uint8Array(HEAD_BYTES);
    if (!readWhole(file, head)) return { ok: false, reason: 'truncated' };
    if (!equalBytes(head, headOf(layout, task.epoch))) return { ok: false, reason: 'another dataset' };
    hash.update(head);
    const dataset = new Uint8Array(memory.buffer, layout.dataset, layout.datasetBytes);
    for (let at = 0; at < dataset.length; at += PIECE) {
      const piece = dataset.subarray(at, Math.min(dataset.length, at + PIECE));
      if (!readWhole(file, piece)) return { ok: false, reason: 'truncated' };
      hash.update(piece);
      onPiece(at + piece.length);
    }
    const sum = new Uint8Array(SUM_BYTES);
    if (!readWhole(file, sum)) return { ok: false, reason: 'truncated' };
    if (readSync(file, new Uint8Array(1), 0, 1, null) !== 0) return { ok: false, reason: 'too long' };
    return equalBytes(sum, hash.digest()) ? { ok: true } : { ok: false, reason: 'wrong checksum' };
  } finally {
    closeSync(file);
  }
}

function writeWhole(file: number, from: Uint8Array): void {
  for (let at = 0; at < from.length; ) at += writeSync(file, from, at, from.length - at);
}

export function writeDataset(task: FileTask, onPiece: (done: number) => void): FileResult {
  const { layout, memory, path } = task;
  const temporary = `${path}.partial`;
  mkdirSync(dirname(path), { recursive: true });
  const file = openSync(temporary, 'w');
  try {
    const hash = createHash('sha256');
    const head = headOf(layout, task.epoch);
    hash.update(head);
    writeWhole(file, head);
    const dataset = new Uint8Array(memory.buffer, layout.dataset, layout.datasetBytes);
    for (let at = 0; at < dataset.length; at += PIECE) {
      const piece = dataset.subarray(at, Math.min(dataset.length, at + PIECE));
      hash.update(piece);
      writeWhole(file, piece);
      onPiece(at + piece.length);
    }
    writeWhole(file, hash.digest());
    fsyncSync(file);
  } catch (error) {
    closeSync(file);
    rmSync(temporary, { force: true });
    throw error;
  }
  closeSync(file);
  renameSync(temporary, path);
  return { ok: true };
}

export type FileThreadMessage = { readonly done: number } | { readonly result: FileResult };

function inThread(task: FileTask, running: Set<Worker>, onDone: (done: number) => void): Promise<FileResult> {
  return new Promise((resolve) => {
    const options = { workerData: task, env: threadEnvironment() };
    const worker = new Worker(new URL('./dataset-file-thread.ts', import.meta.url), options);
    running.add(worker);
    worker.on('message', (message: FileThreadMessage) => {
      if ('done' in message) onDone(message.done);
      else resolve(message.result);
    });
    worker.on('error', (error) => resolve({ ok: false, reason: String(error) }));
    worker.on('exit', () => {
      running.delete(worker);
      resolve({ ok: false, reason: 'interrupted' });
    });
  });
}

export class DatasetFiles implements DatasetStore {
  readonly #directory: string;
  readonly #log: Log;
  readonly #running = new Set<Worker>();
  readonly #use: DatasetUse;
  #closed = false;

  constructor(options: { directory: string }, dependencies: { log: Log; now?: WallClock }) {
    this.#directory = options.directory;
    this.#log = dependencies.log;
    this.#use = new DatasetUse(options.directory, dependencies.now ?? wallMillis);
  }

  #path(epoch: number, layout: Layout): string {
    return join(this.#directory, datasetFileName(layout, epoch));
  }

  async load(epoch: number, layout: Layout, memory: WebAssembly.Memory, onProgress: (p: Progress) => void) {
    const path = this.#path(epoch, layout);
    const report = (done: number) => onProgress({ epoch, stage: 'load', done, total: layout.datasetBytes });
    const result = await inThread({ act: 'read', path, epoch, layout, memory }, this.#running, report);
    if (!result.ok && result.reason !== 'absent' && !this.#closed)
      this.#log('dataset file is damaged, building it again', { path, reason: result.reason });
    return result.ok;
  }

  worked(epoch: number, layout: Layout, hashes: number): void {
    this.#use.add(datasetFileName(layout, epoch), hashes);
  }

  async discard(epoch: number, layout: Layout): Promise<void> {
    const path = this.#path(epoch, layout);
    this.#log('dataset file has wrong content, building it again', { path });
    rmSync(path, { force: true });
  }

  async save(epoch: number, layout: Layout, memory: WebAssembly.Memory, onProgress: (p: Progress) => void) {
    const path = this.#path(epoch, layout);
    const report = (done: number) => onProgress({ epoch, stage: 'store', done, total: layout.datasetBytes });
    const result = await inThread({ act: 'write', path, epoch, layout, memory }, this.#running, report);
    if (result.ok) this.#dropOthers(epoch, layout);
    else if (!this.#closed) this.#log('dataset file cannot be written', { path, reason: result.reason });
  }

  /** Files that are no longer needed, and unfinished ones. */
  #dropOthers(saved: number, layout: Layout): void {
    const prefix = datasetFileName(layout, 0).replace(/0\.bin$/, '');
    const names = readdirSync(this.#directory).filter((name) => name.startsWith(prefix));
    const files = names.flatMap((name) => {
      const epoch = Number(/^(\d+)\.bin$/.exec(name.slice(prefix.length))?.[1] ?? Number.NaN);
      return Number.isNaN(epoch) ? [] : [{ epoch, work: this.#use.of(name) }];
    });
    const kept = new Set(epochsToKeep(files, saved).map((epoch) => datasetFileName(layout, epoch)));
    for (const name of names)
      if (!kept.has(name)) {
        rmSync(join(this.#directory, name), { force: true });
        this.#use.forget(name);
      }
    this.#use.write();
  }

  /** Cancels pending work; an unfinished file keeps its temporary name and is replaced next time. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#use.write();
    await Promise.all([...this.#running].map((worker) => worker.terminate()));
  }
}
