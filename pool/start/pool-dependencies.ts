/** Dependencies that the program passes to every part of a pool. */
import type { Verifier } from '../../kernels/verifier.ts';
import type { Logger } from '../../runtime/log/log.ts';

export type PoolDependencies = {
  readonly log: Logger;
  readonly version: string;
  /** Registers a started part, to be stopped in reverse order. */
  readonly started: (name: string, stop: () => Promise<void> | void) => void;
  /** An essential part has failed: the pool stops. */
  readonly fault: (reason: string) => void;
  /** Replaces the pool's own; for tests and benchmarks. */
  readonly verifier?: Verifier;
};
