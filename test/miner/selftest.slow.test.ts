/**
 * The self-test on a card, or on the software adapter that Chromium brings: every backend reproduces the vectors. Of the graphics kernels every variant with one
 * layout; at level deep `svc-miner self-test` as a user runs it, with every layout (test/kernels/gpu-vectors.slow.test.ts has those, and selftest.long.test.ts the program).
 */
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { cacheFromSeed } from '../../kernels/gpu/cache.ts';
import { readPowVectors } from '../../miner/selftest/pow-vectors.ts';
import { referenceBackend, selfTest } from '../../miner/selftest/selftest.ts';
import { openSelfTestGpu } from '../../miner/selftest/selftest-adapter.ts';
import { gpuBackends } from '../../miner/selftest/selftest-gpu.ts';
import { wasmBackends } from '../../miner/selftest/selftest-wasm.ts';
import { level } from '../level.ts';
import { temporaryDirectory } from '../temporary.ts';
import { lasts } from '../watch/limits.ts';

const main = new URL('../../miner/main.ts', import.meta.url).pathname;
const file = new URL('../../vectors/pow.json', import.meta.url);
const SLOW = lasts(120, 'a GPU that the processor stands in for is slow');
const VARIANTS = ['stream', 'shuffle', 'workgroup'];
const TAIL = 'a binding and a tail';

test('every backend reproduces the vectors, every variant of the graphics kernels too', SLOW, async () => {
  const vectors = readPowVectors(readFileSync(file, 'utf8')).filter(({ network }) => network.name === 'development');
  const cards = gpuBackends({ open: openSelfTestGpu, buildCache: cacheFromSeed });
  const backends = [referenceBackend, ...wasmBackends, ...cards.filter(({ name }) => name.endsWith(TAIL))];
  const lines: string[] = [];
  expect(await selfTest(backends, vectors.slice(0, 1), (line) => lines.push(line))).toBe(true);
  const shown = lines.map((line) => line.replace(/ \(.*/, ''));
  expect(shown).toEqual([
    'reference: 16 values are the same',
    'wasm full: 11 values are the same',
    'wasm light: 11 values are the same',
    ...VARIANTS.map((variant) => `webgpu ${variant}, ${TAIL}: 6 values are the same`),
  ]);
});

if (level === 'deep')
  test('the program says so of every layout, with one line for each', SLOW, () => {
    const entries = JSON.parse(readFileSync(file, 'utf8')) as { network: string }[];
    const chosen = join(temporaryDirectory(), 'pow.json');
    writeFileSync(chosen, JSON.stringify(entries.filter(({ network }) => network === 'development')));
    const { status, stdout, stderr } = spawnSync(process.execPath, [main, 'self-test', '--vectors', chosen], {
      encoding: 'utf8',
    });
    // A Vulkan loader writes its own complaints to standard error; they are no difference.
    expect(status, `${stdout}${stderr}`).toBe(0);
    for (const [name, values] of [
      ['reference', 32],
      ['wasm full', 22],
      ['wasm light', 22],
    ] as const)
      expect(stdout).toContain(`${name}: ${values} values are the same\n`);
    for (const variant of VARIANTS)
      for (const layout of ['1 binding', '2 bindings', '4 bindings', '8 bindings', TAIL])
        expect(stdout).toContain(`webgpu ${variant}, ${layout}: 12 values are the same`);
  });
