import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ROOT } from '../guards/project-files.ts';
import { temporaryDirectory } from '../temporary.ts';

test('the packed programs and the benchmark of a session have every file that they import', () => {
  const target = join(temporaryDirectory(), 'pack');
  execFileSync(process.execPath, [join(ROOT, 'scripts/pack-gpu.ts'), target], { cwd: ROOT });
  const run = (words: readonly string[]) =>
    execFileSync(process.execPath, [...words], { cwd: join(target, 'programs'), encoding: 'utf8' });
  expect(
    run(['--input-type=module', '-e', "await import('./test/bench/session.bench.ts'); console.log('loaded')"]),
  ).toContain('loaded');
  for (const program of ['node', 'bridge', 'miner']) expect(run([`${program}/main.ts`, '--help'])).toContain('Usage');
});
