/**
 * The Debian packages. At the deep level those of this machine's architecture are tried by scripts/release/try-packages.sh, which needs root,
 * mmdebstrap and Debian's mirror.
 */
import { execFileSync, spawn } from 'node:child_process';
import { readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import packageJson from '../../package.json' with { type: 'json' };
import {
  debianVersion,
  installedUnit,
  PACKAGED_UNITS,
  restartInstances,
} from '../../scripts/release/debian-packages.ts';
import { FILES, ROOT, read } from '../guards/project-files.ts';
import { level } from '../level.ts';
import { temporaryDirectory } from '../temporary.ts';
import { builtPackages } from './built-packages.ts';

const UNITS = FILES.filter((path) => path.startsWith('deploy/systemd/'));

test('a prerelease comes before its release in the order of Debian too', () => {
  expect(debianVersion('1.2.3')).toBe('1.2.3');
  expect(debianVersion('1.2.3-rc.1')).toBe('1.2.3~rc.1');
});

test('installed units start what the packages install, with the config file that they install', () => {
  expect(UNITS).toEqual(PACKAGED_UNITS.map((unit) => `deploy/systemd/${unit}`).sort());
  for (const path of UNITS) {
    const unit = installedUnit(read(path));
    expect(unit, path).not.toContain('/opt/');
    const [, program = '', config = ''] =
      /^ExecStart=\/usr\/bin\/([a-z-]+) .*--config \/etc\/svc\/([a-z]+)(?:-%i)?\.json/m.exec(unit) ?? [];
    expect(Object.keys(packageJson.bin), path).toContain(program);
    expect(FILES).toContain(`deploy/config/${config}.json`);
  }
});

test('no program runs as the user of another one, and none but that user and root enters its data', () => {
  const owners = UNITS.filter((path) => !path.includes('@')).map((path) => {
    const [, user = ''] = /^User=(.*)$/m.exec(read(path)) ?? [];
    for (const line of [`Group=${user}`, `StateDirectory=${user}`, 'StateDirectoryMode=0700'])
      expect(read(path).split('\n'), path).toContain(line);
    return user;
  });
  expect(new Set(owners).size).toBe(owners.length);
});

test('an instance that does not start with the new release leaves the others as they are', () => {
  const bin = temporaryDirectory();
  const said = (ready: string, restarts: number): string => {
    const fakes = {
      systemctl: `case $1 in list-units) echo "x@a.service loaded"; echo "x@b.service loaded";; show) echo ${restarts};; restart) echo "$2";; esac`,
      journalctl: `echo '${ready}'`,
      sleep: '',
    };
    for (const [name, script] of Object.entries(fakes))
      writeFileSync(join(bin, name), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
    return execFileSync('sh', ['-ec', restartInstances('x')], {
      env: { PATH: `${bin}:${process.env.PATH}` },
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    });
  };
  for (const ready of ['INFO  svc-pool: ready healthy=true', '{"message":"ready","healthy":true}'])
    expect(said(ready, 0)).toBe('x@a.service\nx@b.service\n');
  expect(said('', 1)).toBe('x@a.service\n');
});

if (level === 'deep')
  test('packages of a commit have the same bytes wherever they are built', () => {
    const clone = join(temporaryDirectory(), 'a clone elsewhere');
    execFileSync('git', ['clone', '--quiet', ROOT, clone]);
    for (const name of ['node_modules', 'build']) symlinkSync(join(ROOT, name), join(clone, name));
    const sums = (folder: string): string =>
      execFileSync('sha256sum', readdirSync(folder).sort(), { cwd: folder, encoding: 'utf8' });
    expect(sums(builtPackages('1.0.0', clone))).toBe(sums(builtPackages('1.0.0')));
  });

if (level === 'deep')
  test('packages in an empty Debian: installed, a payout is final, upgraded, a backup restored, removed, purged; the wallet stays', async () => {
    const child = spawn(
      join(ROOT, 'scripts/release/try-packages.sh'),
      [builtPackages('1.0.0'), builtPackages('1.0.1')],
      {
        stdio: ['ignore', 'pipe', 'pipe'],
      },
    );
    let said = '';
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (data: Buffer) => {
        said = (said + data.toString()).slice(-20_000);
      });
    const code = await new Promise((resolve) => child.once('close', resolve));
    expect(code, said).toBe(0);
    expect(said).toMatch(/^purge .* the wallet stays$/m);
  });
