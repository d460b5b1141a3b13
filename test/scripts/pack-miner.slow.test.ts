/** The archive for rigs, unpacked into an empty folder: it mines on the processor without anything of this machine but the system's C library. */
import { execFile } from 'node:child_process';
import { readdirSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
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
});

test('another architecture without its libraries, or none, is refused with a remedy', async () => {
  const other = process.arch === 'x64' ? 'linux-arm64' : 'linux-x64';
  await expect(run(process.execPath, [PACK, other, '--out', temporaryDirectory()])).rejects.toMatchObject({
    code: 1,
    stderr: expect.stringContaining('--libraries'),
  });
  await expect(run(process.execPath, [PACK])).rejects.toMatchObject({ code: 2 });
});
