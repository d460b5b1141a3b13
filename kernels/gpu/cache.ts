/**
 * The cache of an epoch, from which a card builds its dataset: one long chain, so the processor makes it, by the WebAssembly
 * kernel and in slices, because that happens in the thread that also feeds the card. Loads in browsers.
 */
import type { Bytes } from '../../protocol/bytes.ts';
import type { PowParameters } from '../../protocol/crypto/pow.ts';
import { createMemory, Kernel } from '../cpu/kernel.ts';
import { layoutOf } from '../cpu/layout.ts';
import { kernelModule } from '../cpu/module.ts';

/** Steps of about 20 ms together: less than a dispatch. */
const SLICE = 2 ** 15;

const breathe = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 0));

export async function cacheFromSeed(parameters: PowParameters, seed: Bytes): Promise<Uint8Array<ArrayBuffer>> {
  const layout = layoutOf(parameters, 'light', 1);
  const kernel = new Kernel(await kernelModule(false), createMemory(layout, false), layout, 0);
  for (let from = 0; from < kernel.cacheSteps; from += SLICE) {
    kernel.buildCache(seed, from, Math.min(kernel.cacheSteps, from + SLICE));
    await breathe();
  }
  return new Uint8Array(kernel.memory.buffer as ArrayBuffer, layout.cache, 64 * layout.cacheItems).slice();
}
