/** Timers that the code of one file sets. Short files share a process: a count of all timers counts what a file before left behind. */
import { vi } from 'vitest';

/** How many are still to come. To be called after `vi.useFakeTimers`; they end with `vi.useRealTimers`. */
export function timersOf(file: string): () => number {
  const waiting = new Set<unknown>();
  const { setTimeout: set, clearTimeout: clear } = globalThis;
  const counted = (run: () => void, millis?: number) => {
    const timer = set(() => {
      waiting.delete(timer);
      run();
    }, millis);
    if (new Error().stack?.includes(file)) waiting.add(timer);
    return timer;
  };
  vi.stubGlobal('setTimeout', counted);
  vi.stubGlobal('clearTimeout', (timer: NodeJS.Timeout) => {
    waiting.delete(timer);
    clear(timer);
  });
  return () => waiting.size;
}
