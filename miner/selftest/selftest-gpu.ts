/**
 * The self-test of the graphics kernels: every variant of the search with every number of dataset bindings that the adapter
 * allows must reproduce the vectors. One line each, so that a difference names what not to use.
 */
import { buildDataset, type GpuDataset, readItem } from '../../kernels/gpu/dataset.ts';
import type { Gpu } from '../../kernels/gpu/device.ts';
import { GpuError } from '../../kernels/gpu/gpu-error.ts';
import { evenLayout, fits, type Layout, lopsidedLayout, SHARD_COUNTS } from '../../kernels/gpu/layout.ts';
import {
  compileSearch,
  Searcher,
  type Shape,
  shapeIsPossible,
  VARIANTS,
  type Variant,
} from '../../kernels/gpu/search.ts';
import { candidatesFor } from '../../kernels/gpu/tune.ts';
import { datasetSeed, type PowParameters, powNonce, powParameters, powPreHash } from '../../protocol/crypto/pow.ts';
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

/** Beyond this a software adapter would need hours for its lines. */
const SOFTWARE_PAGES_LOG2 = 20;

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

/** All variants on one layout: the dataset is built once for them, which a software adapter takes seconds for. */
async function checkLayout(
  gpu: Gpu,
  { buildCache }: GpuSelfTestDependencies,
  vectors: readonly PowVector[],
  layoutOf: LayoutOf,
): Promise<Map<Variant, Verdict>> {
  const comparisons = new Map(VARIANTS.map((variant) => [variant, new Comparison()]));
  const checked = new Set<string>();
  for (const vector of vectors) {
    const parameters = powParameters(vector.network);
    if (gpu.software && parameters.pagesLog2 > SOFTWARE_PAGES_LOG2) continue;
    const layout = layoutOf(parameters.pagesLog2);
    if (!fits(layout, gpu.limits)) continue;
    checked.add(vector.network.name);
    const cache = await buildCache(parameters, datasetSeed(vector.network.id, vector.epoch));
    const dataset = await buildDataset(gpu, parameters, layout, cache);
    try {
      for (const [variant, comparison] of comparisons) {
        for (const { index, bytes } of vector.items)
          comparison.same(`${placeOf(vector)} dataset item ${index}`, await readItem(gpu, dataset, index), bytes);
        const shape = shapeFor(gpu, variant);
        if (shape !== undefined) await compareHashes(comparison, gpu, dataset, shape, vector);
      }
    } finally {
      dataset.destroy();
    }
  }
  const verdictOf = (variant: Variant, comparison: Comparison): Verdict => {
    if (shapeFor(gpu, variant) === undefined) return { kind: 'absent', why: `${gpu.name} cannot run this variant` };
    if (checked.size === 0) return { kind: 'absent', why: `${gpu.name} does not allow bindings of that size` };
    const verdict = comparison.verdict();
    return gpu.software && verdict.kind === 'same'
      ? { ...verdict, remark: `${[...checked].join(', ')} only, by ${gpu.name}: no card` }
      : verdict;
  };
  return new Map([...comparisons].map(([variant, comparison]) => [variant, verdictOf(variant, comparison)]));
}

export function gpuBackends(dependencies: GpuSelfTestDependencies): SelfTestBackend[] {
  let opened: Promise<Gpu> | undefined;
  return LAYOUTS.flatMap(({ name, layoutOf }) => {
    const verdicts = new Map<string, Promise<Map<Variant, Verdict>>>();
    const check = async (vectors: readonly PowVector[], variant: Variant): Promise<Verdict> => {
      try {
        opened ??= dependencies.open();
        const gpu = await opened;
        const which = vectors.map(placeOf).join(', ');
        const known = verdicts.get(which) ?? checkLayout(gpu, dependencies, vectors, layoutOf);
        verdicts.set(which, known);
        return (await known).get(variant) as Verdict;
      } catch (error) {
        if (!(error instanceof GpuError)) throw error;
        const isAbsent = error.code === 'gpu_no_adapter' || error.code === 'gpu_module_missing';
        return isAbsent
          ? { kind: 'absent', why: error.message }
          : { kind: 'different', what: `${error.message} [${error.code}]` };
      }
    };
    return VARIANTS.map((variant) => ({
      name: `webgpu ${variant}, ${name}`,
      check: (vectors) => check(vectors, variant),
    }));
  });
}
