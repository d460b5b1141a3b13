import { describe, expect, test } from 'vitest';
import { read, SOURCES } from '../guards/project-files.ts';
import { mutantsOf, withMutant } from './mutants.ts';
import { nearestTests } from './nearest-tests.ts';

const changed = (source: string): string[] =>
  mutantsOf('a.ts', source).map((mutant) => `${mutant.kind}: ${withMutant(source, mutant)}`);

describe('faults that are put into the source', () => {
  test.each([
    ['a limit is off by one', 'x = a < b;', ['boundary: x = a <= b;']],
    ['a comparison is turned round', 'x = a === b;', ['equality: x = a !== b;']],
    ['one of two conditions suffices', 'x = a && b;', ['logic: x = (a || b);']],
    ['a flush is left out', 'await file.datasync();', ['durability: ;']],
    ['a call is left out', 'release(place);', ['call: ;']],
    ['the smaller becomes the larger', 'x = Math.min(a, b);', ['extreme: x = Math.max(a, b);']],
    ['an answer is the opposite', 'const f = () => true;', ['answer: const f = () => false;']],
    ['a difference becomes a sum', 'x = a - b;', ['arithmetic: x = (a + b);']],
    ['texts are not subtracted', 'x = a + b;', []],
    ['what is only told to people stays', 'log.warn("x"); count.inc();', []],
    ['types stay', 'type A = B extends C ? 1 : 2;', []],
  ])('%s', (_, source, expected) => {
    expect(changed(source)).toEqual(expected);
  });

  test('a check that leaves the function is removed, another one is turned round', () => {
    expect(changed('function f() { if (a) { g = 1; return 1; } if (b) h = 1; }')).toEqual([
      'guard: function f() { if (false) { g = 1; return 1; } if (b) h = 1; }',
      'condition: function f() { if (a) { g = 1; return 1; } if (!(b)) h = 1; }',
    ]);
  });

  test('every source file can be read, and each fault changes its text at the named line', () => {
    for (const file of SOURCES.filter((path) => /^(protocol|runtime)\/.*\.ts$/.test(path))) {
      const source = read(file);
      for (const mutant of mutantsOf(file, source)) {
        expect(source.slice(0, mutant.start).split('\n').length).toBe(mutant.line);
        expect(withMutant(source, mutant)).not.toBe(source);
      }
    }
  });
});

test('every accepted equivalent is a fault of its file, and says why', () => {
  const accepted: { file: string; before: string; after: string; reason: string }[] = JSON.parse(
    read('test/mutation/equivalents.json'),
  );
  for (const { file, before, after, reason } of accepted) {
    const source = read(file);
    const faults = mutantsOf(file, source).map(({ start, end, replacement }) => [
      source.slice(start, end),
      replacement,
    ]);
    expect([file, faults]).toEqual([file, expect.arrayContaining([[before, after]])]);
    expect(reason.length).toBeGreaterThan(20);
  }
});

describe('the tests that are near a file', () => {
  const imports = new Map([
    ['test/pool/books.test.ts', ['pool/books.ts']],
    ['test/pool/api.test.ts', ['pool/api.ts']],
    ['test/a/other.test.ts', ['pool/books.ts']],
    ['test/wallet/keys.test.ts', ['wallet/keys.ts']],
    ['pool/api.ts', ['pool/books.ts']],
  ]);

  test('come in the order of their distance, and none that does not import it', () => {
    expect(nearestTests('pool/books.ts', imports, () => 1)).toEqual([
      { test: 'test/pool/books.test.ts', distance: 1 },
      { test: 'test/a/other.test.ts', distance: 1 },
      { test: 'test/pool/api.test.ts', distance: 2 },
    ]);
  });
});
