/**
 * Builds an epoch's cache and dataset in the threads given, in slices: the cache on one of them (it is a chain by
 * nature), the dataset on all. Reports progress and the remaining time. Runs in Node and in browsers.
 */
import { datasetSeed } from '../../protocol/crypto/pow.ts';
import { POW_CACHE_PASSES } from '../../protocol/crypto/pow-counts.ts';
import type { MonotonicClock } from '../../runtime/clock/clock.ts';
import type { Progress } from '../backend.ts';
import { ITEM_WIDTH } from './kernel.ts';
import type { Layout } from './layout.ts';
import type { Thread } from './thread.ts';

/** About 50 ms of work a slice on mainnet, so that threads that also search stay responsive. */
const CACHE_SLICE = 1 << 17;
const ITEM_SLICE = 1 << 15;

export type BuildDependencies = {
  readonly now: MonotonicClock;
  readonly onProgress?: ((progress: Progress) => void) | undefined;
};

function reporter(
  epoch: number,
  stage: Progress['stage'],
  total: number,
  { now, onProgress }: BuildDependencies,
): (done: number) => void {
  const began = now();
  return (done) => {
    const seconds = (now() - began) / 1000;
    const secondsLeft = done > 0 && seconds > 0.2 ? (seconds / done) * (total - done) : undefined;
    onProgress?.({ epoch, stage, done, total, ...(secondsLeft === undefined ? {} : { secondsLeft }) });
  };
}

/** The threads must have the epoch open. */
export async function buildCache(
  epoch: number,
  layout: Layout,
  thread: Thread,
  dependencies: BuildDependencies,
): Promise<void> {
  const total = layout.cacheItems * (1 + POW_CACHE_PASSES);
  const report = reporter(epoch, 'cache', total, dependencies);
  const seed = datasetSeed(layout.parameters.networkId, epoch);
  for (let from = 0; from < total; from += CACHE_SLICE) {
    const to = Math.min(total, from + CACHE_SLICE);
    await thread.ask({ kind: 'cache', epoch, seed, from, to });
    report(to);
  }
}

export async function buildItems(
  epoch: number,
  layout: Layout,
  threads: readonly Thread[],
  dependencies: BuildDependencies,
): Promise<void> {
  const report = reporter(epoch, 'dataset', layout.items, dependencies);
  // Small datasets are cut finer, or one thread would do them alone.
  const slice = Math.max(ITEM_WIDTH, Math.min(ITEM_SLICE, layout.items / (8 * threads.length)));
  const step = 2 ** Math.floor(Math.log2(slice));
  let next = 0;
  let done = 0;
  const work = async (thread: Thread): Promise<void> => {
    while (next < layout.items) {
      const from = next;
      const to = Math.min(layout.items, from + step);
      next = to;
      await thread.ask({ kind: 'items', epoch, from, to });
      done += to - from;
      report(done);
    }
  };
  await Promise.all(threads.map(work));
}
