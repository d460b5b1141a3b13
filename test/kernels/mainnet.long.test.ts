import { expect, test } from 'vitest';
import { Kernel } from '../../kernels/cpu/kernel.ts';
import { kernelModule } from '../../kernels/cpu/module.ts';
import { prepareEpoch } from '../../kernels/cpu/prepare-epoch.ts';
import { coreCount } from '../../kernels/cpu/thread.ts';
import { fromHex, toHex } from '../../protocol/bytes.ts';
import { level } from '../level.ts';
import { MAINNET, type PowVector, vectorsOf } from '../protocol/pow-vectors.ts';
import { lasts } from '../watch/limits.ts';

async function check(mode: 'full' | 'light', vector: PowVector): Promise<void> {
  const dependencies = { now: () => performance.now(), random: Math.random };
  const { layout, memory } = await prepareEpoch(MAINNET, mode, vector.epoch, 1, coreCount(), dependencies);
  const kernel = new Kernel(await kernelModule(true), memory, layout, 0);
  const bytes = new Uint8Array(memory.buffer);
  for (const { index, bytes: expected } of vector.cache) {
    const at = layout.cache + 64 * index;
    expect(toHex(bytes.slice(at, at + 64))).toBe(expected);
  }
  for (const { index, bytes: expected } of vector.items) {
    expect(toHex(kernel.item(index))).toBe(expected);
    const at = layout.dataset + 64 * index;
    if (mode === 'full') expect(toHex(bytes.slice(at, at + 64))).toBe(expected);
  }
  for (const { header, pow } of vector.hashes) expect(toHex(kernel.hash(fromHex(header)))).toBe(pow);
}

test.each(vectorsOf('mainnet'))('light: mainnet epoch $epoch', (vector) => check('light', vector));

// 2.1 GiB and minutes on two cores.
if (level === 'deep')
  test.each(vectorsOf('mainnet'))('full: mainnet epoch $epoch', lasts(120, 'a dataset of 2 GiB is built'), (vector) =>
    check('full', vector),
  );
