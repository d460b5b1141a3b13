/**
 * The processor as a miner's backend: search threads over one shared memory per epoch. In a page that is not isolated
 * there is no shared memory: then one thread builds and searches in a memory of its own. Runs in Node and in browsers.
 */
import { ByteReader } from '../../protocol/bytes.ts';
import { powParameters } from '../../protocol/crypto/pow.ts';
import { NONCE_OFFSET } from '../../protocol/ledger/header.ts';
import type { Network } from '../../protocol/network.ts';
import { monotonicMillis } from '../../runtime/clock/clock.ts';
import {
  type Backend,
  type BackendEvents,
  freeNonces,
  noncesPerBlock,
  type SearchJob,
  splitNonces,
} from '../backend.ts';
import { KernelError } from '../kernel-error.ts';
import type { VerifierMode } from '../verifier.ts';
import { buildCache, buildItems } from './build-dataset.ts';
import { layoutOf } from './layout.ts';
import { kernelModule } from './module.ts';
import { assertEpoch, type DatasetStore, epochToDrop, type PreparedEpoch, prepareEpoch } from './prepare-epoch.ts';
import { canShareMemory, coreCount, Thread } from './thread.ts';
import type { SearchTask, ThreadEvent } from './thread-tasks.ts';

export type WasmBackendOptions = {
  readonly network: Network;
  readonly mode: VerifierMode;
  /** Search threads; by default as many as cores. One where memory cannot be shared. */
  readonly threads?: number;
  /** Threads that build a dataset; by default as many as cores. */
  readonly builders?: number;
  /** By default whether memory can be shared here at all. */
  readonly shareMemory?: boolean;
};

export type WasmBackendDependencies = BackendEvents & {
  readonly store?: DatasetStore;
  readonly availableMemory?: () => number;
};

/** The whole 64-bit nonces of a job's range: the free bytes count, the prefix is above them. */
function wholeNonces(job: SearchJob): { from: bigint; to: bigint } {
  const free = freeNonces(job.prefixBytes);
  if (job.nonces.from < 0n || job.nonces.to > free || job.nonces.from > job.nonces.to)
    throw new RangeError('the nonce range does not fit the bytes before the prefix');
  const nonce = new ByteReader(job.header.subarray(NONCE_OFFSET)).u64();
  const prefix = nonce - (nonce % free);
  return { from: prefix + job.nonces.from, to: prefix + job.nonces.to };
}

class WasmBackend implements Backend {
  readonly name: string;
  readonly kind = 'wasm';
  readonly #options: WasmBackendOptions;
  readonly #dependencies: WasmBackendDependencies;
  readonly #shared: boolean;
  readonly #threads: Thread[];
  readonly #held = new Map<number, PreparedEpoch | undefined>();
  /** The newest build; one at a time, or several datasets would share the memory of two. */
  #preparing: { readonly epoch: number; readonly done: Promise<void>; readonly giveUp: AbortController } | undefined;
  /** Threads that came to the end of their part of the job. */
  #finished = 0;
  #jobId = 0;
  #epoch: number | undefined;
  #hashes = 0;
  readonly #threadHashes: number[];
  readonly #ending = new AbortController();
  #closed = false;

  constructor(options: WasmBackendOptions, dependencies: WasmBackendDependencies) {
    this.#options = options;
    this.#dependencies = dependencies;
    this.#shared = options.shareMemory ?? canShareMemory();
    const count = this.#shared ? (options.threads ?? coreCount()) : 1;
    const light = options.mode === 'light' ? ', light' : '';
    this.name = `CPU, ${count} thread${count === 1 ? '' : 's'}${light}`;
    this.#threadHashes = new Array(count).fill(0);
    this.#threads = Array.from(
      { length: count },
      (_, i) => new Thread({ onEvent: (event) => this.#take(event, i), onDeath: (reason) => this.#fail(reason) }),
    );
  }

  get hashes(): number {
    return this.#hashes;
  }

  get threadHashes(): readonly number[] {
    return this.#threadHashes;
  }

  get epochs(): readonly number[] {
    return [...this.#held.keys()];
  }

  async prepare(epoch: number): Promise<void> {
    this.#assertOpen();
    assertEpoch(epoch);
    if (this.#held.has(epoch)) return;
    if (this.#preparing?.epoch !== epoch) {
      const before = this.#preparing;
      const giveUp = new AbortController();
      before?.giveUp.abort();
      const build = async (): Promise<void> => {
        await before?.done.catch(() => undefined);
        await this.#prepare(epoch, AbortSignal.any([giveUp.signal, this.#ending.signal]));
      };
      const done = build().finally(() => {
        if (this.#preparing?.giveUp === giveUp) this.#preparing = undefined;
      });
      this.#preparing = { epoch, done, giveUp };
    }
    await this.#preparing.done;
  }

  async stored(): Promise<void> {
    await Promise.all([...this.#held.values()].map((held) => held?.stored));
  }

  setJob(job: SearchJob | undefined): void {
    this.#assertOpen();
    this.#epoch = job?.epoch;
    if (job === undefined) {
      for (const thread of this.#threads) void this.#tell(thread, undefined);
      return;
    }
    if (!this.#held.has(job.epoch))
      throw new KernelError('kernel_epoch_not_ready', `epoch ${job.epoch} is not prepared`, { epoch: job.epoch });
    const parts = splitNonces(wholeNonces(job), this.#threads.length);
    this.#finished = 0;
    this.#jobId = job.id;
    const { epoch, header, target } = job;
    const batchPerBlock = noncesPerBlock(job) / this.#threads.length;
    this.#threads.forEach((thread, i) => {
      const part = parts[i] as { from: bigint; to: bigint };
      void this.#tell(thread, { jobId: job.id, epoch, header, target, batchPerBlock, ...part });
    });
  }

  pause(): void {
    this.#setPaused(true);
  }

  resume(): void {
    this.#setPaused(false);
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#ending.abort();
    await Promise.all(this.#threads.map((thread) => thread.end()));
  }

  #assertOpen(): void {
    if (this.#closed) throw new KernelError('kernel_closed', 'the backend is closed');
  }

  /** A thread that cannot be reached is dead, and reports that itself. */
  #tell(thread: Thread, job: SearchTask | undefined): Promise<unknown> {
    return thread.ask({ kind: 'search', job }).catch(() => {});
  }

  #setPaused(paused: boolean): void {
    for (const thread of this.#threads) thread.ask({ kind: 'pause', paused }).catch(() => {});
  }

  #take(event: ThreadEvent, thread: number): void {
    if (event.event === 'searched') {
      this.#hashes += event.hashes;
      this.#threadHashes[thread] = (this.#threadHashes[thread] ?? 0) + event.hashes;
      this.#countUse(event.hashes);
      for (const { nonce, hash } of event.hits) this.#dependencies.onHit({ jobId: event.jobId, nonce, hash });
    } else if (event.jobId === this.#jobId && ++this.#finished === this.#threads.length)
      this.#dependencies.onExhausted?.(event.jobId);
  }

  #countUse(hashes: number): void {
    const held = this.#epoch === undefined ? undefined : this.#held.get(this.#epoch);
    if (held?.layout.mode === 'full') this.#dependencies.store?.worked?.(held.epoch, held.layout, hashes);
  }

  #fail(reason: string): void {
    if (this.#closed) return;
    void this.close();
    this.#dependencies.onFailure?.(new KernelError('kernel_worker_failed', `a search thread ended: ${reason}`));
  }

  async #prepare(epoch: number, signal: AbortSignal): Promise<void> {
    if (this.#held.has(epoch)) return;
    if (signal.aborted)
      throw new KernelError('kernel_superseded', `epoch ${epoch} is not wanted any more: a later one was asked for`);
    const drop = epochToDrop(this.epochs, epoch, this.#epoch);
    if (drop !== undefined) {
      this.#held.delete(drop);
      await Promise.all(this.#threads.map((thread) => thread.ask({ kind: 'close', epoch: drop })));
    }
    this.#held.set(epoch, await (this.#shared ? this.#prepareShared(epoch, signal) : this.#prepareAlone(epoch)));
  }

  async #prepareShared(epoch: number, signal: AbortSignal): Promise<PreparedEpoch> {
    const { builders, mode, network } = this.#options;
    const { availableMemory, onProgress, store } = this.#dependencies;
    const dependencies = {
      now: monotonicMillis,
      random: Math.random,
      signal,
      store,
      availableMemory,
      onProgress,
    };
    const slots = this.#threads.length;
    const parameters = powParameters(network);
    const held = await prepareEpoch(parameters, mode, epoch, slots, builders ?? coreCount(), dependencies);
    const module = await kernelModule(true);
    const { layout, memory } = held;
    const open = { kind: 'open', epoch, module, memory, layout } as const;
    await Promise.all(this.#threads.map((thread, slot) => thread.ask({ ...open, slot })));
    return held;
  }

  async #prepareAlone(epoch: number): Promise<undefined> {
    const [thread] = this.#threads as [Thread];
    const layout = layoutOf(powParameters(this.#options.network), this.#options.mode, 1);
    const module = await kernelModule(false);
    await thread.ask({ kind: 'open', epoch, module, layout, slot: 0 });
    const dependencies = { now: monotonicMillis, onProgress: this.#dependencies.onProgress };
    await buildCache(epoch, layout, thread, dependencies);
    if (layout.mode === 'full') await buildItems(epoch, layout, [thread], dependencies);
  }
}

export const createWasmBackend = (options: WasmBackendOptions, dependencies: WasmBackendDependencies): Backend =>
  new WasmBackend(options, dependencies);
