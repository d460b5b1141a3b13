import { spawnSync } from 'node:child_process';
import { expect, test } from 'vitest';

test('an error that nobody catches ends the process by saying what it was, in the log too', () => {
  const run = (error: string) => {
    const code = `
      import { InvariantError } from './runtime/invariant.ts';
      import { createLogger, readLevelFilter, standardErrorSink } from './runtime/log/log.ts';
      import { command, runProgram } from './runtime/program.ts';
      import { Shutdown } from './runtime/shutdown.ts';
      await runProgram(command({ name: 'svc-x', summary: '', options: {} }, async () => {
        const options = { filter: readLevelFilter('info'), format: 'text' };
        const log = createLogger('x', options, { sink: standardErrorSink, now: Date.now });
        new Shutdown({ limitMs: 1000 }, { log, process, now: Date.now });
        setTimeout(() => { throw ${error}; }, 1);
        return await new Promise(() => undefined);
      }));`;
    const { status, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', code], {
      cwd: new URL('../..', import.meta.url),
      encoding: 'utf8',
    });
    return { status, stderr };
  };
  const invariant = run("new InvariantError('a cut is missing')");
  expect(invariant.status).toBe(70);
  expect(invariant.stderr).toContain(
    'svc-x: ended because an invariant is broken: a cut is missing [invariant_broken]',
  );
  expect(invariant.stderr).toMatch(/ERROR x: ended by a defect error="InvariantError: a cut is missing/);
  const defect = run("new TypeError('a bug')");
  expect(defect.status).toBe(70);
  expect(defect.stderr).toContain('svc-x: ended by a defect of its own');
  expect(defect.stderr).toContain('TypeError: a bug');
});
