/** svc-miner that is asked to end before it mines. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { mineCommand } from '../../miner/mine.ts';
import { temporaryDirectory } from '../temporary.ts';
import { MINER_ADDRESS } from './pool-fixture.ts';

test('a signal while svc-miner opens its files and devices ends it with 0, and nothing starts to mine', async () => {
  const folder = temporaryDirectory();
  const logFile = join(folder, 'log');
  const said: string[] = [];
  const say = (text: string) => void said.push(text);
  const terminal = { out: say, err: say, readText: () => '', env: {} };
  const words = ['-o', 'stratum+tcp://127.0.0.1:1', '-u', MINER_ADDRESS, '--no-gpu', '--data-dir', folder];
  const command = mineCommand({ input: process.stdin, isTerminal: false });
  const ended = command.start([...words, '--log-file', logFile], terminal);
  // It reads files meanwhile.
  process.emit('SIGTERM');
  expect(await ended).toBe(0);
  const log = readFileSync(logFile, 'utf8');
  expect(log).toContain('stopping reason=SIGTERM');
  expect(log).not.toContain(' mining');
  expect(said).toEqual([]);
});
