/** The hops in docs/architecture.md are where they are said to be. */
import { expect, test } from 'vitest';
import { read } from './project-files.ts';

const NAMES = /`([a-z][\w/-]*\.ts)`((?:,? `\w+`)+)/g;

test('each hop of the ways through the code is a file that declares the named function or class', () => {
  const [, ways = ''] = /\n## Three ways through the code\n([\s\S]*?)\n## /.exec(read('docs/architecture.md')) ?? [];
  const hops = [...ways.matchAll(NAMES)].flatMap(([, path = '', names = '']) =>
    [...names.matchAll(/\w+/g)].map(([name]) => ({ path, name })),
  );
  expect(hops.length).toBeGreaterThan(30);
  const wrong = hops.filter(
    ({ path, name }) =>
      !new RegExp(`^export (?:abstract |async )?(?:class|function|const) ${name}\\b`, 'm').test(read(path)),
  );
  expect(wrong).toEqual([]);
});
