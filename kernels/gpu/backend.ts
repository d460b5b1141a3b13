/**
 * A graphics card as a backend of the miner (kernels/backend.ts). Keeps the device fed with two dispatches at a time; a
 * new job takes effect with the next one. Every hit carries the hash that the device computed, and the miner checks it.
 * A device that was never tuned starts at once with the default shape and is tuned while it searches. Loads in
 * browsers.
 */
import { compareBytes } from '../../protocol/bytes.ts';
import { datasetSeed, type PowParameters } from '../../protocol/crypto/pow.ts';
import type { Backend, BackendEvents, DeviceUsage, SearchJob } from '../backend.ts';
import { KernelError } from '../kernel-error.ts';
import { buildDataset, type GpuDataset } from './dataset.ts';
import type { Gpu } from './device.ts';
import { chooseLayout, type Layout } from './layout.ts';
import { NonceWalk } from './nonce-walk.ts';
import {
  compileSearch,
  type Kernel,
  type Outcome,
  type RawHit,
  RING,
  type Run,
  Searcher,
  type Shape,
  SLOTS,
  type Ticket,
} from './search.ts';
import { SEARCH_BAND, shortForBlocks, steer } from './steer.ts';
import { Timeline, UsageMeter } from './timeline.ts';
import {
  candidatesFor,
  defaultShape,
  type Trial,
  TURN_TIMES,
  type Tuning,
  Turns,
  type TurnTimes,
  tuningIsPossible,
} from './tune.ts';

export type GpuBackendOptions = {
  readonly parameters: PowParameters;
  /** As it was found before; without it, or where it no longer fits, the device is tuned while it searches. */
  readonly tuning?: Tuning;
  /** False stays with the default shape, as software adapters always do. */
  readonly autoTune?: boolean;
  /** For tests: shapes to choose from, also on a software adapter, and how long each is tried. */
  readonly candidates?: readonly Shape[];
  readonly turnTimes?: TurnTimes;
  /** For tests: a cut of the dataset other than the adapter's best. */
  readonly layout?: Layout;
};

export type GpuBackendDependencies = {
  readonly gpu: Gpu;
  readonly events: BackendEvents;
  /** The cache of an epoch, from its seed; made on the processor, because it is one long chain. */
  buildCache(seed: Uint8Array<ArrayBuffer>): Promise<Uint8Array<ArrayBuffer>>;
  /** Called once, when the device was tuned. */
  onTuned?(tuning: Tuning): void;
  onTrial?(trial: Trial): void;
};

/** A searcher and the work of its next dispatch. */
type Runner = { readonly searcher: Searcher; work: number };

type Flying = { readonly ticket: Ticket; readonly active: NonceWalk; readonly runner: Runner };

type Trials = { readonly runners: readonly Runner[]; readonly turns: Turns };

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
  #runner: Runner | undefined;
  #trials: Trials | undefined;
  #tuningDone: Promise<void> | undefined;
  /** Lost in a trial; destroyed once nothing of theirs is in flight. */
  #losers: Runner[] = [];
  readonly #timeline = new Timeline();
  readonly #meter = new UsageMeter();
  #active: NonceWalk | undefined;
  #paused = false;
  #closed = false;
  #failed = false;
  #hashes = 0;
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

  /** How long the device worked and had nothing to do, where its passes are timed. */
  get usage(): DeviceUsage | undefined {
    return this.#dependencies.gpu.timed ? this.#meter.usage : undefined;
  }

  /** Whether shapes are still being tried. */
  get isTuning(): boolean {
    return this.#tuningDone !== undefined && this.#tuning === undefined;
  }

  get epochs(): readonly number[] {
    return [...this.#datasets.keys()];
  }

  /** What the device runs with; known once it was tuned, or need not be. */
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
    // Compiled beside it: the layout is known, and the processor is busy with the cache for a second.
    const kernel = this.#runner === undefined ? this.#compileFirst() : undefined;
    kernel?.catch(() => undefined);
    const cache = await buildCache(datasetSeed(parameters.networkId, epoch));
    report('cache', items, items);
    this.#assertOpen();
    this.#dropOldest(epoch);
    const dataset = await buildDataset(gpu, parameters, this.#layout, cache, (done, total) =>
      report('dataset', done, total),
    );
    try {
      if (kernel !== undefined) this.#runner = this.#makeRunner(await kernel);
      this.#assertOpen();
    } catch (error) {
      dataset.destroy();
      throw error;
    }
    this.#datasets.set(epoch, dataset);
    if (this.#tuning === undefined) this.#tuningDone ??= this.#tune();
    this.#wake();
  }

  #compileFirst(): Promise<Kernel> {
    const { gpu } = this.#dependencies;
    return compileSearch(gpu, this.#tuning?.shape ?? this.#candidates()[0] ?? defaultShape(gpu), this.#layout);
  }

  #makeRunner(kernel: Kernel): Runner {
    const searcher = new Searcher(this.#dependencies.gpu, kernel, this.#timeline);
    return { searcher, work: searcher.quantum };
  }

  #candidates(): readonly Shape[] {
    const { gpu } = this.#dependencies;
    const { candidates, autoTune } = this.#options;
    if (candidates !== undefined) return candidates;
    return autoTune === false || gpu.software ? [] : candidatesFor(gpu);
  }

  /** Compiles the other shapes while the first one searches, then lets all of them take turns. */
  async #tune(): Promise<void> {
    const { gpu } = this.#dependencies;
    const first = this.#runner as Runner;
    const runners = [first];
    for (const shape of this.#candidates().slice(1)) {
      if (this.#closed || this.#failed) return;
      try {
        runners.push(this.#makeRunner(await compileSearch(gpu, shape, this.#layout)));
      } catch {
        // A driver that refuses one shape still has the others.
      }
    }
    // They begin near the length that the first one found, not with a single workgroup.
    for (const runner of runners.slice(1)) {
      const { quantum } = runner.searcher;
      runner.work = Math.max(1, Math.floor(first.work / 2 / quantum)) * quantum;
    }
    this.#trials = { runners, turns: new Turns(runners.length, this.#options.turnTimes ?? TURN_TIMES) };
    this.#endTrials();
  }

  /** Takes the best shape once it is known. */
  #endTrials(): void {
    if (this.#trials === undefined) return;
    const { runners, turns } = this.#trials;
    if (turns.result === undefined) return;
    const best = runners[turns.result] as Runner;
    this.#trials = undefined;
    this.#runner = best;
    this.#losers = runners.filter((runner) => runner !== best);
    this.#tuning = { shape: best.searcher.kernel.shape };
    const { onTrial, onTuned } = this.#dependencies;
    if (runners.length < 2) return;
    for (const [i, { searcher }] of runners.entries())
      onTrial?.({ shape: searcher.kernel.shape, hashesPerSecond: turns.rate(i) });
    onTuned?.(this.#tuning);
  }

  #destroyLosers(flying: readonly Flying[]): void {
    const idle = this.#losers.filter((loser) => !flying.some(({ runner }) => runner === loser));
    for (const { searcher } of idle) searcher.destroy();
    if (idle.length > 0) this.#losers = this.#losers.filter((loser) => !idle.includes(loser));
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
    this.#active = new NonceWalk(job, SLOTS);
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
    await this.#tuningDone;
    const runners = new Set([this.#runner, ...(this.#trials?.runners ?? []), ...this.#losers]);
    for (const runner of runners) runner?.searcher.destroy();
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
      while (flying.length < RING) {
        const next = this.#launch();
        if (next === undefined) break;
        if (flying.length === 0) this.#meter.rest();
        flying.push(next);
      }
      const oldest = flying.shift();
      if (oldest === undefined) {
        if (!this.#closed)
          await new Promise<void>((resolve) => {
            this.#wake = resolve;
          });
        continue;
      }
      const { searcher } = oldest.runner;
      await searcher.approach(oldest.ticket);
      this.#account(oldest, await searcher.finish(oldest.ticket));
      this.#destroyLosers(flying);
    }
  }

  #launch(): Flying | undefined {
    const active = this.#active;
    const runner = this.#trials === undefined ? this.#runner : this.#trials.runners[this.#trials.turns.current];
    if (active === undefined || runner === undefined || this.#paused || this.#closed) return undefined;
    const dataset = this.#datasets.get(active.job.epoch);
    if (dataset === undefined || runner.searcher.free === 0) return undefined;
    const { searcher, work } = runner;
    const full = { work, millis: searcher.expectedMillis(work) };
    const part = active.next(shortForBlocks(full, active.noncesPerBlock, searcher.quantum));
    if (part === undefined) return undefined;
    const run: Run = { prefix: active.prefix, target: active.job.target, ...part };
    return { ticket: searcher.submit(dataset, run), active, runner };
  }

  #account({ ticket, active, runner }: Flying, outcome: Outcome): void {
    const { count, nonce } = ticket.run;
    if (outcome.pass !== undefined) this.#meter.add(outcome.pass);
    if (count >= runner.work) this.#learn(runner, count, outcome.millis);
    const fitted = outcome.found <= outcome.hits.length || count === 1;
    active.settle({ nonce, count }, fitted);
    if (!fitted) return;
    this.#hashes += count;
    const { job } = active;
    for (const hit of outcome.hits) this.#report(job, hit);
    if (active === this.#active && active.isOver) {
      this.#active = undefined;
      this.#dependencies.events.onExhausted?.(job.id);
    }
  }

  /** From a dispatch of full length: how long the next one should be, and how good its shape is. */
  #learn(runner: Runner, count: number, millis: number): void {
    const { searcher } = runner;
    const trials = this.#trials;
    if (trials !== undefined) {
      trials.turns.record(trials.runners.indexOf(runner), count, millis);
      this.#endTrials();
    }
    const measured = { work: count, millis: searcher.expectedMillis(count) };
    runner.work = steer(measured, SEARCH_BAND, searcher.quantum, 2 ** 31);
  }

  #report(job: SearchJob, hit: RawHit): void {
    if (compareBytes(hit.hash, job.target) > 0) return;
    const nonce = new Uint8Array(8);
    new DataView(nonce.buffer).setBigUint64(0, hit.nonce, true);
    this.#dependencies.events.onHit({ jobId: job.id, nonce, hash: hit.hash });
  }
}
