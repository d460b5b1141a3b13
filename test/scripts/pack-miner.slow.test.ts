/** The archive for rigs, unpacked into an empty folder: it mines on the processor without anything of this machine but the system's C library. */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import { elfFiles } from '../../scripts/elf-files.ts';
import { addressOf } from '../bridge/stratum-client.ts';
import { ROOT } from '../guards/project-files.ts';
import { temporaryDirectory } from '../temporary.ts';
import { until } from '../until.ts';

const run = promisify(execFile);
const READY = join(ROOT, 'scripts', 'ready.mjs');
/** As `npm run pack:miner` does, with little effort, which is a third of the work. */
const pack = (...words: string[]) =>
  run(process.execPath, [READY, 'pack:miner', ...words], { env: { ...process.env, GZIP: '-1' } });

test('a packed miner runs where there is neither Node nor a PATH, and by the scripts of HiveOS and mmpOS', async () => {
  const folder = temporaryDirectory();
  // Without a platform it is for this machine.
  const { stdout } = await pack('--hiveos', '--out', folder);
  await run('tar', ['-xzf', stdout.trim().split('\n').at(-1) as string, '-C', folder]);
  const name = readdirSync(folder).find((entry) => !entry.endsWith('.gz')) as string;
  // A folder with a space: scripts that forget quotes fail here.
  const place = join(folder, 'my rig');
  renameSync(join(folder, name), place);
  const bare = { cwd: '/', env: { PATH: '' } };
  const miner = (...words: string[]) => run(join(place, 'svc-miner'), words, bare);
  expect((await miner('--version')).stdout).toMatch(/^svc-miner \d+\.\d+\.\d+\n$/);
  const words = ['--benchmark', '1', '--no-gpu', '--cpu-threads', '1', '--network', 'development', '--json'];
  const { stdout: figures } = await miner(...words, '--data-dir', join(folder, 'data'));
  expect(JSON.parse(figures).hash_rate).toBeGreaterThan(0);
  const files = readdirSync(place, { recursive: true }).join('\n');
  expect(files).toContain(`dist/linux-${process.arch}/dawn.node`);
  expect(files).toContain('lib/libvulkan.so.1');
  expect(elfFiles(place).filter(({ arch }) => arch !== process.arch)).toEqual([]);
  await usedByHive(place, folder);
});

/** What HiveOS does with a custom miner: the flight sheet becomes settings, the miner is run, and its figures are asked for. */
async function usedByHive(place: string, folder: string): Promise<void> {
  const sheet = {
    CUSTOM_URL: 'stratum+tcp://127.0.0.1:9 stratum+tcp://127.0.0.1:10',
    CUSTOM_TEMPLATE: `${addressOf(1)}.rig1`,
    CUSTOM_PASS: '',
    CUSTOM_USER_CONFIG: `--no-gpu --cpu-threads 1 --light --metrics-bind off --data-dir "${join(folder, 'data')}"`,
  };
  const manifest = join(place, 'h-manifest.conf');
  const logs = join(folder, 'log');
  const port = await freePort();
  const words = readFileSync(manifest, 'utf8').replace('/var/log/miner', logs).replace('28770', `${port}`);
  writeFileSync(manifest, words);
  const shell = (script: string) => run('bash', ['-c', script, 'hive', place], { env: { ...process.env, ...sheet } });
  await shell('. "$1/h-config.sh"');
  expect(JSON.parse(readFileSync(join(place, 'config.json'), 'utf8'))).toEqual({
    pool: sheet.CUSTOM_URL.split(' '),
    user: sheet.CUSTOM_TEMPLATE,
    'api-bind': `127.0.0.1:${port}`,
  });
  const miner = spawn(join(place, 'h-run.sh'), { detached: true, stdio: 'ignore' });
  onTestFinished(() => {
    if (miner.exitCode === null) process.kill(-(miner.pid as number), 'SIGKILL');
  });
  const log = () => readFileSync(join(logs, 'svc-miner/svc-miner.log'), 'utf8');
  const figures = await until(async () => {
    if (miner.exitCode !== null) throw new Error(`the miner ended: ${log()}`);
    const { stdout } = await shell('. "$1/h-stats.sh"; echo "$khs $stats"');
    return stdout.includes('{') && stdout;
  });
  expect(figures).toMatch(
    /^0 \{"hs":\[0\],"hs_units":"khs","temp":\[\d+\],"fan":\[0\],"uptime":\d+,"ver":"[\d.]+","ar":\[0,0\],"algo":"svc"\}\n$/,
  );
  const mmpos = await run(join(place, 'mmp-stats.sh'), ['1', 'log'], {
    env: { ...process.env, SVC_MINER_API_PORT: `${port}` },
  });
  expect(JSON.parse(mmpos.stdout)).toEqual({
    busid: ['cpu'],
    hash: [0],
    units: 'hs',
    air: ['0', '0', '0'],
    shares: { accepted: [0], invalid: [0], rejected: [0] },
    miner_name: 'svc-miner',
    miner_version: /EXTERNAL_VERSION=(\S+)/.exec(readFileSync(join(place, 'mmp-external.conf'), 'utf8'))?.[1],
  });
  await until(() => log().includes('pool lost'));
}

/** One that nobody had a moment ago. */
async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  return port;
}

const OTHER = process.arch === 'x64' ? 'arm64' : 'x64';
const MACHINES = { x64: 62, arm64: 183 } as const;

/** The head of a program, as far as it says what processor it is for. */
function elfFor(arch: keyof typeof MACHINES): Buffer {
  const head = Buffer.alloc(64);
  head.write('7f454c46020101', 'hex');
  head.writeUInt16LE(MACHINES[arch], 18);
  return head;
}

/** Stands for what npm and Debian have for that architecture. */
function binariesFor(folder: string, arch: keyof typeof MACHINES): string[] {
  for (const name of ['libvulkan.so.1', 'libstdc++.so.6', 'libgcc_s.so.1', 'node'])
    writeFileSync(join(folder, name), elfFor(arch));
  return ['--libraries', folder, '--node', join(folder, 'node')];
}

test('in an archive for another architecture every program and library is for that one', async () => {
  const folder = temporaryDirectory();
  const given = binariesFor(folder, OTHER);
  const { stdout } = await pack(`linux-${OTHER}`, '--out', folder, ...given);
  const place = join(folder, 'unpacked');
  mkdirSync(place);
  await run('tar', ['-xzf', stdout.trim(), '-C', place, '--strip-components', '1']);
  const files = elfFiles(place);
  expect(files.filter(({ arch }) => arch !== OTHER)).toEqual([]);
  expect(files.map(({ path }) => path).sort()).toEqual([
    'lib-spare/libgcc_s.so.1',
    'lib-spare/libstdc++.so.6',
    'lib/libvulkan.so.1',
    'node',
    `program/node_modules/webgpu/dist/linux-${OTHER}/dawn.node`,
  ]);
});

test('a binary for the wrong architecture, libraries that are missing, or an architecture that is not known: refused with a remedy', async () => {
  const folder = temporaryDirectory();
  const refused = (...words: string[]) => expect(pack(...words, '--out', folder)).rejects;
  const wrong = binariesFor(folder, process.arch as keyof typeof MACHINES);
  await refused(`linux-${OTHER}`, ...wrong).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(new RegExp(`is for ${process.arch}, the archive for ${OTHER}`)),
  });
  await refused(`linux-${OTHER}`, '--libraries', join(folder, 'empty')).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('--libraries'),
  });
  await refused('linux-sparc').toMatchObject({ code: 2 });
});
