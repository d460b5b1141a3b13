/** A file that does one thing is short (docs/architecture.md). */
import { expect, test } from 'vitest';
import { FILES, isCode, read } from './project-files.ts';

const MAX_LINES = 400;

test(`no file of code, tests included, has more than ${MAX_LINES} lines`, () => {
  expect(FILES.filter((path) => isCode(path) && read(path).split('\n').length - 1 > MAX_LINES)).toEqual([]);
});
