import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { createDurably, writeDurably } from '../../runtime/files/durable-file.ts';
import { temporaryDirectory } from '../temporary.ts';

/** A temporary file of another process that wrote it some hours ago. */
function leftFor(path: string, hours: number, owner: string): string {
  const file = `${path}.${owner}.tmp`;
  writeFileSync(file, 'another writer', { mode: 0o666 });
  const seconds = Date.now() / 1_000 - hours * 3_600;
  utimesSync(file, seconds, seconds);
  return file;
}

test('a process of the same id that runs in another container is not disturbed while it writes', async () => {
  const path = join(temporaryDirectory(), 'pool.key');
  // Each container numbers its processes by itself: this one cannot tell whether the other runs.
  const others = [process.pid, 2 ** 30].map((pid) => leftFor(path, 0, String(pid)));
  await writeDurably(path, 'one', 0o600);
  expect(await createDurably(path, 'two', 0o600)).toBe(false);
  for (const file of others) expect(existsSync(file)).toBe(true);
});

test('contents are replaced whole, with the rights asked for, over what a crash left', async () => {
  const directory = temporaryDirectory();
  const path = join(directory, 'keys.json');
  for (const owner of [String(process.pid), '0123456789abcdef']) leftFor(path, 2, owner);
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
  leftFor(path, 2, String(process.pid));
  expect(await createDurably(path, 'one', 0o600)).toBe(true);
  expect(await createDurably(path, 'two', 0o600)).toBe(false);
  expect(readFileSync(path, 'utf8')).toBe('one');
  expect(statSync(path).mode & 0o777).toBe(0o600);
  // A link to nowhere is something that is there.
  symlinkSync(join(directory, 'nowhere'), join(directory, 'link'));
  expect(await createDurably(join(directory, 'link'), 'x')).toBe(false);
  expect(readdirSync(directory).sort()).toEqual(['key.json', 'link']);
});
