import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { expect, test } from 'vitest';
import { temporaryDirectory } from '../temporary.ts';

const module = new URL('../../scripts/ready/tests.mjs', import.meta.url).href;
const script = `
  import { runTests } from ${JSON.stringify(module)};
  const limits = JSON.parse(process.env.SVC_RUN_LIMITS ?? '{}');
  process.exitCode = await runTests(process.argv[1], process.env.SVC_RUN_LEVEL ?? 'quick', process.argv.slice(2), limits);
`;

interface Tools {
  tsc?: string;
  biome?: string;
  vitest: string;
}

/** A project whose tools are shell scripts: the text of each says what it does. */
function project(tools: Tools) {
  const root = temporaryDirectory();
  mkdirSync(join(root, 'node_modules/.bin'), { recursive: true });
  for (const [name, text] of Object.entries({ tsc: 'exit 0', biome: 'exit 0', ...tools }))
    writeFileSync(join(root, 'node_modules/.bin', name), `#!/bin/sh\n${text}\n`, { mode: 0o755 });
  return (...filters: string[]) => ['--input-type=module', '-e', script, root, ...filters];
}

const counts = (passed: number, failed: number, skipped = 0) =>
  `echo "level $SVC_TEST_LEVEL"; echo '{"numPassedTests":${passed},"numFailedTests":${failed},"numPendingTests":${skipped},"numTodoTests":0}' > .ready/tests.json`;

/** A run that hangs is ended after some seconds, in place of minutes. */
const SOON = { SVC_RUN_LIMITS: JSON.stringify({ silenceMillis: 3_000, endMillis: 1_000 }) };

const outcome = (tools: Tools, ...filters: string[]) => run(tools, process.env, filters);
const hangs = (vitest: string) => run({ vitest }, { ...process.env, ...SOON }, []);

function run(tools: Tools, env: NodeJS.ProcessEnv, filters: string[]) {
  const words = project(tools)(...filters);
  const { status, stdout, stderr } = spawnSync(process.execPath, words, { encoding: 'utf8', cwd: words[3], env });
  return { status, last: stdout.trimEnd().split('\n').at(-1), stdout, stderr };
}

test('types, lint and tests are counted in one closing line', () => {
  const all = outcome({ vitest: counts(5, 0) });
  expect(all).toMatchObject({ status: 0, last: '7 passed, 0 failed' });
  expect(all.stdout).toContain('level quick');
  expect(outcome({ vitest: counts(5, 0) }, 'test/protocol')).toMatchObject({ status: 0, last: '5 passed, 0 failed' });
});

test('whatever fails makes the whole fail, and the rest still runs', () => {
  expect(outcome({ vitest: counts(5, 0), tsc: 'exit 2' })).toMatchObject({ status: 1, last: '6 passed, 1 failed' });
  expect(outcome({ vitest: counts(5, 0), biome: 'exit 1' })).toMatchObject({ status: 1, last: '6 passed, 1 failed' });
  expect(outcome({ vitest: `${counts(5, 2)}; exit 1` })).toMatchObject({ status: 1, last: '7 passed, 2 failed' });
  expect(outcome({ vitest: `${counts(5, 0)}; exit 1` })).toMatchObject({ status: 1, last: '7 passed, 1 failed' });
  expect(outcome({ vitest: 'exit 1' })).toMatchObject({ status: 1, last: '2 passed, 1 failed' });
});

test('a test that did not run is a failure, unless one was asked for by name', () => {
  expect(outcome({ vitest: counts(5, 0, 3) })).toMatchObject({ status: 1, last: '7 passed, 3 failed' });
  expect(outcome({ vitest: counts(5, 0, 3) }, '-t', 'x')).toMatchObject({ status: 0, last: '5 passed, 0 failed' });
});

test('the slowest files, and those that used the processor most, are named before the closing line', () => {
  const results = [
    { name: 'test/a.test.ts', startTime: 0, endTime: 1_500 },
    { name: 'test/b.slow.test.ts', startTime: 1_000, endTime: 31_000 },
  ];
  const report = JSON.stringify({
    numPassedTests: 2,
    numFailedTests: 0,
    numPendingTests: 0,
    numTodoTests: 0,
    testResults: results,
  });
  const times = '{"file":"test/a.test.ts","seconds":2.25}\\n{"file":"test/b.slow.test.ts","seconds":1}';
  const { stdout, last } = outcome({
    vitest: `echo '${report}' | sed "s#test/#$PWD/test/#g" > .ready/tests.json
      printf '${times}\\n' | sed "s#test/#$PWD/test/#g" > "$SVC_PROCESSOR_TIMES"`,
  });
  expect(stdout).toMatch(
    /2 files took 32 s of the workers; the slowest:\n +30\.0 s {2}test\/b\.slow\.test\.ts\n +1\.5 s {2}test\/a\.test\.ts\n/,
  );
  expect(stdout).toMatch(
    /They took 3 s of processor time; the most:\n +2\.3 s {2}test\/a\.test\.ts\n +1\.0 s {2}test\/b\.slow\.test\.ts\n/,
  );
  expect(stdout).toMatch(/\nThe tests took 0 min \d+ s and 3 s of processor time\.\n\n4 passed, 0 failed\n$/);
  expect(last).toBe('4 passed, 0 failed');
});

test('a run in which nothing moves any more is ended with all that it started, and says what was running', async () => {
  const { stdout, stderr, last, status } = hangs(
    'echo "a test of the books" > "$SVC_RUNNING/$$"; sleep 600 & echo "left over: $!"; wait',
  );
  expect(stderr).toContain('no test has moved for 3 s');
  expect(stderr).toMatch(
    /process \d+, \d\.\d s of processor time: \/bin\/sh .*vitest run .*\n.*ran a test of the books/,
  );
  expect(stderr).toMatch(/process \d+, 0\.0 s of processor time: sleep 600/);
  const [, left] = /left over: (\d+)/.exec(stdout) ?? [];
  await expect.poll(() => existsSync(`/proc/${left}`)).toBe(false);
  expect({ last, status }).toEqual({ last: '2 passed, 1 failed', status: 137 });
});

test('a run that has its results and does not end is ended and fails', () => {
  const { stderr, last, status } = hangs(`${counts(5, 0)}; sleep 600`);
  expect(stderr).toContain('vitest wrote its results and did not end');
  expect({ last, status }).toEqual({ last: '7 passed, 1 failed', status: 137 });
});

test('a signal ends everything, not just the check that runs', async () => {
  const words = project({ tsc: 'echo there; exec sleep 60', vitest: 'echo must not run' })();
  const child = spawn(process.execPath, words, { stdio: ['ignore', 'pipe', 'ignore'] });
  const lines: string[] = [];
  const reader = createInterface(child.stdout).on('line', (line) => lines.push(line));
  await once(reader, 'line');
  child.kill('SIGINT');
  expect(await once(child, 'exit')).toEqual([130, null]);
  expect(lines).toEqual(['there']);
});

const named = (file: string, title: string) => `| a fact | passed | ${file}: ${title} |`;

test('a test that the conformance page names and that is gone, did not run or failed fails a whole run, and the page says so', () => {
  const page = ['gone', 'left out', 'wrong', 'with %s and $name, a \\| b', 'half']
    .map((title) => named('test/a.test.ts', title))
    .concat(named('test/gone.test.ts', 'wrong'), '| asked here | kept | test/api/conformance.test.ts |');
  const assertionResults = [
    ['left out', 'pending'],
    ['wrong', 'failed'],
    ['with 1 and x, a | b', 'passed'],
    ['with 2 and y, a | b', 'passed'],
    ['half', 'passed'],
    ['half', 'pending'],
    ['wrong in another file', 'passed'],
  ].map(([title, status]) => ({ title, status }));
  const report = JSON.stringify({
    numPassedTests: 9,
    numFailedTests: 0,
    numPendingTests: 0,
    numTodoTests: 0,
    testResults: [{ name: 'test/a.test.ts', startTime: 0, endTime: 1, assertionResults }],
  });
  const runAt = (level: string, ...filters: string[]) => {
    const words = project({ vitest: `cp report.json .ready/tests.json` })(...filters);
    const root = words[3] as string;
    const file = join(root, 'docs/conformance-tests.md');
    mkdirSync(join(root, 'docs'));
    writeFileSync(file, page.join('\n'));
    writeFileSync(join(root, 'report.json'), report.replaceAll('"test/', `"${root}/test/`));
    const env = { ...process.env, SVC_RUN_LEVEL: level };
    const { status, stdout } = spawnSync(process.execPath, words, { encoding: 'utf8', cwd: root, env });
    const states = [...readFileSync(file, 'utf8').matchAll(/^\| .*? \| (.*?) \|/gm)].map(([, state]) => state);
    return [status, stdout.trimEnd().split('\n').at(-1), states];
  };
  const asBefore = page.map((row) => row.split(' | ')[1]);
  expect(runAt('full')).toEqual([
    1,
    '11 passed, 5 failed',
    ['not run', 'not run', 'failed', 'passed', 'not run', 'not run', 'kept'],
  ]);
  expect(runAt('quick')).toEqual([0, '11 passed, 0 failed', asBefore]);
  expect(runAt('full', 'test/a.test.ts')).toEqual([0, '9 passed, 0 failed', asBefore]);
});
