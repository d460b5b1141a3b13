import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createMemory, Kernel } from '../../kernels/cpu/kernel.ts';
import { layoutOf } from '../../kernels/cpu/layout.ts';
import { kernelModule } from '../../kernels/cpu/module.ts';
import { bigintFromBytesBE, bigintToBytesBE, concat, fromHex, toHex } from '../../protocol/bytes.ts';
import { datasetSeed, powParameters, powPreHash } from '../../protocol/crypto/pow.ts';
import { NETWORKS, type Network } from '../../protocol/network.ts';
import { count, seed } from '../level.ts';
import { vectorsOf } from '../protocol/pow-vectors.ts';
import { noiseHeader, referenceHasher, TINY } from './tiny-network.ts';

async function kernelOf(network: Network, epoch: number, mode: 'full' | 'light', shared: boolean): Promise<Kernel> {
  const layout = layoutOf(powParameters(network), mode, 1);
  const kernel = new Kernel(await kernelModule(shared), createMemory(layout, shared), layout, 0);
  const seedOfEpoch = datasetSeed(network.id, epoch);
  // In uneven slices: where they are cut must not matter.
  for (let at = 0; at < kernel.cacheSteps; ) {
    const to = Math.min(kernel.cacheSteps, at + 3_001);
    kernel.buildCache(seedOfEpoch, at, to);
    at = to;
  }
  kernel.buildItems(0, layout.items);
  return kernel;
}

const FORMS = [
  ['full', true],
  ['full', false],
  ['light', true],
  ['light', false],
] as const;

for (const [mode, shared] of FORMS)
  test.each(vectorsOf('development'))(`${mode}, shared ${shared}: development epoch $epoch`, async (vector) => {
    const kernel = await kernelOf(NETWORKS.development, vector.epoch, mode, shared);
    const memory = new Uint8Array(kernel.memory.buffer);
    for (const { index, bytes } of vector.cache) {
      const at = kernel.layout.cache + 64 * index;
      expect(toHex(memory.slice(at, at + 64))).toBe(bytes);
    }
    for (const { index, bytes } of vector.items) {
      expect(toHex(kernel.item(index))).toBe(bytes);
      const at = kernel.layout.dataset + 64 * index;
      if (mode === 'full') expect(toHex(memory.slice(at, at + 64))).toBe(bytes);
    }
    for (const hash of vector.hashes) {
      expect(toHex(kernel.preHash(fromHex(hash.header)))).toBe(hash.pre_hash);
      expect(toHex(kernel.hash(fromHex(hash.header)))).toBe(hash.pow);
    }
  });

test.each(['full', 'light'] as const)('%s: a batch of any size gives what each header alone gives', async (mode) => {
  const kernel = await kernelOf(TINY, 2, mode, true);
  const reference = referenceHasher(TINY, 2);
  const headers = Array.from({ length: 300 }, (_, i) => noiseHeader(i));
  const expected = headers.map((header) => toHex(reference(header)));
  for (const size of [1, 2, 3, 4, 5, 15, 16, 17, 127, 128, 129, 300]) {
    const hashes = kernel.hash(concat(...headers.slice(0, size)));
    for (let i = 0; i < size; i++) expect(toHex(hashes.slice(32 * i, 32 * i + 32))).toBe(expected[i]);
  }
  expect(() => kernel.hash(new Uint8Array(313))).toThrow(/312 bytes/);
});

test.each(['full', 'light'] as const)('%s: a search finds exactly what the reference finds', async (mode) => {
  const kernel = await kernelOf(TINY, 1, mode, true);
  const reference = referenceHasher(TINY, 1);
  const range = fc.record({
    number: fc.integer({ min: 0, max: 1_000 }),
    from: fc.bigInt({ min: 0n, max: (1n << 64n) - 200n }),
    length: fc.integer({ min: 1, max: 100 }),
    // The rank of the hash that is the target: it is a hit itself, so the comparison must be 'at or below'.
    rank: fc.nat(),
  });
  fc.assert(
    fc.property(range, ({ number, from, length, rank }) => {
      const header = noiseHeader(number);
      const nonces = Array.from({ length }, (_, i) => {
        const nonce = bigintToBytesBE(from + BigInt(i), 8).reverse();
        header.set(nonce, 304);
        return { nonce: toHex(nonce), hash: toHex(reference(header)) };
      });
      const sorted = nonces.map(({ hash }) => hash).sort();
      const target = sorted[rank % length] as string;
      const found = kernel.search(powPreHash(header), fromHex(target), from, length);
      const hits = found?.map(({ nonce, hash }) => ({ nonce: toHex(nonce), hash: toHex(hash) }));
      expect(hits).toEqual(nonces.filter(({ hash }) => hash <= target));
    }),
    { seed, numRuns: count({ quick: 20, full: 60, deep: 2_000 }) },
  );
});

test('more hits than there is room for are reported, not dropped', async () => {
  const kernel = await kernelOf(TINY, 0, 'full', true);
  const everything = new Uint8Array(32).fill(0xff);
  expect(kernel.search(new Uint8Array(32), everything, 0n, 2_000)).toBeUndefined();
  const found = kernel.search(new Uint8Array(32), everything, 0n, 1_024);
  expect(found?.map(({ nonce }) => Number(bigintFromBytesBE(nonce.reverse())))).toEqual([...Array(1_024).keys()]);
});
