import { test } from 'vitest';
import { createMemory, Kernel } from '../../kernels/cpu/kernel.ts';
import { layoutOf } from '../../kernels/cpu/layout.ts';
import { kernelModule } from '../../kernels/cpu/module.ts';
import type { Bytes } from '../../protocol/bytes.ts';
import { buildCache } from '../../protocol/crypto/pow.ts';
import { count, level } from '../level.ts';
import { checkReference } from './pow-reference.ts';
import { MAINNET, vectorsOf } from './pow-vectors.ts';

/** The cache as the kernel builds it. */
async function kernelCache(): Promise<typeof buildCache> {
  const layout = layoutOf(MAINNET, 'light', 1);
  const kernel = new Kernel(await kernelModule(false), createMemory(layout, false), layout, 0);
  return (seed: Bytes) => {
    kernel.buildCache(seed, 0, kernel.cacheSteps);
    return new Uint8Array(kernel.memory.buffer, layout.cache, 64 * layout.cacheItems);
  };
}

/**
 * The cache of mainnet is 4 million dependent hashes: half a minute of plain TypeScript, which the deep level takes. Otherwise the
 * kernel builds it, the vectors say that it is right, and the reference makes items and hashes of it; test/protocol/pow.test.ts has
 * the reference build smaller caches.
 */
test.each(vectorsOf('mainnet').slice(0, count({ full: 1, deep: 2 })))(
  'the reference reproduces mainnet epoch $epoch',
  async (vector) => checkReference(MAINNET, vector, level === 'deep' ? buildCache : await kernelCache()),
);
