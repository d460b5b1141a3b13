/**
 * The search of one thread: batches of about 20 ms with a turn of the event loop between them, so that a new job, a
 * pause or a slice of the next dataset takes effect within one batch.
 */
import type { MonotonicClock } from '../../runtime/clock/clock.ts';
import type { Kernel } from './kernel.ts';
import type { SearchTask, ThreadEvent } from './thread-tasks.ts';

const BATCH_MILLIS = 20;
/** Where blocks are easy (noncesPerBlock). */
const SHORTEST_MILLIS = 3;
const FIRST_BATCH = 256;
const MOST_IN_BATCH = 1 << 16;

export type SearchDependencies = {
  readonly kernel: (epoch: number) => Kernel | undefined;
  readonly emit: (event: ThreadEvent) => void;
  readonly now: MonotonicClock;
  /** Runs the callback after whatever messages wait. */
  readonly later: (callback: () => void) => void;
};

export class Searcher {
  readonly #dependencies: SearchDependencies;
  #job: SearchTask | undefined;
  #preHash: Uint8Array = new Uint8Array(32);
  #next = 0n;
  #batch = FIRST_BATCH;
  #paused = false;
  #scheduled = false;

  constructor(dependencies: SearchDependencies) {
    this.#dependencies = dependencies;
  }

  setJob(job: SearchTask | undefined): void {
    this.#job = job;
    if (job === undefined) return;
    this.#next = job.from;
    const kernel = this.#dependencies.kernel(job.epoch);
    if (kernel === undefined) throw new Error(`epoch ${job.epoch} is not open in this thread`);
    this.#preHash = kernel.preHash(job.header);
    this.#schedule();
  }

  pause(paused: boolean): void {
    this.#paused = paused;
    this.#schedule();
  }

  #schedule(): void {
    if (this.#scheduled || this.#paused || this.#job === undefined) return;
    this.#scheduled = true;
    this.#dependencies.later(() => {
      this.#scheduled = false;
      this.#runBatch();
      this.#schedule();
    });
  }

  #runBatch(): void {
    const job = this.#job;
    if (job === undefined || this.#paused) return;
    const { emit, kernel, now } = this.#dependencies;
    const open = kernel(job.epoch);
    if (open === undefined) {
      this.#job = undefined;
      return;
    }
    const left = job.to - this.#next;
    if (left <= 0n) {
      this.#job = undefined;
      emit({ event: 'exhausted', jobId: job.jobId });
      return;
    }
    const wanted = this.#wanted(job);
    const count = left < BigInt(wanted) ? Number(left) : wanted;
    const began = now();
    const hits = open.search(this.#preHash, job.target, this.#next, count);
    if (hits === undefined) {
      // An absurdly easy target: the same nonces again, fewer at a time, so that no hit is lost.
      this.#batch = Math.max(16, this.#batch >> 1);
      return;
    }
    const millis = now() - began;
    this.#next += BigInt(count);
    emit({ event: 'searched', jobId: job.jobId, hashes: count, hits });
    if (count === this.#batch) this.#steer(millis, hits.length);
  }

  #wanted({ batchPerBlock }: SearchTask): number {
    const shortest = Math.max(FIRST_BATCH, this.#batch * (SHORTEST_MILLIS / BATCH_MILLIS));
    return Math.min(this.#batch, Math.floor(Math.max(batchPerBlock, shortest)));
  }

  #steer(millis: number, hits: number): void {
    if (hits > 256) return;
    const factor = Math.min(4, Math.max(0.25, BATCH_MILLIS / Math.max(millis, 0.1)));
    this.#batch = Math.min(MOST_IN_BATCH, Math.max(16, Math.round((this.#batch * factor) / 16) * 16));
  }
}
