import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { boundCompileCaches, COMPILE_CACHES } from '../../scripts/ready/compile-cache.mjs';
import { temporaryDirectory } from '../temporary.ts';

test('a cache of compiled code that has grown too large is removed, one of usual size is kept', () => {
  const root = temporaryDirectory();
  const [large, usual] = COMPILE_CACHES.map((name) => join(root, name)) as [string, string];
  for (const [path, bytes] of [
    [join(large, 'v24/a'), 60],
    [join(large, 'v26/b'), 60],
    [join(usual, 'v24/a'), 60],
  ] as const) {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, new Uint8Array(bytes));
  }
  boundCompileCaches(root, 100);
  expect([existsSync(large), existsSync(usual)]).toEqual([false, true]);
  boundCompileCaches(temporaryDirectory());
});
