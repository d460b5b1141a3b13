import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { expect, test } from 'vitest';
import packageJson from '../../package.json' with { type: 'json' };
import { findNode, noNodeMessage } from '../../scripts/ready/carried-node.mjs';
import { temporaryDirectory } from '../temporary.ts';

const project = new URL('../../', import.meta.url).pathname;

const NOT_BUILT = /^svc[a-z-]*: this program is not built yet \(see CHANGELOG\.md\)\n$/;

test.each(Object.entries(packageJson.bin))('%s starts, or says that it is not built yet', (_name, file) => {
  const { status, stdout, stderr } = spawnSync(process.execPath, [join(project, file), '--version'], {
    encoding: 'utf8',
  });
  if (status === 2) expect(stderr).toMatch(NOT_BUILT);
  else expect(stdout).toMatch(/^svc[a-z-]* \d+\.\d+\.\d+\n$/);
});

/** The launcher in a project of its own, whose one program says its words and its Node, and ends on SIGTERM with 9. */
function copy() {
  const root = temporaryDirectory();
  for (const folder of ['bin', 'scripts']) cpSync(join(project, folder), join(root, folder), { recursive: true });
  mkdirSync(join(root, 'node'));
  writeFileSync(join(root, 'package.json'), '{"type":"module"}');
  writeFileSync(
    join(root, 'node/main.ts'),
    `const words: string[] = process.argv.slice(2);
     process.on('SIGTERM', () => process.exit(9));
     console.log(JSON.stringify({ words, major: process.versions.node.split('.')[0] }));
     if (words[0] === 'stay') setInterval(() => undefined, 1000); else process.exitCode = Number(words[0]);`,
  );
  return root;
}

/** Pretends to be an old Node, so that the launcher looks for the carried one, which here is the Node of this test. */
function asOldNode(root: string) {
  mkdirSync(join(root, `node_modules/node-linux-${process.arch}/bin`), { recursive: true });
  const carried = join(root, `node_modules/node-linux-${process.arch}/bin/node`);
  writeFileSync(carried, `#!/bin/sh\nunset NODE_OPTIONS\nexec "${process.execPath}" "$@"\n`, { mode: 0o755 });
  const old = join(root, 'old.cjs');
  writeFileSync(old, `Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '20.0.0' } });`);
  return { NODE_OPTIONS: `--require=${old}` };
}

test('words and exit code go through, on a new Node and on an old one', () => {
  const root = copy();
  for (const env of [{}, asOldNode(root)]) {
    const { status, stdout } = spawnSync(process.execPath, [join(root, 'bin/svcd'), '7', '--x y'], {
      encoding: 'utf8',
      env: { ...process.env, ...env },
    });
    expect(JSON.parse(stdout)).toMatchObject({ words: ['7', '--x y'] });
    expect(status).toBe(7);
  }
});

test('a signal is passed on to the program', async () => {
  const root = copy();
  const child = spawn(process.execPath, [join(root, 'bin/svcd'), 'stay'], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, ...asOldNode(root) },
  });
  await once(createInterface(child.stdout), 'line');
  child.kill('SIGTERM');
  expect(await once(child, 'exit')).toEqual([9, null]);
});

test('a missing Node is explained', () => {
  const root = copy();
  const old = { platform: 'linux', arch: 'arm64', execPath: '/x', versions: { node: '20.1.0' } } as NodeJS.Process;
  expect(findNode(root, old)).toBeUndefined();
  // As in the npm package.
  expect(noNodeMessage(root, old)).toMatch(/^this is Node 20\.1\.0 on linux-arm64, .*: install Node 24 or later$/);
  writeFileSync(join(root, 'package-lock.json'), '{}');
  expect(noNodeMessage(root, old)).toMatch(
    /^this is Node 20\.1\.0 on linux-arm64 and node_modules is missing: run npm ci/,
  );
  mkdirSync(join(root, 'node_modules'));
  expect(noNodeMessage(root, old)).toContain('npm did not install the carried Node');
  expect(noNodeMessage(root, { ...old, platform: 'darwin' } as NodeJS.Process)).toContain('install Node 24 or later');
  expect(findNode(root, { ...old, versions: { node: '26.0.0' } } as NodeJS.Process)).toBe('/x');
});

test('every program of package.json has its launcher', () => {
  const files = readdirSync(join(project, 'bin')).filter((name) => !name.includes('.'));
  expect(
    Object.values(packageJson.bin)
      .map((file) => file.slice('bin/'.length))
      .sort(),
  ).toEqual(files.sort());
});
