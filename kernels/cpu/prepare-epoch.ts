/**
 * Creates the memory of an epoch: from its file if there is a valid one, otherwise by building it. Builds in separate
 * threads, so that verification or search continues meanwhile. Needs shared memory.
 */
import type { PowParameters } from '../../protocol/crypto/pow.ts';
import type { MonotonicClock } from '../../runtime/clock/clock.ts';
import type { Progress } from '../backend.ts';
import { KernelError } from '../kernel-error.ts';
import type { VerifierMode } from '../verifier-types.ts';
import { buildCache, buildItems } from './build-dataset.ts';
import { createMemory, memoryInsufficient } from './kernel.ts';
import { type Layout, layoutOf } from './layout.ts';
import { kernelModule } from './module.ts';
import { Thread } from './thread.ts';

/**
 * Datasets kept between runs (kernels/dataset-file.ts). A store never throws: a failure is logged and the dataset is
 * built again.
 */
export interface DatasetStore {
  /** Fills the dataset's part of the memory from the file; false when there is none or it is damaged. */
  load(epoch: number, layout: Layout, memory: WebAssembly.Memory, onProgress: (p: Progress) => void): Promise<boolean>;
  /** Records the number of hashes done with the epoch's dataset: used files are preferred over those only requested. */
  worked?(epoch: number, layout: Layout, hashes: number): void;
  /** The file was sound by its checksum but not by its content. */
  discard(epoch: number, layout: Layout): Promise<void>;
  /** Resolves once the file is in place, or cannot be. */
  save(epoch: number, layout: Layout, memory: WebAssembly.Memory, onProgress: (p: Progress) => void): Promise<void>;
}

export type PrepareDependencies = {
  readonly now: MonotonicClock;
  /** Ends the build: the promise is then rejected with kernel_closed. */
  readonly signal?: AbortSignal;
  readonly random: () => number;
  readonly store?: DatasetStore | undefined;
  readonly availableMemory?: (() => number) | undefined;
  readonly onProgress?: ((progress: Progress) => void) | undefined;
};

export type PreparedEpoch = {
  readonly epoch: number;
  readonly layout: Layout;
  readonly memory: WebAssembly.Memory;
  /** Done when the dataset is on disk too. */
  readonly stored: Promise<void>;
};

/** Pages of a loaded dataset that are computed again: a file with one page in a hundred wrong passes once in 10^4. */
const SAMPLED_PAGES = 1_024;

/** `slots`: threads that will use the memory. The builders borrow the same scratches before anyone else is there. */
export async function prepareEpoch(
  parameters: PowParameters,
  mode: VerifierMode,
  epoch: number,
  slots: number,
  builders: number,
  dependencies: PrepareDependencies,
): Promise<PreparedEpoch> {
  const layout = layoutOf(parameters, mode, Math.max(slots, builders));
  const available = dependencies.availableMemory?.();
  if (available !== undefined && layout.bytes > available) throw memoryInsufficient(layout, available);
  const module = await kernelModule(true);
  const memory = createMemory(layout, true);
  const threads = Array.from({ length: mode === 'full' ? builders : 1 }, () => new Thread());
  const abort = (): void => {
    for (const thread of threads) void thread.end();
  };
  dependencies.signal?.addEventListener('abort', abort);
  if (dependencies.signal?.aborted === true) abort();
  try {
    await Promise.all(threads.map((thread, slot) => thread.ask({ kind: 'open', epoch, module, memory, layout, slot })));
    const { stored } = await fill(epoch, layout, memory, threads, dependencies);
    return { epoch, layout, memory, stored };
  } finally {
    dependencies.signal?.removeEventListener('abort', abort);
    await Promise.all(threads.map((thread) => thread.end()));
  }
}

async function fill(
  epoch: number,
  layout: Layout,
  memory: WebAssembly.Memory,
  threads: readonly Thread[],
  dependencies: PrepareDependencies,
): Promise<{ stored: Promise<void> }> {
  const { random, store } = dependencies;
  const first = threads[0] as Thread;
  const onProgress = dependencies.onProgress ?? (() => {});
  const cached = buildCache(epoch, layout, first, dependencies);
  if (layout.mode === 'light') {
    await cached;
    return { stored: Promise.resolve() };
  }
  // The file is read while the cache is built: both are needed, the cache to check the file by.
  const [loaded] = await Promise.all([store?.load(epoch, layout, memory, onProgress) ?? false, cached]);
  if (loaded) {
    const pages = Array.from({ length: SAMPLED_PAGES }, () => Math.floor(random() * (layout.items / 2)));
    const wrong = await first.ask<number>({ kind: 'sample', epoch, pages });
    onProgress({ epoch, stage: 'verify', done: 1, total: 1 });
    if (wrong === 0) return { stored: Promise.resolve() };
    await store?.discard(epoch, layout);
  }
  await buildItems(epoch, layout, threads, dependencies);
  return { stored: store?.save(epoch, layout, memory, onProgress) ?? Promise.resolve() };
}

/**
 * Keeps at most two epochs: names the one to drop when `wanted` comes, the one furthest from it, but not the one that is
 * being worked on.
 */
export function epochToDrop(held: readonly number[], wanted: number, inUse?: number): number | undefined {
  if (held.length < 2 || held.includes(wanted)) return undefined;
  return held
    .filter((epoch) => epoch !== inUse)
    .reduce((far, epoch) => (Math.abs(epoch - wanted) > Math.abs(far - wanted) ? epoch : far));
}

export function assertEpoch(epoch: number): void {
  if (!Number.isSafeInteger(epoch) || epoch < 0)
    throw new KernelError('kernel_epoch_not_allowed', `${epoch} is not an epoch`, { epoch });
}
