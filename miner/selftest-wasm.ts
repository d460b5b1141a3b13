/**
 * The self-test of the WebAssembly kernel, through the verifier: hashes from the cache on every network, and from the
 * whole dataset where that is small (building mainnet's takes minutes; there the dataset's own check has to do).
 */
import { KernelError } from '../kernels/kernel-error.ts';
import { createVerifier, type VerifierMode } from '../kernels/verifier.ts';
import type { PowVector } from './pow-vectors.ts';
import { Comparison, placeOf, type SelfTestBackend } from './selftest.ts';

/** log2 of the pages up to which a dataset is built for the test: 32 MiB. */
const SMALL_PAGES_LOG2 = 18;

export const wasmBackend: SelfTestBackend = {
  name: 'wasm',
  async check(vectors) {
    const comparison = new Comparison();
    try {
      for (const vector of vectors) {
        const modes: VerifierMode[] = vector.network.pow.pagesLog2 <= SMALL_PAGES_LOG2 ? ['light', 'full'] : ['light'];
        for (const mode of modes) await compare(comparison, vector, mode);
      }
    } catch (error) {
      if (error instanceof KernelError && error.code === 'kernel_module_missing')
        return { kind: 'absent', why: error.message };
      throw error;
    }
    return comparison.verdict();
  },
};

async function compare(comparison: Comparison, vector: PowVector, mode: VerifierMode): Promise<void> {
  const verifier = createVerifier({ network: vector.network, mode, threads: 1 });
  try {
    await verifier.prepare(vector.epoch);
    const headers = vector.hashes.map(({ header }) => header);
    const hashes = await verifier.hashMany(vector.epoch, headers);
    for (const [i, hash] of hashes.entries())
      comparison.same(`${placeOf(vector)} hash ${i} pow (${mode})`, hash, vector.hashes[i]!.pow);
  } finally {
    await verifier.close();
  }
}
