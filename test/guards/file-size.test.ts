/** A file that does one thing is short (docs/architecture.md). The list of exceptions only ever gets shorter. */
import { expect, test } from 'vitest';
import { FILES, isCode, read } from './project-files.ts';

const MAX_LINES = 400;

const EXCEPTIONS = [
  'kernels/gpu/backend.ts',
  'miner/client/session.ts',
  'test/api/conformance.test.ts',
  'test/miner/pool-fixture.ts',
];

test(`no file of code has more than ${MAX_LINES} lines, but for those on the list`, () => {
  const long = FILES.filter((path) => isCode(path) && read(path).split('\n').length - 1 > MAX_LINES);
  expect(long.filter((path) => !EXCEPTIONS.includes(path))).toEqual([]);
});
