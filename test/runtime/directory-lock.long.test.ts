import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { expect, onTestFinished, test } from 'vitest';
import { DirectoryLockedError, leaveDirectories, lockDirectory } from '../../runtime/files/directory-lock.ts';
import { temporaryDirectory } from '../temporary.ts';

const module = new URL('../../runtime/files/directory-lock.ts', import.meta.url).href;
/** Takes the lock, says `got` or the error's code, and stays. */
const script = `
  import { lockDirectory } from ${JSON.stringify(module)};
  try { lockDirectory(process.argv[1]); console.log('got'); } catch (e) { console.log(e.code); }
  setInterval(() => {}, 1000);
`;

async function rival(directory: string): Promise<{ child: ChildProcess; said: string }> {
  const child = spawn(process.execPath, ['--input-type=module', '-e', script, directory], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  const [said] = (await once(createInterface(child.stdout), 'line')) as [string];
  return { child, said };
}

test('a directory that nobody can make is refused, and not tried for ever', async () => {
  // In a process of its own: Node's own way to make it never returns, and would hold this one.
  const { said } = await rival('/proc/x/y');
  expect(said).toBe('directory_unusable');
});

test('a second holder is refused, in this process and in another', async () => {
  const directory = join(temporaryDirectory(), 'data');
  const lock = lockDirectory(directory);
  expect(() => lockDirectory(directory)).toThrow(DirectoryLockedError);
  expect((await rival(directory)).said).toBe('directory_locked');
  lock.release();
  lockDirectory(directory).release();
  expect(readdirSync(directory)).toEqual(['lock.2']);
});

test('a lock ends with its process, even by kill -9', async () => {
  const directory = temporaryDirectory();
  const { child, said } = await rival(directory);
  expect(said).toBe('got');
  expect(() => lockDirectory(directory)).toThrow(new RegExp(`in use by process ${child.pid}`));
  child.kill('SIGKILL');
  await once(child, 'exit');
  lockDirectory(directory).release();
});

test('of many that take over a dead lock at once, one gets it', async () => {
  const directory = temporaryDirectory();
  writeFileSync(join(directory, 'lock.7'), JSON.stringify({ pid: process.pid, started: '1', boot: 'another' }));
  const rivals = await Promise.all(Array.from({ length: 6 }, () => rival(directory)));
  expect(rivals.map(({ said }) => said).sort()).toEqual([...Array(5).fill('directory_locked'), 'got']);
  expect(readdirSync(directory)).toEqual(['lock.8']);
});

test('a number used again by another process does not keep the lock', () => {
  for (const owner of [{ pid: process.pid, started: '1', boot: '' }, 'torn', null]) {
    const directory = temporaryDirectory();
    writeFileSync(join(directory, 'lock.1'), owner === 'torn' ? '{"pid":' : JSON.stringify(owner));
    lockDirectory(directory).release();
  }
});

test('an owner that is about to end is waited for, one that stays is not', async () => {
  const directory = temporaryDirectory();
  const leaver = `
    import { leaveDirectories, lockDirectory } from ${JSON.stringify(module)};
    const lock = lockDirectory(process.argv[1]);
    leaveDirectories();
    console.log('leaving');
    setTimeout(() => lock.release(), 700);
    setTimeout(() => {}, 1500);
  `;
  const child = spawn(process.execPath, ['--input-type=module', '-e', leaver, directory], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  await once(createInterface(child.stdout), 'line');
  const lock = lockDirectory(directory);
  expect((await rival(directory)).said).toBe('directory_locked');
  lock.release();
  expect(readdirSync(directory)).toEqual(['lock.2']);
});

test('a process does not wait for itself', () => {
  const directory = temporaryDirectory();
  const lock = lockDirectory(directory);
  leaveDirectories();
  expect(() => lockDirectory(directory)).toThrow(DirectoryLockedError);
  lock.release();
  lockDirectory(directory).release();
});
