/** The quick level runs in memory (docs/development.md): a program costs more than most of its files. */
import { posix } from 'node:path';
import { expect, test } from 'vitest';
import { FILES, read } from './project-files.ts';

const QUICK = FILES.filter((path) => /^test\/.*(?<!\.long|\.slow)\.test\.tsx?$/.test(path));

/** Tools of the system that end at once, and one start of `svcd` that is refused. */
const STARTS = [
  'test/attack/other-users.test.ts',
  'test/consensus/validator-config.test.ts',
  'test/guards/formats.test.ts',
  'test/runtime/metrics.test.ts',
  'test/runtime/small-file.test.ts',
];

/** The files of the tests that a file imports, and those that these import. */
function imported(path: string, found = new Set<string>()): Set<string> {
  for (const [, name = ''] of read(path).matchAll(/^(?:import|export) (?!type )[^;]*?from '(\.[^']+)'/gm)) {
    const other = posix.join(posix.dirname(path), name);
    if (!other.startsWith('test/') || !other.endsWith('.ts') || found.has(other)) continue;
    found.add(other);
    imported(other, found);
  }
  return found;
}

test('a quick test starts no program, but for some that are named, and no database', () => {
  expect(QUICK.length).toBeGreaterThan(300);
  const starting = QUICK.filter((path) => /^import [^;]*from 'node:child_process'/m.test(read(path)));
  expect(starting).toEqual(STARTS);
  expect(QUICK.filter((path) => imported(path).has('test/pool/ready-cluster.ts'))).toEqual([]);
});
