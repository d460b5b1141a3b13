/** Periodic tasks of the pool. */
import type { PoolDependencies } from './pool-dependencies.ts';

/** A failed round is repeated at the next interval: its data is only for display. */
export function every(
  millis: number,
  work: () => Promise<unknown>,
  what: string,
  { log, started }: Pick<PoolDependencies, 'log' | 'started'>,
): void {
  let isRunning = false;
  const timer = setInterval(() => {
    if (isRunning) return;
    isRunning = true;
    work()
      .catch((error: Error) => log.debug('not gathered', { what, reason: error.message }))
      .finally(() => {
        isRunning = false;
      });
  }, millis);
  started(what, () => clearInterval(timer));
}
