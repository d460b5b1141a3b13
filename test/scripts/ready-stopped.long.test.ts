/** `npm start` that is stopped while it prepares, before there is anything to stop in order. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, existsSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { expect, test } from 'vitest';
import packageJson from '../../package.json' with { type: 'json' };
import { temporaryDirectory } from '../temporary.ts';

const project = new URL('../../', import.meta.url).pathname;
/** It says where it is, and complains like npm and compilers do when a signal ends it. */
const SLOW = `console.error('at work ' + process.pid);
process.on('SIGTERM', () => { console.error('ERROR: ended by SIGTERM'); process.exit(1); });
setInterval(() => undefined, 1000);`;

/** The start scripts in a project of their own. */
function projectWith(prepare: (root: string) => void) {
  const root = temporaryDirectory();
  cpSync(join(project, 'scripts'), join(root, 'scripts'), { recursive: true });
  for (const folder of ['kernels/cpu/assembly', 'tools', 'stack']) mkdirSync(join(root, folder), { recursive: true });
  writeFileSync(join(root, 'package.json'), JSON.stringify({ type: 'module', scripts: packageJson.scripts }));
  writeFileSync(join(root, 'package-lock.json'), '{"packages":{}}');
  writeFileSync(join(root, 'stack/main.ts'), `console.error('the stack runs');`);
  prepare(root);
  return root;
}

/** Stopped as soon as something says that it is at work. */
async function stopAtWork(root: string, command = process.execPath, words = ['scripts/ready.mjs', 'start']) {
  const child = spawn(command, words, {
    cwd: root,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, PATH: `${join(root, 'tools')}:${process.env.PATH}` },
  });
  const lines: string[] = [];
  const atWork = Promise.withResolvers<number>();
  createInterface(child.stderr).on('line', (line) => {
    lines.push(line);
    const [, pid] = /^at work (\d+)$/.exec(line) ?? [];
    if (pid !== undefined) atWork.resolve(Number(pid));
  });
  const pid = await atWork.promise;
  child.kill('SIGTERM');
  const [code] = await once(child, 'close');
  return { code, lines, isLeft: existsSync(`/proc/${pid}`) };
}

test('a signal while npm installs ends npm and the run, and nothing is called an error', async () => {
  const root = projectWith((at) =>
    writeFileSync(join(at, 'tools/npm'), `#!${process.execPath}\n${SLOW}`, { mode: 0o755 }),
  );
  const { code, lines, isLeft } = await stopAtWork(root);
  expect({ code, isLeft }).toEqual({ code: 0, isLeft: false });
  expect(lines.join('\n')).not.toMatch(/error|fail/i);
  expect(lines.at(-1)).toBe('ready: stopped');
  expect(existsSync(join(root, '.ready/install'))).toBe(false);
});

/** A build that dies of the signal, as they do. */
const building = (at: string) => {
  symlinkSync(join(project, 'node_modules'), join(at, 'node_modules'));
  writeFileSync(join(at, 'scripts/build-kernels.mjs'), SLOW.replace(/process\.on.*\n/, ''));
};

test('a signal while a file is built ends the build and the run, without the stack and without a failure', async () => {
  const { code, lines, isLeft } = await stopAtWork(projectWith(building));
  expect({ code, isLeft }).toEqual({ code: 0, isLeft: false });
  expect(lines.join('\n')).not.toMatch(/error|fail|the stack runs/i);
});

test('a signal to the process of npm alone, as a service manager sends it, ends what `npm start` runs', async () => {
  const { code, lines, isLeft } = await stopAtWork(projectWith(building), 'npm', ['start']);
  expect({ code, isLeft }).toEqual({ code: 0, isLeft: false });
  expect(lines.at(-1)).toBe('ready: stopped');
});
