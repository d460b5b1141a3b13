/** The archive for rigs, unpacked into an empty folder: it mines on the processor without anything of this machine but the system's C library. */
import { execFile } from 'node:child_process';
import { mkdirSync, readdirSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { elfFiles } from '../../scripts/elf-files.ts';
import { ROOT } from '../guards/project-files.ts';
import { temporaryDirectory } from '../temporary.ts';

const run = promisify(execFile);
const PACK = join(ROOT, 'scripts', 'pack-miner.ts');

test('a packed miner runs where there is neither Node nor a PATH', async () => {
  const folder = temporaryDirectory();
  const { stdout } = await run(process.execPath, [PACK, `linux-${process.arch}`, '--out', folder]);
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
  const { stdout: libraries } = await run('tar', ['-tzf', stdout.trim().split('\n').at(-1) as string]);
  expect(libraries).toContain(`dist/linux-${process.arch}/dawn.node`);
  expect(libraries).toContain('lib/libvulkan.so.1');
  expect(elfFiles(place).filter(({ arch }) => arch !== process.arch)).toEqual([]);
});

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
  const { stdout } = await run(process.execPath, [PACK, `linux-${OTHER}`, '--out', folder, ...given]);
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
  const pack = (...words: string[]) => run(process.execPath, [PACK, ...words, '--out', folder]);
  const wrong = binariesFor(folder, process.arch as keyof typeof MACHINES);
  await expect(pack(`linux-${OTHER}`, ...wrong)).rejects.toMatchObject({
    code: 1,
    stderr: expect.stringMatching(new RegExp(`is for ${process.arch}, the archive for ${OTHER}`)),
  });
  await expect(pack(`linux-${OTHER}`, '--libraries', join(folder, 'empty'))).rejects.toMatchObject({
    code: 1,
    stderr: expect.stringContaining('--libraries'),
  });
  await expect(pack('linux-sparc')).rejects.toMatchObject({ code: 2 });
});
