/** What a line of the self-test says is said of every vector: none counts that was not compared, and one that cannot be compared hides no other. */
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import type { Gpu } from '../../kernels/gpu/device.ts';
import { GpuError } from '../../kernels/gpu/gpu-error.ts';
import { type PowVector, readPowVectors } from '../../miner/selftest/pow-vectors.ts';
import { type SelfTestBackend, selfTest, type Verdict } from '../../miner/selftest/selftest.ts';
import { gpuBackends } from '../../miner/selftest/selftest-gpu.ts';
import { toHex } from '../../protocol/bytes.ts';

const VECTORS = readPowVectors(readFileSync(new URL('../../vectors/pow.json', import.meta.url), 'utf8'));
const [large, , first, second] = VECTORS as [PowVector, PowVector, PowVector, PowVector];

/** A card that allows everything; it is told apart by what it is asked to build. */
const CARD = {
  name: 'a card',
  software: false,
  subgroupSize: 32,
  limits: { maxStorageBufferBindingSize: 2 ** 32, maxBufferSize: 2 ** 32, maxStorageBuffersPerShaderStage: 16 },
} as Gpu;

async function linesOf(backends: readonly SelfTestBackend[], vectors: readonly PowVector[]): Promise<string[]> {
  const lines: string[] = [];
  await selfTest(backends, vectors, (line) => lines.push(line));
  return lines;
}

test('a card is asked for each vector, once for all variants of a layout', async () => {
  const built: string[] = [];
  const backends = gpuBackends({
    open: async () => CARD,
    buildCache: async (_parameters, seed) => {
      built.push(toHex(seed));
      throw new GpuError('gpu_memory', `cache of ${toHex(seed)}`);
    },
  });
  const names = ['1 binding', '2 bindings', '4 bindings', '8 bindings', 'a binding and a tail'];
  expect(backends.map(({ name }) => name)).toEqual(
    names.flatMap((name) => ['stream', 'shuffle', 'workgroup'].map((variant) => `webgpu ${variant}, ${name}`)),
  );
  const seeds = [first, second].map(({ datasetSeed }) => toHex(datasetSeed));
  for (const backend of backends.slice(0, 3))
    for (const [i, vector] of [first, second].entries())
      expect(await backend.check([vector])).toEqual({
        kind: 'different',
        what: `cache of ${seeds[i]} [gpu_memory]`,
      });
  expect(built).toEqual(seeds);
});

test('a vector that cannot be compared here is named, and the others are compared', async () => {
  const backend = (verdicts: Map<PowVector, Verdict>): SelfTestBackend => ({
    name: 'some',
    check: async ([vector]) => verdicts.get(vector as PowVector) as Verdict,
  });
  const absent: Verdict = { kind: 'absent', why: 'too large' };
  const same: Verdict = { kind: 'same', values: 6 };
  const told = (...verdicts: Verdict[]) => {
    const vectors = [large, first, second].slice(0, verdicts.length);
    return linesOf([backend(new Map(vectors.map((vector, i) => [vector, verdicts[i] as Verdict])))], vectors);
  };
  expect(await told(absent, same, same)).toEqual(['some: 12 values are the same (not mainnet epoch 0: too large)']);
  expect(await told(absent, same, { kind: 'different', what: 'x' })).toEqual([
    'some: DIFFERENT: x [self_test_difference]',
  ]);
  expect(await told(absent, absent)).toEqual(['some: not present (too large)']);
  expect(await told(same, { ...same, remark: 'no card' })).toEqual(['some: 12 values are the same (no card)']);
});
