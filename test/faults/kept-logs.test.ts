/** What a failed test leaves to read, and what one that passes does not. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { temporaryDirectory } from '../temporary.ts';
import { endFolder, keptLogs } from './kept-logs.ts';

test('the logs of a test that failed are named and stay; those of one that passed go', () => {
  const folder = temporaryDirectory();
  const said: string[] = [];
  endFolder(folder, true, (line) => said.push(line));
  expect(said).toEqual([`the logs of the failed test are in ${folder}\n`]);
  expect(existsSync(folder)).toBe(true);
  endFolder(folder, false, (line) => said.push(line));
  expect(said.length).toBe(1);
  expect(existsSync(folder)).toBe(false);
});

let passed = '';

test('each name has one file, in which everything is, down to debug', async () => {
  const { folder, logOf } = keptLogs();
  passed = folder;
  logOf('pool').debug('the last thing that happened', { height: 7 });
  expect(logOf('pool')).toBe(logOf('pool'));
  const written = () => readFileSync(join(folder, 'pool.log'), 'utf8');
  await expect.poll(written).toMatch(/the last thing that happened.*height=7/);
});

test('a test that passed has left none', () => {
  expect(passed).not.toBe('');
  expect(existsSync(passed)).toBe(false);
});
