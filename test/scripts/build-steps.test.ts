import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { bringBuilds } from '../../scripts/ready/build-steps.mjs';
import { temporaryDirectory } from '../temporary.ts';

test('a step runs when an input, its command or a missing output asks for it, and not otherwise', async () => {
  const root = temporaryDirectory();
  mkdirSync(join(root, 'src/deep'), { recursive: true });
  writeFileSync(join(root, 'src/deep/a'), '1');
  const step = { name: 'x', inputs: ['src'], outputs: ['out'], command: ['make.mjs'] };
  let runs = 0;
  const bring = async (steps = [step]) => {
    const before = runs;
    const run = async () => {
      runs++;
      writeFileSync(join(root, 'out'), '');
      return 0;
    };
    await bringBuilds(root, run, steps, () => undefined);
    return runs - before;
  };
  expect(await bring()).toBe(1);
  expect(await bring()).toBe(0);
  writeFileSync(join(root, 'src/deep/a'), '2');
  expect(await bring()).toBe(1);
  writeFileSync(join(root, 'src/deep/b'), '');
  expect(await bring()).toBe(1);
  rmSync(join(root, 'out'));
  expect(await bring()).toBe(1);
  expect(await bring([{ ...step, command: ['other.mjs'] }])).toBe(1);
  await expect(
    bringBuilds(
      root,
      async () => 1,
      [step],
      () => undefined,
    ),
  ).rejects.toThrow('building x failed');
});
