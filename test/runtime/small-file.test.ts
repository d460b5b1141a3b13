import { execFileSync } from 'node:child_process';
import { symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parseCommandLine, text } from '../../runtime/command-line/command-line.ts';
import { readSmallFile } from '../../runtime/files/small-file.ts';
import { processTerminal } from '../../runtime/program.ts';
import { temporaryDirectory } from '../temporary.ts';

test('a regular file is read whole, also through a link, up to the limit', () => {
  const path = join(temporaryDirectory(), 'file');
  writeFileSync(path, 'grüße');
  symlinkSync(path, `${path}.link`);
  expect(readSmallFile(`${path}.link`)).toBe('grüße');
  expect(readSmallFile(path, 7)).toBe('grüße');
  expect(() => readSmallFile(path, 6)).toThrow('more than 6 bytes');
  writeFileSync(path, '');
  expect(readSmallFile(path)).toBe('');
});

test('a device, a pipe, a directory and a file that is too long are refused at once', () => {
  const directory = temporaryDirectory();
  const pipe = join(directory, 'pipe');
  execFileSync('mkfifo', [pipe]);
  const sparse = join(directory, 'sparse');
  execFileSync('truncate', ['-s', '8G', sparse]);
  for (const path of ['/dev/zero', pipe, directory]) expect(() => readSmallFile(path)).toThrow('not a regular file');
  expect(() => readSmallFile(sparse)).toThrow('more than');
  // A file whose size the system does not tell is read up to the limit all the same.
  expect(readSmallFile('/proc/self/status')).toContain('Pid:');
  expect(() => readSmallFile('/proc/self/status', 10)).toThrow('more than 10 bytes');
  // Longer than what is asked for first.
  const maps = readSmallFile('/proc/self/maps');
  expect(maps.length).toBeGreaterThan(9_000);
  const broken = maps
    .trimEnd()
    .split('\n')
    .filter((line) => !/^[0-9a-f]+-[0-9a-f]+ [-rwxsp]{4} [0-9a-f]+ /.test(line));
  expect(broken).toEqual([]);
  expect(() => readSmallFile('/proc/self/maps', 9_000)).toThrow('more than 9000 bytes');
});

test('a config file without an end is a usage error', () => {
  const command = { name: 'x', summary: '', options: { word: text({ help: 'a word' }) } };
  const parsed = parseCommandLine(command, ['--config', '/dev/zero'], processTerminal.readText);
  expect(parsed).toMatchObject({ kind: 'usage', error: { code: 'config_unreadable' } });
});
