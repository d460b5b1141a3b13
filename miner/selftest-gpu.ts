/**
 * The self-test of the graphics kernels: every variant of the search with every number of dataset bindings that the adapter
 * allows must reproduce the vectors. One line each, so that a difference names what not to use.
 */
import { buildDataset, type GpuDataset, readItem } from '../kernels/gpu/dataset.ts';
import type { Gpu } from '../kernels/gpu/device.ts';
import { GpuError } from '../kernels/gpu/gpu-error.ts';
import { evenLayout, fits, type Layout, lopsidedLayout, SHARD_COUNTS } from '../kernels/gpu/layout.ts';
import { compileSearch, Searcher, type Shape, shapeIsPossible, VARIANTS, type Variant } from '../kernels/gpu/search.ts';
import { candidatesFor } from '../kernels/gpu/tune.ts';
import { toHex } from '../protocol/bytes.ts';
import { datasetSeed, type PowParameters, powNonce, powParameters, powPreHash } from '../protocol/pow.ts';
import type { PowVector } from './pow-vectors.ts';
import { Comparison, placeOf, type SelfTestBackend, type Verdict } from './selftest.ts';

export type GpuSelfTestDependencies = {
  /** Opens the adapter once for all lines; rejects with a GpuError where there is none. */
  open(): Promise<Gpu>;
  buildCache(parameters: PowParameters, seed: Uint8Array<ArrayBuffer>): Promise<Uint8Array<ArrayBuffer>>;
};

const ANY_TARGET = new Uint8Array(32).fill(255);
/** Mainnet's dataset on NVIDIA is a binding and a tail of one page; here an eighth of it, so that every hash reads both. */
const TAIL_LOG2 = 3;

type LayoutOf = (pagesLog2: number) => Layout;
const LAYOUTS: readonly { readonly name: string; readonly layoutOf: LayoutOf }[] = [
  ...SHARD_COUNTS.map((count) => ({
    name: `${count} binding${count === 1 ? '' : 's'}`,
    layoutOf: (pagesLog2: number) => evenLayout(pagesLog2, count),
  })),
  {
    name: 'a binding and a tail',
    layoutOf: (pagesLog2: number) => lopsidedLayout(pagesLog2, 2 ** (pagesLog2 - TAIL_LOG2)),
  },
];

/** On a software adapter the smallest shape: large ones take minutes to compile there. */
function shapeFor(gpu: Gpu, variant: Variant): Shape | undefined {
  const lanes = variant !== 'workgroup' && gpu.subgroupSize < 8 ? 4 : 8;
  const small: Shape = { variant, lanes, flight: 1, workgroup: 32 };
  const fast = candidatesFor(gpu).find((shape) => shape.variant === variant);
  return [gpu.software ? small : fast, small].find((shape) => shape !== undefined && shapeIsPossible(shape, gpu));
}

async function compareHashes(
  comparison: Comparison,
  gpu: Gpu,
  dataset: GpuDataset,
  shape: Shape,
  vector: PowVector,
): Promise<void> {
  const searcher = new Searcher(gpu, await compileSearch(gpu, shape, dataset.layout));
  for (const [i, { header, pow }] of vector.hashes.entries()) {
    const prefix = new Uint32Array(powPreHash(header).buffer);
    const nonce = new DataView(powNonce(header).buffer).getBigUint64(0, true);
    const outcome = await searcher.finish(searcher.submit(dataset, { prefix, nonce, count: 1, target: ANY_TARGET }));
    if (!comparison.same(`${placeOf(vector)} hash ${i} pow`, outcome.hits[0]?.hash ?? new Uint8Array(0), pow)) break;
  }
  searcher.destroy();
}

async function check(
  gpu: Gpu,
  dependencies: GpuSelfTestDependencies,
  vectors: readonly PowVector[],
  variant: Variant,
  layoutOf: LayoutOf,
): Promise<Verdict> {
  const shape = shapeFor(gpu, variant);
  if (shape === undefined) return { kind: 'absent', why: `${gpu.name} cannot run this variant` };
  const comparison = new Comparison();
  let checked = 0;
  for (const vector of vectors) {
    const parameters = powParameters(vector.network);
    const layout = layoutOf(parameters.pagesLog2);
    if (!fits(layout, gpu.limits)) continue;
    checked++;
    const seed = datasetSeed(vector.network.id, vector.epoch);
    const cache = await dependencies.buildCache(parameters, seed);
    const dataset = await buildDataset(gpu, parameters, layout, cache);
    try {
      for (const { index, bytes } of vector.items)
        comparison.same(`${placeOf(vector)} dataset item ${index}`, await readItem(gpu, dataset, index), bytes);
      await compareHashes(comparison, gpu, dataset, shape, vector);
    } finally {
      dataset.destroy();
    }
  }
  return checked === 0
    ? { kind: 'absent', why: 'the adapter does not allow bindings of that size' }
    : comparison.verdict();
}

/** Every line needs the same caches. */
function remembering({ open, buildCache }: GpuSelfTestDependencies): GpuSelfTestDependencies {
  const caches = new Map<string, Promise<Uint8Array<ArrayBuffer>>>();
  return {
    open,
    buildCache(parameters, seed) {
      const known = caches.get(toHex(seed)) ?? buildCache(parameters, seed);
      caches.set(toHex(seed), known);
      return known;
    },
  };
}

export function gpuBackends(given: GpuSelfTestDependencies): SelfTestBackend[] {
  const dependencies = remembering(given);
  let opened: Promise<Gpu> | undefined;
  const line = (name: string, variant: Variant, layoutOf: LayoutOf): SelfTestBackend => ({
    name,
    async check(vectors) {
      try {
        opened ??= dependencies.open();
        return await check(await opened, dependencies, vectors, variant, layoutOf);
      } catch (error) {
        if (!(error instanceof GpuError)) throw error;
        const absent = error.code === 'gpu_no_adapter' || error.code === 'gpu_module_missing';
        return absent
          ? { kind: 'absent', why: error.message }
          : { kind: 'different', what: `${error.message} [${error.code}]` };
      }
    },
  });
  return VARIANTS.flatMap((variant) =>
    LAYOUTS.map(({ name, layoutOf }) => line(`webgpu ${variant}, ${name}`, variant, layoutOf)),
  );
}
