/**
 * A graphics card as a backend of the miner (kernels/backend.ts). Keeps the device fed with short dispatches, so that a new
 * job takes effect within one of them; every hit carries the hash that the device computed, and the miner checks it.
 * Loads in browsers.
 */
import { compareBytes } from '../../protocol/bytes.ts';
import { datasetSeed, type PowParameters, powNonce, powPreHash } from '../../protocol/pow.ts';
import type { Backend, BackendEvents, SearchJob } from '../backend.ts';
import { KernelError } from '../kernel-error.ts';
import { buildDataset, type GpuDataset } from './dataset.ts';
import type { Gpu } from './device.ts';
import { chooseLayout, type Layout } from './layout.ts';
import { compileSearch, type Outcome, type RawHit, type Run, Searcher, SLOTS, type Ticket } from './search.ts';
import { nonceBound, SEARCH_BAND, steer } from './steer.ts';
import { defaultShape, type Trial, type Tuning, tune, tuningIsPossible } from './tune.ts';

export type GpuBackendOptions = {
  readonly parameters: PowParameters;
  /** As tune() found it before; without it, or where it no longer fits, the device is tuned at the first epoch. */
  readonly tuning?: Tuning;
  /** False runs the default shape instead of tuning, as software adapters always do. */
  readonly autoTune?: boolean;
  /** For tests: a cut of the dataset other than the adapter's best. */
  readonly layout?: Layout;
};

export type GpuBackendDependencies = {
  readonly gpu: Gpu;
  readonly events: BackendEvents;
  /** The cache of an epoch, from its seed; made on the processor, because it is one long chain. */
  buildCache(seed: Uint8Array<ArrayBuffer>): Promise<Uint8Array<ArrayBuffer>>;
  /** Told once, when the device was tuned. */
  onTuned?(tuning: Tuning): void;
  onTrial?(trial: Trial): void;
};

type Active = {
  readonly job: SearchJob;
  readonly prefix: Uint32Array;
  readonly fixedNonce: bigint;
  readonly most: number;
  next: bigint;
  /** Runs whose hits did not fit the slots, to be searched again in pieces. */
  readonly again: { nonce: bigint; count: number }[];
  flying: number;
};

type Flying = { readonly ticket: Ticket; readonly active: Active };

const KEPT_EPOCHS = 2;

export class GpuBackend implements Backend {
  readonly kind = 'webgpu';
  readonly #options: GpuBackendOptions;
  readonly #dependencies: GpuBackendDependencies;
  readonly #layout: Layout;
  readonly #datasets = new Map<number, GpuDataset>();
  #preparing: Promise<void> = Promise.resolve();
  /** The epoch that was asked for last: others that still wait for their turn are not built. */
  #wanted: number | undefined;
  #tuning: Tuning | undefined;
  #searcher: Searcher | undefined;
  #active: Active | undefined;
  #paused = false;
  #closed = false;
  #failed = false;
  #hashes = 0;
  #lateHashes = 0;
  #work = 0;
  #wake: () => void = () => {};
  readonly #running: Promise<void>;

  constructor(options: GpuBackendOptions, dependencies: GpuBackendDependencies) {
    this.#options = options;
    this.#dependencies = dependencies;
    const { gpu } = dependencies;
    this.#layout = options.layout ?? chooseLayout(options.parameters.pagesLog2, gpu.limits);
    if (options.tuning !== undefined && tuningIsPossible(options.tuning, gpu)) this.#tuning = options.tuning;
    gpu.loss.listen((error) => this.#fail(error));
    this.#running = this.#run().catch((error: unknown) =>
      this.#fail(error instanceof Error ? error : new Error(String(error))),
    );
  }

  get name(): string {
    return this.#dependencies.gpu.name;
  }

  get hashes(): number {
    return this.#hashes;
  }

  /** Those of them that were spent on a job after it had been replaced. */
  get lateHashes(): number {
    return this.#lateHashes;
  }

  get epochs(): readonly number[] {
    return [...this.#datasets.keys()];
  }

  /** What the device runs with; known after the first prepare(). */
  get tuning(): Tuning | undefined {
    return this.#tuning;
  }

  prepare(epoch: number): Promise<void> {
    this.#wanted = epoch;
    const made = this.#preparing.then(() => this.#prepare(epoch));
    this.#preparing = made.catch(() => {});
    return made;
  }

  async #prepare(epoch: number): Promise<void> {
    if (this.#datasets.has(epoch)) return;
    this.#assertOpen();
    if (epoch !== this.#wanted)
      throw new KernelError('kernel_superseded', `epoch ${epoch} is not wanted any more: a later one was asked for`);
    const { gpu, events, buildCache } = this.#dependencies;
    const { parameters } = this.#options;
    const report = (stage: 'cache' | 'dataset', done: number, total: number): void =>
      events.onProgress?.({ epoch, stage, done, total });
    const items = 2 ** parameters.cacheLog2;
    report('cache', 0, items);
    const cache = await buildCache(datasetSeed(parameters.networkId, epoch));
    report('cache', items, items);
    this.#assertOpen();
    this.#dropOldest(epoch);
    const dataset = await buildDataset(gpu, parameters, this.#layout, cache, (done, total) =>
      report('dataset', done, total),
    );
    try {
      await this.#makeSearcher(dataset);
      this.#assertOpen();
    } catch (error) {
      dataset.destroy();
      throw error;
    }
    this.#datasets.set(epoch, dataset);
    this.#wake();
  }

  async #makeSearcher(dataset: GpuDataset): Promise<void> {
    if (this.#searcher !== undefined) return;
    const { gpu, onTrial, onTuned } = this.#dependencies;
    if (this.#tuning === undefined && this.#options.autoTune !== false && !gpu.software) {
      this.#tuning = await tune(gpu, dataset, {}, onTrial);
      onTuned?.(this.#tuning);
    }
    this.#tuning ??= { shape: defaultShape(gpu) };
    const kernel = await compileSearch(gpu, this.#tuning.shape, dataset.layout);
    this.#searcher = new Searcher(gpu, kernel);
  }

  #dropOldest(arriving: number): void {
    const spare = [...this.#datasets.keys()].filter((epoch) => epoch !== this.#active?.job.epoch);
    while (this.#datasets.size >= KEPT_EPOCHS && spare.length > 0) {
      const oldest = Math.min(...spare);
      spare.splice(spare.indexOf(oldest), 1);
      if (oldest === arriving) continue;
      this.#datasets.get(oldest)?.destroy();
      this.#datasets.delete(oldest);
    }
  }

  setJob(job: SearchJob | undefined): void {
    this.#assertOpen();
    if (job === undefined) {
      this.#active = undefined;
      return;
    }
    if (!this.#datasets.has(job.epoch))
      throw new KernelError('kernel_epoch_not_ready', `the dataset of epoch ${job.epoch} is not built`, {
        epoch: job.epoch,
      });
    const prefix = new Uint32Array(powPreHash(job.header).buffer);
    const free = (1n << BigInt(8 * (8 - job.prefixBytes))) - 1n;
    const nonce = new DataView(powNonce(job.header).buffer).getBigUint64(0, true);
    this.#active = {
      job,
      prefix,
      fixedNonce: nonce & ~free,
      most: nonceBound(job.target, SLOTS),
      next: job.nonces.from,
      again: [],
      flying: 0,
    };
    this.#wake();
  }

  pause(): void {
    this.#paused = true;
  }

  resume(): void {
    this.#paused = false;
    this.#wake();
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    this.#active = undefined;
    this.#wake();
    await this.#running;
    await this.#preparing;
    this.#searcher?.destroy();
    for (const dataset of this.#datasets.values()) dataset.destroy();
    this.#datasets.clear();
    this.#dependencies.gpu.device.destroy();
  }

  #assertOpen(): void {
    if (this.#closed || this.#failed) throw new KernelError('kernel_closed', 'the backend is closed');
  }

  #fail(error: Error): void {
    if (this.#closed || this.#failed) return;
    this.#failed = true;
    this.#active = undefined;
    this.#wake();
    this.#dependencies.events.onFailure?.(error);
  }

  async #run(): Promise<void> {
    const flying: Flying[] = [];
    while (!this.#failed && (!this.#closed || flying.length > 0)) {
      const searcher = this.#searcher;
      while (searcher !== undefined && searcher.free > 0) {
        const next = this.#launch(searcher);
        if (next === undefined) break;
        flying.push(next);
      }
      const oldest = flying.shift();
      if (searcher === undefined || oldest === undefined) {
        if (!this.#closed)
          await new Promise<void>((resolve) => {
            this.#wake = resolve;
          });
        continue;
      }
      await searcher.approach(oldest.ticket);
      this.#account(oldest, await searcher.finish(oldest.ticket));
    }
  }

  #launch(searcher: Searcher): Flying | undefined {
    const active = this.#active;
    if (active === undefined || this.#paused || this.#closed) return undefined;
    const dataset = this.#datasets.get(active.job.epoch);
    if (dataset === undefined) return undefined;
    const part = this.#nextPart(active, searcher.quantum);
    if (part === undefined) return undefined;
    active.flying++;
    const run: Run = { prefix: active.prefix, target: active.job.target, ...part };
    return { ticket: searcher.submit(dataset, run), active };
  }

  #nextPart(active: Active, quantum: number): { nonce: bigint; count: number } | undefined {
    const again = active.again.pop();
    if (again !== undefined) return again;
    const left = active.job.nonces.to - active.next;
    if (left <= 0n) return undefined;
    if (this.#work === 0) this.#work = quantum;
    const wanted = BigInt(Math.min(this.#work, active.most));
    const count = left < wanted ? left : wanted;
    const nonce = active.fixedNonce | active.next;
    active.next += count;
    return { nonce, count: Number(count) };
  }

  #account({ ticket, active }: Flying, outcome: Outcome): void {
    const { count, nonce } = ticket.run;
    const { quantum } = this.#searcher as Searcher;
    active.flying--;
    if (count >= this.#work)
      this.#work = steer({ work: this.#work, millis: outcome.millis }, SEARCH_BAND, quantum, 2 ** 31);
    if (outcome.found > outcome.hits.length && count > 1) {
      const half = Math.floor(count / 2);
      active.again.push({ nonce, count: half }, { nonce: nonce + BigInt(half), count: count - half });
      return;
    }
    this.#hashes += count;
    if (active !== this.#active) this.#lateHashes += count;
    for (const hit of outcome.hits) this.#report(active.job, hit);
    const { job } = active;
    if (active === this.#active && active.next >= job.nonces.to && active.again.length + active.flying === 0) {
      this.#active = undefined;
      this.#dependencies.events.onExhausted?.(job.id);
    }
  }

  #report(job: SearchJob, hit: RawHit): void {
    if (compareBytes(hit.hash, job.target) > 0) return;
    const nonce = new Uint8Array(8);
    new DataView(nonce.buffer).setBigUint64(0, hit.nonce, true);
    this.#dependencies.events.onHit({ jobId: job.id, nonce, hash: hit.hash });
  }
}
