/**
 * How the dataset is cut into buffers, because adapters limit a binding (NVIDIA: 2 GiB - 4 bytes, less by 4 bytes than
 * mainnet's dataset). Even shards are equal powers of two; a lopsided pair is one shard as large as the binding limit
 * allows and a tail of a few pages, so that the kernel almost never has to branch. Pure.
 */
import type { Parameters } from './assemble.ts';
import { GpuError } from './gpu-error.ts';

export const PAGE_BYTES = 128;
const PAGE_ROWS = 8;

export type ShardCount = 1 | 2 | 4 | 8;
export const SHARD_COUNTS: readonly ShardCount[] = [1, 2, 4, 8];

export type Layout = {
  readonly pagesLog2: number;
  /** First page and number of pages of each shard. */
  readonly shards: readonly { readonly first: number; readonly pages: number }[];
  readonly lopsided: boolean;
};

export type BindingLimits = {
  readonly maxStorageBufferBindingSize: number;
  readonly maxBufferSize: number;
  readonly maxStorageBuffersPerShaderStage: number;
};

/** A tail is at most this part of the dataset: a larger one would be read too often. */
const MOST_TAIL = 2 ** 10;

/** Bindings of the search kernel beside the dataset: its results. */
const OTHER_STORAGE_BINDINGS = 1;

export function evenLayout(pagesLog2: number, count: ShardCount): Layout {
  const pages = 2 ** pagesLog2 / count;
  return {
    pagesLog2,
    shards: Array.from({ length: count }, (_, k) => ({ first: k * pages, pages })),
    lopsided: false,
  };
}

export function lopsidedLayout(pagesLog2: number, tailPages: number): Layout {
  const main = 2 ** pagesLog2 - tailPages;
  return {
    pagesLog2,
    shards: [
      { first: 0, pages: main },
      { first: main, pages: tailPages },
    ],
    lopsided: true,
  };
}

/** Whether the adapter can bind it. */
export function fits(layout: Layout, limits: BindingLimits): boolean {
  const most = Math.min(limits.maxStorageBufferBindingSize, limits.maxBufferSize);
  return (
    layout.shards.every((shard) => shard.pages * PAGE_BYTES <= most) &&
    layout.shards.length + OTHER_STORAGE_BINDINGS <= limits.maxStorageBuffersPerShaderStage
  );
}

/** The layouts that the limits allow, the best first. */
export function layoutsFor(pagesLog2: number, limits: BindingLimits): Layout[] {
  const most = Math.min(limits.maxStorageBufferBindingSize, limits.maxBufferSize);
  const tail = Math.max(2 ** pagesLog2 - Math.floor(most / PAGE_BYTES), 1);
  const even = SHARD_COUNTS.map((count) => evenLayout(pagesLog2, count));
  const lopsided = tail <= 2 ** pagesLog2 / MOST_TAIL ? [lopsidedLayout(pagesLog2, tail)] : [];
  const candidates = [even[0] as Layout, ...lopsided, ...even.slice(1)];
  return candidates.filter((layout) => fits(layout, limits));
}

export function chooseLayout(pagesLog2: number, limits: BindingLimits): Layout {
  const best = layoutsFor(pagesLog2, limits)[0];
  if (best === undefined)
    throw new GpuError('gpu_limits', 'the adapter cannot bind the dataset, even in eight parts', {
      needed_bytes: 2 ** pagesLog2 * PAGE_BYTES,
      binding_bytes: limits.maxStorageBufferBindingSize,
      buffer_bytes: limits.maxBufferSize,
      storage_bindings: limits.maxStorageBuffersPerShaderStage,
    });
  return best;
}

/** What pages.wgsl is assembled with. */
export function layoutParameters(layout: Layout): Parameters {
  const { shards } = layout;
  const count = shards.length;
  return {
    SHARDS: count,
    LAST: count - 1,
    LOPSIDED: layout.lopsided ? 1 : 0,
    EVEN: layout.lopsided || count === 1 ? 0 : 1,
    // Both only mean something for a lopsided pair.
    MAIN_END: (shards[0] as { pages: number }).pages * PAGE_ROWS - 1,
    TAIL_WORDS: ((shards.at(-1) as { first: number }).first * 2 ** (32 - layout.pagesLog2)) >>> 0,
    START: shards.map((shard) => shard.first),
    // A fixed extent lets a checking compiler clamp an index with one instruction instead of loading the length.
    EXTENT: shards.map((shard) => `, ${shard.pages * PAGE_ROWS}`),
    SHARD_BITS: layout.pagesLog2 - Math.log2(count),
    SHARD_MASK: 2 ** layout.pagesLog2 / count - 1,
  };
}
