/** Chromium takes the last of several lists of features: the tests' own replaces Playwright's, which must not shrink by that. */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { LEFT_OUT } from '../chromium.ts';

/** Of Edge, and of other systems. */
const OF_OTHERS = /^ms|Win$/;

test('whatever Playwright leaves out of Chromium, the tests leave out too', () => {
  const folder = dirname(createRequire(import.meta.url).resolve('playwright-core/package.json'));
  const code = readFileSync(join(folder, 'lib', 'coreBundle.js'), 'utf8');
  const [, list = ''] = /\bdisabledFeatures = \[(.*?)\]\.filter/s.exec(code) ?? [];
  const names = [...list.matchAll(/^\s*"(\w+)"/gm)].map(([, name]) => name as string);
  expect(names.length).toBeGreaterThan(5);
  expect(names.filter((name) => !OF_OTHERS.test(name) && !LEFT_OUT.includes(name))).toEqual([]);
});
