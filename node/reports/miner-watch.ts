/**
 * Logs that transactions wait but no work block arrives: they reach the ledger only in work blocks, so without a miner
 * no payment becomes final.
 */
import type { SteadyClock } from '../../runtime/clock/clock.ts';
import type { Logger } from '../../runtime/log/log.ts';

export type MinerWatchDependencies = {
  /** Transactions in the mempool. */
  readonly waiting: () => number;
  readonly steady: SteadyClock;
  readonly log: Logger;
};

/** A miner of the network finds blocks far more often. */
const PATIENCE_MILLIS = 60_000;
const REPEAT_MILLIS = 15 * 60_000;

export class MinerWatch {
  readonly #with: MinerWatchDependencies;
  /** Since when transactions wait without a block. */
  #since: number | undefined;
  #told = Number.NEGATIVE_INFINITY;

  constructor(dependencies: MinerWatchDependencies) {
    this.#with = dependencies;
  }

  /** A work block arrived. */
  block(): void {
    this.#since = undefined;
  }

  /** After every cut. */
  tick(): void {
    const { waiting, steady, log } = this.#with;
    const [transactions, now] = [waiting(), steady()];
    if (transactions === 0) {
      this.#since = undefined;
      return;
    }
    this.#since ??= now;
    if (now - this.#since < PATIENCE_MILLIS || now - this.#told < REPEAT_MILLIS) return;
    this.#told = now;
    log.warn('transactions wait and no work block comes: a payment becomes final only when a miner works', {
      transactions,
      seconds: Math.floor((now - this.#since) / 1000),
    });
  }
}
