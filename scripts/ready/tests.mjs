/**
 * `npm test`, `test:quick` and `test:deep`: types, lint, then all tests at a level. Every check runs even when an earlier one
 * failed, and the last line counts them all. A test that did not run is a failure.
 */
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { runChild } from './carried-node.mjs';
import { judgeNamedTests } from './named-tests.mjs';
import { watchRun } from './run-watch.mjs';
import { say } from './say.mjs';

const ENDED_BY_SIGNAL = 128;

/**
 * @param {string} root
 * @param {'quick' | 'full' | 'deep'} level
 * @param {readonly string[]} filters names of test files and other words for vitest; types and lint are left out then
 * @param {{ silenceMillis?: number; endMillis?: number }} limits of a run that hangs
 */
export async function runTests(root, level, filters, limits = {}) {
  const bin = (/** @type {string} */ name) => join(root, 'node_modules', '.bin', name);
  let passed = 0;
  let failed = 0;
  const checks = /** @type {const} */ ([
    // What was checked before and has not changed is not checked again: twenty seconds are three.
    ['types', 'tsc', ['--noEmit', '--incremental', '--tsBuildInfoFile', join('.ready', 'types.tsbuildinfo')]],
    ['lint', 'biome', ['check', '--error-on-warnings', '.']],
  ]);
  for (const [name, tool, args] of filters.length > 0 ? [] : checks) {
    say(`checking ${name}`);
    const status = await runChild(root, bin(tool), args);
    if (status > ENDED_BY_SIGNAL) return status;
    if (status === 0) passed++;
    else failed++;
  }

  const results = join(root, '.ready', 'tests.json');
  mkdirSync(join(root, '.ready'), { recursive: true });
  const times = join(root, '.ready', 'processor-times.txt');
  const notes = join(root, '.ready', 'running');
  for (const path of [results, times, notes]) rmSync(path, { force: true, recursive: true });
  mkdirSync(notes);
  say(`running the tests (${level})`);
  const began = performance.now();
  /** @type {ReturnType<typeof watchRun> | undefined} */
  let watch;
  const status = await runChild(
    root,
    bin('vitest'),
    ['run', '--reporter=default', '--reporter=json', `--outputFile.json=${results}`, ...filters],
    { SVC_TEST_LEVEL: level, SVC_PROCESSOR_TIMES: times, SVC_RUNNING: notes },
    false,
    (pid) => {
      watch = watchRun({ pid, notes, results, say, ...limits });
    },
  );
  const seconds = (performance.now() - began) / 1_000;
  const hung = watch?.stop() === true;
  if (status > ENDED_BY_SIGNAL && !hung) return status;
  const counts = readCounts(results);
  for (const line of [...slowestFiles(results, root), ...busiestFiles(times, root), ...stillestFiles(times, root)])
    process.stdout.write(`${line}\n`);
  process.stdout.write(`\nThe tests took ${clock(seconds)} and ${processorSeconds(times)} s of processor time.\n`);
  passed += counts.passed;
  failed += counts.failed;
  // A suite that could not be loaded, or an error outside any test, has no count of its own.
  if ((status !== 0 || hung) && counts.failed === 0) failed++;
  const named = filters.some((word) => word.startsWith('-t'));
  if (counts.skipped > 0 && !named) {
    say(`${counts.skipped} tests did not run; a test that does not run counts as failed`);
    failed += counts.skipped;
  }
  if (level !== 'quick' && filters.length === 0) {
    const wrong = writeNamedTests(root, results);
    for (const each of wrong) say(`${each}: docs/conformance-tests.md names this test`);
    failed += wrong.length;
  }
  process.stdout.write(`\n${passed} passed, ${failed} failed\n`);
  return failed === 0 ? 0 : status || 1;
}

/**
 * Writes what the tests named there did in this run into docs/conformance-tests.md, and returns those that did not pass.
 * @param {string} root
 * @param {string} results
 */
function writeNamedTests(root, results) {
  const file = join(root, 'docs', 'conformance-tests.md');
  if (!existsSync(file)) return [];
  /** @type {{ testResults?: import('./named-tests.mjs').FileResult[] }} */
  const { testResults = [] } = existsSync(results) ? JSON.parse(readFileSync(results, 'utf8')) : {};
  const before = readFileSync(file, 'utf8');
  const { page, wrong } = judgeNamedTests(before, testResults, root);
  if (page !== before) writeFileSync(file, page);
  return wrong;
}

const SLOWEST = 10;

/**
 * The files that took longest, with their seconds: where to begin when the tests take too long.
 * @param {string} path
 * @param {string} root
 */
function slowestFiles(path, root) {
  if (!existsSync(path)) return [];
  /** @type {{ testResults?: { name: string; startTime: number; endTime: number }[] }} */
  const { testResults = [] } = JSON.parse(readFileSync(path, 'utf8'));
  if (testResults.length === 0) return [];
  const files = testResults.map(({ name, startTime, endTime }) => ({
    name: relative(root, name),
    seconds: (endTime - startTime) / 1000,
  }));
  return longest(files, (sum) => `${files.length} files took ${sum} s of the workers; the slowest:`);
}

/**
 * The same by processor time, programs that a file started included (test/processor-time.ts): on few cores this is what the
 * whole run takes.
 * @param {string} path
 * @param {string} root
 */
function busiestFiles(path, root) {
  const files = readTimes(path).map(({ file, seconds }) => ({ name: relative(root, file), seconds }));
  return longest(files, (sum) => `They took ${sum} s of processor time; the most:`);
}

/** From here on a file is named that waited for something that did not move: the watch (test/watch) ends a test soon after. */
const STILL_SECONDS = 15;

/**
 * @param {string} path
 * @param {string} root
 */
function stillestFiles(path, root) {
  const files = readTimes(path)
    .map(({ file, stillSeconds = 0 }) => ({ name: relative(root, file), seconds: stillSeconds }))
    .filter(({ seconds }) => seconds >= STILL_SECONDS);
  return longest(files, () => 'Nothing moved for so long in:');
}

/**
 * @param {string} path
 * @returns {{ file: string; seconds: number; stillSeconds?: number }[]}
 */
const readTimes = (path) =>
  existsSync(path)
    ? readFileSync(path, 'utf8')
        .split('\n')
        .filter((line) => line !== '')
        .map((line) => JSON.parse(line))
    : [];

/** @param {string} path */
const processorSeconds = (path) => Math.round(readTimes(path).reduce((sum, { seconds }) => sum + seconds, 0));

/** @param {number} seconds */
const clock = (seconds) => `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`;

/**
 * @param {{ name: string; seconds: number }[]} files
 * @param {(sum: number) => string} title
 */
function longest(files, title) {
  if (files.length === 0) return [];
  const sum = files.reduce((total, { seconds }) => total + seconds, 0);
  return [
    `\n${title(Math.round(sum))}`,
    ...files
      .toSorted((a, b) => b.seconds - a.seconds)
      .slice(0, SLOWEST)
      .map(({ name, seconds }) => `${seconds.toFixed(1).padStart(7)} s  ${name}`),
  ];
}

/** @param {string} path */
function readCounts(path) {
  if (!existsSync(path)) return { passed: 0, failed: 0, skipped: 0 };
  const { numPassedTests, numFailedTests, numPendingTests, numTodoTests } = JSON.parse(readFileSync(path, 'utf8'));
  return { passed: numPassedTests, failed: numFailedTests, skipped: numPendingTests + numTodoTests };
}
