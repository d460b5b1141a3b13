/** Checks one entry of vectors/pow.json against the reference, stage by stage. */
import { expect } from 'vitest';
import { fromHex, toHex } from '../../protocol/bytes.ts';
import { buildCache, datasetItem, datasetSeed, type PowParameters, powStages } from '../../protocol/crypto/pow.ts';
import type { PowVector } from './pow-vectors.ts';

export function checkReference(parameters: PowParameters, vector: PowVector, build = buildCache): void {
  expect(vector.network_id).toBe(parameters.networkId);
  const seed = datasetSeed(vector.network_id, vector.epoch);
  expect(toHex(seed)).toBe(vector.dataset_seed);
  const cache = build(seed, parameters.cacheLog2);
  for (const { index, bytes } of vector.cache) expect(toHex(cache.subarray(64 * index, 64 * index + 64))).toBe(bytes);
  for (const { index, bytes } of vector.items)
    expect(toHex(datasetItem(cache, parameters.cacheLog2, index))).toBe(bytes);
  for (const hash of vector.hashes) {
    const stages = powStages(parameters, cache, fromHex(hash.header));
    expect(toHex(stages.preHash)).toBe(hash.pre_hash);
    expect(toHex(stages.seed)).toBe(hash.seed);
    expect(toHex(stages.mix)).toBe(hash.mix);
    expect(toHex(stages.pow)).toBe(hash.pow);
  }
}
