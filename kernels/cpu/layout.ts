/**
 * The layout of one WebAssembly memory: a page for the module itself, a scratch per thread, the cache, and in full mode
 * the dataset. Must agree with kernels/cpu/assembly/scratch.ts. One memory holds one epoch: two mainnet datasets do not
 * fit the 4 GiB a memory may have.
 */
import type { PowParameters } from '../../protocol/crypto/pow.ts';
import type { VerifierMode } from '../verifier-types.ts';

export const WASM_PAGE = 65_536;
export const SCRATCH_BYTES = 65_536;
/** Indices of the items to compute, u32 each. */
export const INDEX_OFFSET = 128;
/** From here on a scratch belongs to the caller: headers, job, results. */
export const IO_OFFSET = 17_408;

export type Layout = {
  readonly parameters: PowParameters;
  readonly mode: VerifierMode;
  readonly slots: number;
  readonly cache: number;
  readonly cacheItems: number;
  readonly dataset: number;
  /** 64-byte items of the dataset; 0 in light mode. */
  readonly items: number;
  readonly datasetBytes: number;
  readonly bytes: number;
};

export const scratchAt = (slot: number): number => WASM_PAGE + slot * SCRATCH_BYTES;

export function layoutOf(parameters: PowParameters, mode: VerifierMode, slots: number): Layout {
  const cacheItems = 2 ** parameters.cacheLog2;
  const items = mode === 'full' ? 2 ** (parameters.pagesLog2 + 1) : 0;
  const cache = scratchAt(slots);
  const dataset = cache + 64 * cacheItems;
  const bytes = Math.ceil((dataset + 64 * items) / WASM_PAGE) * WASM_PAGE;
  return { parameters, mode, slots, cache, cacheItems, dataset, items, datasetBytes: 64 * items, bytes };
}
