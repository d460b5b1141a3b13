import { mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { createDurably, writeDurably } from '../../runtime/files/durable-file.ts';
import { temporaryDirectory } from '../temporary.ts';

test('contents are replaced whole, with the rights asked for, over what a crash left', async () => {
  const directory = temporaryDirectory();
  const path = join(directory, 'keys.json');
  // More than the system ever gives.
  const gone = 2 ** 30;
  for (const pid of [process.pid, gone]) writeFileSync(`${path}.${pid}.tmp`, 'left by a crash', { mode: 0o666 });
  await writeDurably(path, 'one', 0o600);
  await writeDurably(path, new TextEncoder().encode('two'), 0o600);
  expect(readFileSync(path, 'utf8')).toBe('two');
  expect(statSync(path).mode & 0o777).toBe(0o600);
  expect(readdirSync(directory)).toEqual(['keys.json']);
});

test('writers of one file wait for each other; the last one wins', async () => {
  const directory = temporaryDirectory();
  const path = join(directory, 'state');
  await Promise.all(Array.from({ length: 50 }, (_, i) => writeDurably(path, `${i}`.repeat(1000))));
  expect(readFileSync(path, 'utf8')).toBe('49'.repeat(1000));
  expect(readdirSync(directory)).toEqual(['state']);
});

test('a failure leaves the old contents and no litter, and the next write works', async () => {
  const directory = temporaryDirectory();
  const path = join(directory, 'taken');
  mkdirSync(join(path, 'x'), { recursive: true });
  await expect(writeDurably(path, 'x')).rejects.toThrow();
  expect(readdirSync(directory)).toEqual(['taken']);
  await expect(writeDurably(join(directory, 'none', 'x'), 'x')).rejects.toThrow(/ENOENT/);
  await writeDurably(join(directory, 'other'), 'fine');
});

test('a file that must not exist yet is made whole; what is there stays', async () => {
  const directory = temporaryDirectory();
  const path = join(directory, 'key.json');
  writeFileSync(`${path}.${process.pid}.tmp`, 'left by a crash', { mode: 0o666 });
  expect(await createDurably(path, 'one', 0o600)).toBe(true);
  expect(await createDurably(path, 'two', 0o600)).toBe(false);
  expect(readFileSync(path, 'utf8')).toBe('one');
  expect(statSync(path).mode & 0o777).toBe(0o600);
  // A link to nowhere is something that is there.
  symlinkSync(join(directory, 'nowhere'), join(directory, 'link'));
  expect(await createDurably(join(directory, 'link'), 'x')).toBe(false);
  expect(readdirSync(directory).sort()).toEqual(['key.json', 'link']);
});
