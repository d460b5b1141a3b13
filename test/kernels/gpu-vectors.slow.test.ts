/**
 * Every variant of the search with every cut of the dataset reproduces the vectors and agrees with the reference. All of them
 * at level deep; else the variant that software adapters compile soonest, with most bindings: what reads
 * the pages is the same code in all three, and test/miner/selftest.slow.test.ts has every variant with a tail.
 */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { buildDataset, readItem } from '../../kernels/gpu/dataset.ts';
import type { Gpu } from '../../kernels/gpu/device.ts';
import { evenLayout, type Layout, lopsidedLayout } from '../../kernels/gpu/layout.ts';
import { compileSearch, Searcher, type Shape, VARIANTS, type Variant } from '../../kernels/gpu/search.ts';
import { compareBytes, toHex } from '../../protocol/bytes.ts';
import { buildCache, datasetSeed, powPreHash, powStages } from '../../protocol/crypto/pow.ts';
import { count, level } from '../level.ts';
import { lasts } from '../watch/limits.ts';
import { cache, developmentVectors, EPOCH, openTestGpu, PARAMETERS, smallShape } from './gpu-adapter.ts';

const { pagesLog2, cacheLog2, networkId } = PARAMETERS;
const ALL: readonly Variant[] = level === 'deep' ? VARIANTS : ['stream'];
const MORE: readonly Variant[] = level === 'deep' ? VARIANTS : [];
/** An eighth in the tail, so that every hash reads it. */
const CASES: [string, Layout, readonly Variant[]][] = [
  ['1 binding', evenLayout(pagesLog2, 1), MORE],
  ['2 bindings', evenLayout(pagesLog2, 2), MORE],
  ['4 bindings', evenLayout(pagesLog2, 4), MORE],
  ['8 bindings', evenLayout(pagesLog2, 8), ALL],
  ['a binding and a tail', lopsidedLayout(pagesLog2, 2 ** (pagesLog2 - 3)), MORE],
];
const vectors = developmentVectors().filter(({ epoch }) => epoch === EPOCH || level === 'deep');
const ANY = new Uint8Array(32).fill(255);
/** One hash in eight meets it. */
const TARGET = new Uint8Array([0x1f, ...new Uint8Array(31).fill(255)]);
const NONCES = count({ quick: 48, full: 64, deep: 4096 });

let gpu: Gpu;
beforeAll(async () => {
  gpu = await openTestGpu();
});
afterAll(() => gpu.device.destroy());

const words = (bytes: Uint8Array<ArrayBuffer>): Uint32Array => new Uint32Array(bytes.buffer);
const nonceOf = (header: Uint8Array<ArrayBuffer>): bigint => new DataView(header.buffer).getBigUint64(304, true);

/** Hits of the reference among NONCES nonces from `first` on, as nonce and hash. */
function referenceHits(header: Uint8Array<ArrayBuffer>, first: bigint): string[] {
  const hits: string[] = [];
  for (let n = 0n; n < NONCES; n++) {
    const tried = new Uint8Array(header);
    new DataView(tried.buffer).setBigUint64(304, BigInt.asUintN(64, first + n), true);
    const { pow } = powStages(PARAMETERS, cache, tried);
    if (compareBytes(pow, TARGET) <= 0) hits.push(`${BigInt.asUintN(64, first + n)} ${toHex(pow)}`);
  }
  return hits;
}

// Across the carry from the low to the high half of the nonce.
const FIRST = 0x1_ffff_ffffn - 40n;
const header = new Uint8Array(312).map((_, i) => (i * 7) & 255);
const expected = referenceHits(header, FIRST);

/** At level deep also more than one hash in flight, and a number that does not divide the lanes. */
function shapes(variant: Variant): Shape[] {
  const small = smallShape(gpu, variant);
  if (level !== 'deep') return [small];
  return [small, { ...small, flight: 2 }, ...(variant === 'stream' ? [{ ...small, flight: 3 }] : [])];
}

test.each(CASES.filter(([, , variants]) => variants.length > 0))(
  'with %s',
  lasts(120, 'a GPU that the processor stands in for is slow'),
  async (_, layout, variants) => {
    const searchers: Searcher[] = [];
    for (const shape of variants.flatMap(shapes))
      searchers.push(new Searcher(gpu, await compileSearch(gpu, shape, layout)));
    for (const vector of vectors) {
      const vectorCache = vector.epoch === EPOCH ? cache : buildCache(datasetSeed(networkId, vector.epoch), cacheLog2);
      const dataset = await buildDataset(gpu, PARAMETERS, layout, vectorCache);
      for (const { index, bytes } of vector.items) expect(await readItem(gpu, dataset, index)).toEqual(bytes);
      for (const searcher of searchers) {
        for (const hash of vector.hashes) {
          const run = { prefix: words(powPreHash(hash.header)), nonce: nonceOf(hash.header), count: 1, target: ANY };
          const outcome = await searcher.finish(searcher.submit(dataset, run));
          expect(outcome.hits).toEqual([{ nonce: run.nonce, hash: hash.pow }]);
        }
        if (vector.epoch === EPOCH) {
          const run = { prefix: words(powPreHash(header)), nonce: FIRST, count: NONCES, target: TARGET };
          const outcome = await searcher.finish(searcher.submit(dataset, run));
          const found = outcome.hits.map(({ nonce, hash }) => `${nonce} ${toHex(hash)}`);
          expect(found.sort()).toEqual(expected.toSorted());
          expect(outcome.found).toBe(expected.length);
        }
      }
      dataset.destroy();
    }
    for (const searcher of searchers) searcher.destroy();
  },
);
