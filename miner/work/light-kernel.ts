/**
 * The CPU kernel in light mode, in the thread that asks: the cache of an epoch for a graphics card to build its dataset
 * from, and single hashes where there are no verification threads (a page). Builds in slices, so that the thread's other
 * work goes on. Loads in browsers.
 */
import { createMemory, Kernel } from '../../kernels/cpu/kernel.ts';
import { type Layout, layoutOf } from '../../kernels/cpu/layout.ts';
import { kernelModule } from '../../kernels/cpu/module.ts';
import type { Bytes } from '../../protocol/bytes.ts';
import { datasetSeed, type PowParameters } from '../../protocol/pow.ts';
import type { HitChecker } from './crew.ts';

/** About 20 ms of work. */
const SLICE = 1 << 15;

const breathe = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 0));

async function buildLight(layout: Layout, seed: Bytes): Promise<Kernel> {
  const kernel = new Kernel(await kernelModule(false), createMemory(layout, false), layout, 0);
  for (let from = 0; from < kernel.cacheSteps; from += SLICE) {
    kernel.buildCache(seed, from, Math.min(kernel.cacheSteps, from + SLICE));
    await breathe();
  }
  return kernel;
}

/** The cache as a GpuBackend asks for it. */
export async function cacheFromSeed(parameters: PowParameters, seed: Bytes): Promise<Uint8Array<ArrayBuffer>> {
  const layout = layoutOf(parameters, 'light', 1);
  const { memory } = await buildLight(layout, seed);
  return new Uint8Array(memory.buffer as ArrayBuffer, layout.cache, 64 * layout.cacheItems).slice();
}

/** Recomputes hits in this thread. Keeps two epochs, like everything else. */
export class LightChecker implements HitChecker {
  readonly #parameters: PowParameters;
  readonly #kernels = new Map<number, Kernel>();
  readonly #building = new Map<number, Promise<void>>();

  constructor(parameters: PowParameters) {
    this.#parameters = parameters;
  }

  get epochs(): readonly number[] {
    return [...this.#kernels.keys()];
  }

  prepare(epoch: number): Promise<void> {
    if (this.#kernels.has(epoch)) return Promise.resolve();
    let building = this.#building.get(epoch);
    if (building === undefined) {
      building = this.#build(epoch).finally(() => this.#building.delete(epoch));
      this.#building.set(epoch, building);
    }
    return building;
  }

  async #build(epoch: number): Promise<void> {
    const seed = datasetSeed(this.#parameters.networkId, epoch);
    const kernel = await buildLight(layoutOf(this.#parameters, 'light', 1), seed);
    const [oldest] = this.#kernels.keys();
    if (this.#kernels.size >= 2 && oldest !== undefined) this.#kernels.delete(oldest);
    this.#kernels.set(epoch, kernel);
  }

  async hash(epoch: number, header: Bytes): Promise<Bytes> {
    const kernel = this.#kernels.get(epoch);
    if (kernel === undefined) throw new Error(`epoch ${epoch} is not prepared`);
    return kernel.hash(header);
  }
}
