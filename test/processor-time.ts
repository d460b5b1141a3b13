/**
 * Processor time of each test file, the programs that it started included, for the list at the end of `npm test` (scripts/ready/tests.mjs).
 * Times on the clock say little about it: slow files wait, and share two cores with three others.
 */
import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import { afterAll, expect } from 'vitest';
import { watch } from './watch/watch.ts';

const report = process.env.SVC_PROCESSOR_TIMES;
const STAT = '/proc/self/stat';
/** Clock ticks a second: fixed for programs on Linux. */
const TICKS = 100;

/** Of this process, and of its children that have ended. */
function processorSeconds(): number {
  const stat = readFileSync(STAT, 'utf8');
  // The name of the program is in brackets and may hold anything. Then come user and system time, own and children's.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return fields.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks), 0) / TICKS;
}

export function countProcessorTime(): void {
  if (report === undefined || !existsSync(STAT)) return;
  const begun = processorSeconds();
  // Set up before any file's own hooks, so it runs after them, when its programs have ended.
  afterAll(() => {
    const file = expect.getState().testPath;
    const stillSeconds = watch.takeStillest() / 1_000;
    appendFileSync(report, `${JSON.stringify({ file, seconds: processorSeconds() - begun, stillSeconds })}\n`);
  });
}
