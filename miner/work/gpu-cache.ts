/**
 * The cache of an epoch, from which a graphics card builds its dataset: a chain by nature, so the processor makes it. In
 * slices, because it runs in the thread that also feeds the card. Loads in browsers.
 */
import { createMemory, Kernel } from '../../kernels/cpu/kernel.ts';
import { layoutOf } from '../../kernels/cpu/layout.ts';
import { kernelModule } from '../../kernels/cpu/module.ts';
import type { Bytes } from '../../protocol/bytes.ts';
import type { PowParameters } from '../../protocol/pow.ts';

/** About 20 ms of work: less than what a card has in flight. */
const SLICE = 1 << 15;

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
