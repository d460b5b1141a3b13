/** `svc-miner self-test` as a user runs it: every backend, on a card or on the software adapter that Chromium brings. */
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { count } from '../level.ts';
import { temporaryDirectory } from '../temporary.ts';
import { lasts } from '../watch/limits.ts';

const main = new URL('../../miner/main.ts', import.meta.url).pathname;
const vectors = new URL('../../vectors/pow.json', import.meta.url);

test(
  'every backend reproduces the vectors, with one line for each',
  lasts(900, 'a GPU that the processor stands in for is slow'),
  () => {
    const entries = JSON.parse(readFileSync(vectors, 'utf8')) as { network: string }[];
    const epochs = count({ full: 1, deep: 2 });
    const file = join(temporaryDirectory(), 'pow.json');
    writeFileSync(file, JSON.stringify(entries.filter(({ network }) => network === 'development').slice(0, epochs)));
    const { status, stdout, stderr } = spawnSync(process.execPath, [main, 'self-test', '--vectors', file], {
      encoding: 'utf8',
    });
    // A Vulkan loader writes its own complaints to standard error; they are no difference.
    expect(status, `${stdout}${stderr}`).toBe(0);
    expect(stdout).toContain(`reference: ${16 * epochs} values are the same\n`);
    expect(stdout).toContain(`wasm full: ${11 * epochs} values are the same\n`);
    expect(stdout).toContain(`wasm light: ${11 * epochs} values are the same\n`);
    for (const variant of ['stream', 'shuffle', 'workgroup'])
      for (const layout of ['1 binding', '2 bindings', '4 bindings', '8 bindings', 'a binding and a tail'])
        expect(stdout).toContain(`webgpu ${variant}, ${layout}: ${6 * epochs} values are the same`);
  },
);
