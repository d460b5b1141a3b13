/** What every part of a pool gets from the program it runs in. */
import type { Verifier } from '../kernels/verifier.ts';
import type { Logger } from '../runtime/log.ts';

export type PoolDependencies = {
  readonly log: Logger;
  readonly version: string;
  /** Registers what has started, to be stopped in reverse. */
  readonly started: (name: string, stop: () => Promise<void> | void) => void;
  /** Something the pool cannot go on without has failed. */
  readonly fault: (reason: string) => void;
  /** Instead of the pool's own; for tests and benchmarks. */
  readonly verifier?: Verifier;
};
