/**
 * Hashes of the development network for clients in tests, with the CPU kernel: the reference takes some hundred times as long. That
 * the two agree is the business of test/kernels; the first hashes of every process, and some later ones, are compared here too.
 */
import { readFileSync } from 'node:fs';
import { createMemory, Kernel } from '../kernels/cpu/kernel.ts';
import { layoutOf } from '../kernels/cpu/layout.ts';
import { type Bytes, equalBytes } from '../protocol/bytes.ts';
import { datasetSeed, powParameters, powStages } from '../protocol/crypto/pow.ts';
import { NETWORKS } from '../protocol/network.ts';
import { developmentCache } from '../vectors/generate/development-cache.ts';

const NETWORK = NETWORKS.development;
const PARAMETERS = powParameters(NETWORK);
const ALWAYS_COMPARED = 4;
const COMPARED_EVERY = 512;

export const referenceHash = (epoch: number, header: Bytes): Uint8Array<ArrayBuffer> =>
  powStages(PARAMETERS, developmentCache(epoch), header).pow;

let module: WebAssembly.Module | undefined;
const kernels = new Map<number, Kernel>();

function kernelOf(epoch: number): Kernel {
  let kernel = kernels.get(epoch);
  if (kernel === undefined) {
    module ??= new WebAssembly.Module(readFileSync(new URL('../build/kernels/pow-single.wasm', import.meta.url)));
    const layout = layoutOf(PARAMETERS, 'light', 1);
    kernel = new Kernel(module, createMemory(layout, false), layout, 0);
    kernel.buildCache(datasetSeed(NETWORK.id, epoch), 0, kernel.cacheSteps);
    kernels.set(epoch, kernel);
  }
  return kernel;
}

let hashes = 0;

export function powHash(epoch: number, header: Bytes): Uint8Array<ArrayBuffer> {
  const hash = kernelOf(epoch).hash(header);
  if (hashes < ALWAYS_COMPARED || hashes % COMPARED_EVERY === 0)
    if (!equalBytes(hash, referenceHash(epoch, header))) throw new Error('kernel and reference disagree on a hash');
  hashes++;
  return hash;
}
