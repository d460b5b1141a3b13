/** Debian packages of this checkout under any version, and an empty Debian that they are installed in, where there is no Node. */
import { execFileSync, spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished } from 'vitest';
import packageJson from '../../package.json' with { type: 'json' };
import { buildDebianPackages } from '../../scripts/release/debian-packages.ts';
import { ROOT } from '../guards/project-files.ts';
import { temporaryDirectory } from '../temporary.ts';

/** The folder that they are in. `clone`: another checkout, with everything built. */
export function builtPackages(version: string, clone = ROOT): string {
  const folder = temporaryDirectory();
  const [out, scratch] = [join(folder, version), join(folder, `scratch-${version}`)];
  for (const path of [out, scratch]) mkdirSync(path);
  buildDebianPackages(process.arch === 'arm64' ? 'arm64' : 'amd64', {
    clone,
    version,
    scratch,
    seconds: 1_700_000_000,
    maintainer: 'A Test <test@example.org>',
    out,
    compression: 'none',
  });
  expect(readdirSync(out).length).toBe(Object.keys(packageJson.bin).length + 1);
  return out;
}

const has = (command: string): boolean => spawnSync('which', [command]).status === 0;

/** Where it lies, for chroot; undefined where it cannot be made. SVC_TEST_ROOT names one that is there already. */
export function installedSystem(): string | undefined {
  const named = process.env.SVC_TEST_ROOT;
  if (named === undefined && (process.getuid?.() !== 0 || !has('mmdebstrap'))) return undefined;
  const root = named ?? join(temporaryDirectory(), 'root');
  if (named === undefined) {
    const install = 'apt-get install --yes --no-install-recommends /packages/*.deb';
    const hook = `mkdir "$1/packages" && cp ${builtPackages('1.0.0')}/*.deb "$1/packages" && chroot "$1" sh -c '${install}'`;
    const words = ['--quiet', '--variant=apt', '--mode=root', '--include=adduser,libstdc++6'];
    execFileSync('mmdebstrap', [...words, `--customize-hook=${hook}`, 'bookworm', root], { stdio: 'ignore' });
    chmodSync(root, 0o755);
  }
  execFileSync('mount', ['-t', 'proc', 'proc', join(root, 'proc')]);
  onTestFinished(() => void spawnSync('umount', [join(root, 'proc')]));
  return root;
}
