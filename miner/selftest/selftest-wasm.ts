/**
 * The CPU kernel in the self-test: on a whole dataset, built as for mining, and from the cache alone. Mainnet's dataset
 * takes 2.1 GiB of memory and about a minute; where it does not fit, the line says so.
 */
import { Kernel } from '../../kernels/cpu/kernel.ts';
import { kernelModule } from '../../kernels/cpu/module.ts';
import { type PreparedEpoch, prepareEpoch } from '../../kernels/cpu/prepare-epoch.ts';
import { coreCount } from '../../kernels/cpu/thread.ts';
import { KernelError } from '../../kernels/kernel-error.ts';
import type { VerifierMode } from '../../kernels/verifier.ts';
import { powParameters } from '../../protocol/crypto/pow.ts';
import { monotonicMillis } from '../../runtime/clock/clock.ts';
import type { PowVector } from './pow-vectors.ts';
import { Comparison, placeOf, type SelfTestBackend } from './selftest.ts';

export const wasmBackends: readonly SelfTestBackend[] = [wasmBackend('full'), wasmBackend('light')];

function wasmBackend(mode: VerifierMode): SelfTestBackend {
  return {
    name: `wasm ${mode}`,
    async check(vectors) {
      const comparison = new Comparison();
      try {
        for (const vector of vectors) if (!checkKernel(comparison, vector, await prepare(vector, mode))) break;
      } catch (error) {
        if (!(error instanceof KernelError)) throw error;
        return { kind: 'absent', why: `${error.message} [${error.code}]` };
      }
      return comparison.verdict();
    },
  };
}

async function prepare(vector: PowVector, mode: VerifierMode): Promise<Kernel> {
  const prepared: PreparedEpoch = await prepareEpoch(
    powParameters(vector.network),
    mode,
    vector.epoch,
    1,
    coreCount(),
    {
      now: monotonicMillis,
      random: Math.random,
      availableMemory: () => process.availableMemory(),
    },
  );
  return new Kernel(await kernelModule(true), prepared.memory, prepared.layout, 0);
}

function checkKernel(comparison: Comparison, vector: PowVector, kernel: Kernel): boolean {
  const place = placeOf(vector);
  const memory = new Uint8Array(kernel.memory.buffer);
  const { cache, dataset, mode } = kernel.layout;
  const at = (from: number, index: number) => memory.slice(from + 64 * index, from + 64 * index + 64);
  return (
    vector.cache.every(({ index, bytes }) =>
      comparison.same(`${place} cache item ${index}`, at(cache, index), bytes),
    ) &&
    vector.items.every(({ index, bytes }) => {
      const item = mode === 'full' ? at(dataset, index) : kernel.item(index);
      return comparison.same(`${place} dataset item ${index}`, item, bytes);
    }) &&
    vector.hashes.every(({ header, preHash, pow }, i) => {
      const what = `${place} hash ${i}`;
      return (
        comparison.same(`${what} pre_hash`, kernel.preHash(header), preHash) &&
        comparison.same(`${what} pow`, kernel.hash(header), pow)
      );
    })
  );
}
