/** Periodic tasks of the pool. */
import type { PoolDependencies } from './pool-dependencies.ts';

/** A round that fails is tried again at the next: what it gathers is for display. */
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
