/**
 * `npm run pack:miner -- [linux-x64|linux-arm64] [--hiveos] [--out DIR] [--libraries DIR] [--node FILE]`: one archive for rigs with
 * Node, Dawn, the Vulkan loader and the miner. It runs on a machine that has nothing but a graphics driver, from any folder.
 * With `--hiveos` it is named as HiveOS wants a custom miner, and has the scripts that HiveOS and mmpOS call.
 */
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { elfFiles } from './elf-files.ts';
import { packModules, packSources } from './packed-modules.ts';
import { nodeBinary } from './release/node-binary.ts';

const root = join(import.meta.dirname, '..');
const SOURCES = [
  'package.json',
  'LICENSE',
  'miner',
  'kernels',
  'protocol',
  'runtime',
  'build/kernels',
  'vectors/pow.json',
];
const MODULES = ['@noble/hashes', '@noble/post-quantum', '@scure/base', '@scure/bip39', 'prom-client', 'ws'];

type Platform = { readonly arch: string; readonly folders: readonly string[] };
const PLATFORMS: Readonly<Record<string, Platform>> = {
  'linux-x64': { arch: 'x64', folders: ['/usr/lib/x86_64-linux-gnu', '/usr/lib64', '/usr/lib'] },
  'linux-arm64': { arch: 'arm64', folders: ['/usr/lib/aarch64-linux-gnu', '/usr/lib64', '/usr/lib'] },
};
/** The loader is always used; what Node itself needs only where the machine has none. */
const LOADER = 'libvulkan.so.1';
const SPARE = ['libstdc++.so.6', 'libgcc_s.so.1'];

/** Commands of the shell alone, so that it works with an empty PATH. */
const LAUNCHER = `#!/bin/sh
# Starts the miner with the Node beside it.
here=\${0%/*}
if [ -L "$0" ]; then real=$(readlink -f "$0") && here=\${real%/*}; fi
libraries=$here/lib
LD_LIBRARY_PATH= "$here/node" --version >/dev/null 2>&1 || libraries=$here/lib:$here/lib-spare
export LD_LIBRARY_PATH="$libraries\${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
exec "$here/node" "$here/program/miner/main.ts" "$@"
`;

const README = `svc-miner for Linux, with all that it needs but the graphics driver.

  ./svc-miner --list-devices
  ./svc-miner -o stratum+tcp://POOL:28720 -u ADDRESS.WORKER
  ./svc-miner --help

Cards of NVIDIA without a display: set VK_ICD_FILENAMES to the driver's nvidia_icd.json if --list-devices does not show them.
`;

class Refused extends Error {}

const PACKAGES = ['libvulkan1', 'libstdc++6', 'libgcc-s1'];
const DEBIAN_NAMES: Readonly<Record<string, string>> = { x64: 'amd64', arm64: 'arm64' };

/**
 * Libraries of another architecture from the Debian mirror of this machine, without changing anything of its package
 * lists: the unpacked folder; undefined if there is no apt, or the mirror is unavailable.
 */
function fetchDebianLibraries(arch: string, scratch: string): string | undefined {
  const apt = join(scratch, 'apt');
  const unpacked = join(apt, 'unpacked');
  for (const path of ['lists/partial', 'cache/archives/partial', 'unpacked'])
    mkdirSync(join(apt, path), { recursive: true });
  const own = [
    `Dir::State::Lists=${join(apt, 'lists')}`,
    'Dir::State::status=/dev/null',
    `Dir::Cache=${join(apt, 'cache')}`,
    `APT::Architecture=${DEBIAN_NAMES[arch]}`,
    `APT::Architectures=${DEBIAN_NAMES[arch]}`,
    'APT::Sandbox::User=root',
    'Debug::NoLocking=1',
  ].flatMap((setting) => ['-o', setting]);
  const quiet = { cwd: apt, stdio: 'ignore' } as const;
  try {
    execFileSync('apt-get', [...own, 'update'], quiet);
    execFileSync('apt-get', [...own, 'download', ...PACKAGES], quiet);
    for (const name of readdirSync(apt))
      if (name.endsWith('.deb')) execFileSync('dpkg-deb', ['-x', join(apt, name), unpacked], quiet);
    return unpacked;
  } catch {
    return undefined;
  }
}

/** Where the libraries are: the folder that was named, this machine's own, or what Debian has for another architecture. */
function libraryFolders({ arch, folders }: Platform, given: string | undefined, scratch: string): string[] {
  if (given !== undefined) return [resolve(given)];
  if (process.arch === arch) return [...folders];
  process.stdout.write(`fetching libraries for ${arch} from Debian\n`);
  const fetched = fetchDebianLibraries(arch, scratch);
  return fetched === undefined ? [] : folders.flatMap((path) => [join(fetched, path), join(fetched, path.slice(4))]);
}

function library(name: string, arch: string, folders: readonly string[]): string {
  const found = folders.map((folder) => join(folder, name)).find((path) => existsSync(path));
  if (found === undefined)
    throw new Refused(
      `${name} for ${arch} was not found: unpack the Debian packages libvulkan1, libstdc++6 and libgcc-s1 of that architecture ` +
        '(dpkg-deb -x FILE DIR) and name the folder of the libraries with --libraries',
    );
  return found;
}

function carriedNode(platform: string, scratch: string): string {
  const found = nodeBinary(root, platform, scratch);
  if (found === undefined)
    throw new Refused(`Node for ${platform} could not be fetched from npm: name one with --node FILE`);
  return found;
}

type Given = {
  readonly out: string;
  readonly hiveos: boolean;
  readonly libraries?: string | undefined;
  readonly node?: string | undefined;
};

/** A rig would say no more than `Exec format error`. */
function insistOn(arch: string, folder: string): void {
  for (const file of elfFiles(folder))
    if (file.arch !== arch) throw new Refused(`${file.path} is for ${file.arch}, the archive for ${arch}`);
}

/** Of HiveOS and of mmpOS, which have different names. */
function addRigScripts(folder: string, version: string): void {
  for (const system of ['hiveos', 'mmpos']) cpSync(join(root, 'deploy', system), folder, { recursive: true });
  for (const name of ['h-manifest.conf', 'mmp-external.conf']) {
    const path = join(folder, name);
    writeFileSync(path, readFileSync(path, 'utf8').replace('=VERSION', `=${version}`));
  }
  for (const name of ['h-run.sh', 'mmp-stats.sh']) chmodSync(join(folder, name), 0o755);
}

function pack(platform: string, { out, hiveos, libraries, node }: Given): string {
  const target = PLATFORMS[platform] as Platform;
  const scratch = mkdtempSync(join(tmpdir(), 'svc-pack-'));
  try {
    const folders = libraryFolders(target, libraries, scratch);
    const found = new Map([LOADER, ...SPARE].map((name) => [name, library(name, target.arch, folders)]));
    const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string };
    const archiveName = hiveos ? `svc-miner-${version}` : `svc-miner-${version}-${platform}`;
    const name = hiveos ? 'svc-miner' : archiveName;
    const folder = join(scratch, name);
    const program = join(folder, 'program');
    for (const path of ['lib', 'lib-spare', 'program']) mkdirSync(join(folder, path), { recursive: true });
    packSources(root, SOURCES, program);
    packModules(root, MODULES, program);
    const dawn = join('node_modules', 'webgpu');
    for (const file of ['package.json', 'index.js', 'LICENSE.md', join('dist', platform)])
      cpSync(join(root, dawn, file), join(program, dawn, file), { recursive: true });
    copyFileSync(node ?? carriedNode(platform, scratch), join(folder, 'node'));
    for (const [library, path] of found)
      copyFileSync(path, join(folder, library === LOADER ? 'lib' : 'lib-spare', library));
    writeFileSync(join(folder, 'svc-miner'), LAUNCHER);
    writeFileSync(join(folder, 'README'), README);
    if (hiveos) addRigScripts(folder, version);
    for (const file of ['node', 'svc-miner']) chmodSync(join(folder, file), 0o755);
    insistOn(target.arch, folder);
    mkdirSync(out, { recursive: true });
    const archive = join(out, `${archiveName}.tar.gz`);
    execFileSync('tar', ['--owner=0', '--group=0', '--numeric-owner', '-C', scratch, '-czf', archive, name]);
    return archive;
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

const { values, positionals } = parseArgs({
  options: {
    out: { type: 'string', default: join(root, 'build', 'packed') },
    hiveos: { type: 'boolean', default: false },
    libraries: { type: 'string' },
    node: { type: 'string' },
  },
  allowPositionals: true,
});
const [platform = `${process.platform}-${process.arch}`] = positionals;
if (PLATFORMS[platform] === undefined) {
  process.stderr.write(
    `usage: npm run pack:miner -- [${Object.keys(PLATFORMS).join('|')}] [--hiveos] [--out DIR] [--libraries DIR] [--node FILE]\n`,
  );
  process.exitCode = 2;
} else {
  try {
    process.stdout.write(`${pack(platform, values)}\n`);
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    process.stderr.write(`pack:miner: ${error.message}\n`);
    process.exitCode = 1;
  }
}
