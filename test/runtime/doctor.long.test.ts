/** `doctor` of the real programs: it ends by itself, says one line for each check, and its exit code is that of its findings. */
import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import packageJson from '../../package.json' with { type: 'json' };
import { temporaryDirectory } from '../temporary.ts';

const project = new URL('../../', import.meta.url).pathname;

/** What each program looks at without further options. */
const CHECKS = {
  svcd: ['time service', 'memory', 'open files', 'api-bind', 'mining-bind'],
  'svc-wallet': ['time service', 'wallet file', 'token', 'listen', 'node', 'clock'],
  'svc-bridge': ['time service', 'memory', 'open files', 'listen', 'listen-ws'],
  'svc-pool': ['time service', 'memory', 'open files', 'web-bind', 'database', 'redis', 'pool key', 'operator token'],
  'svc-proxy': ['time service', 'memory', 'open files', 'listen', 'web-bind', 'address'],
  'svc-miner': ['time service', 'memory', 'devices', 'api-bind', 'address'],
};

const directoryWords = (name: string, directory: string): string[] =>
  name === 'svc-wallet' ? ['--file', join(directory, 'wallet.json')] : ['--data-dir', join(directory, 'data')];

test.each(Object.entries(packageJson.bin))('%s doctor', (name, file) => {
  const directory = temporaryDirectory();
  const words = ['doctor', ...directoryWords(name, directory), '--json'];
  const { status, stdout, stderr } = spawnSync(process.execPath, [join(project, file), ...words], { encoding: 'utf8' });
  expect(stderr).toBe('');
  const { program, findings } = JSON.parse(stdout) as {
    program: string;
    findings: { check: string; state: string; remedy?: string }[];
  };
  expect(program).toBe(name);
  expect(findings.map(({ check }) => check)).toEqual(
    expect.arrayContaining(['data directory', 'disk', ...CHECKS[name as keyof typeof CHECKS]]),
  );
  for (const { state, remedy } of findings) expect(remedy === undefined).toBe(state === 'ok');
  expect(status).toBe(findings.some(({ state }) => state === 'bad') ? 1 : 0);
  expect(readdirSync(directory)).toEqual([]);
});

test.each(['svc-miner', 'svc-proxy'] as const)('%s doctor looks whether each pool can be reached', async (name) => {
  // The system accepts connections for it while this process waits for the program.
  const server = createServer();
  onTestFinished(() => void server.close());
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const pools = [`stratum2+tcp://127.0.0.1:${port}`, 'stratum2+tcp://127.0.0.1:1'];
  const words = ['doctor', ...pools.flatMap((pool) => ['-o', pool]), '--data-dir', temporaryDirectory(), '--json'];
  const { status, stdout } = spawnSync(process.execPath, [join(project, packageJson.bin[name]), ...words], {
    encoding: 'utf8',
  });
  const { findings } = JSON.parse(stdout) as { findings: { check: string; state: string }[] };
  expect(findings.filter(({ check }) => check === 'pool').map(({ state }) => state)).toEqual(['ok', 'bad']);
  expect(status).toBe(1);
});
