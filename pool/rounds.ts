/** Periodic tasks of the pool: figures for display, and also upkeep that its books rest on, such as journal retention. */
import type { PoolDependencies } from './start/pool-dependencies.ts';

/** A failed round is repeated at the next interval. The first failure of a series is a warning, its end is told. */
export function every(
  millis: number,
  work: () => Promise<unknown>,
  what: string,
  { log, started }: Pick<PoolDependencies, 'log' | 'started'>,
): void {
  let isRunning = false;
  let isStopped = false;
  let failures = 0;
  const round = async (): Promise<void> => {
    try {
      await work();
      if (failures > 0) log.info('a periodic task works again', { what, failures });
      failures = 0;
    } catch (error) {
      failures++;
      if (!isStopped) log[failures === 1 ? 'warn' : 'debug']('a periodic task failed', { what, reason: String(error) });
    }
  };
  const timer = setInterval(() => {
    if (isRunning) return;
    isRunning = true;
    void round().finally(() => {
      isRunning = false;
    });
  }, millis);
  started(what, () => {
    isStopped = true;
    clearInterval(timer);
  });
}
