/** Starts the programs as an operator would, on free ports, and stops them. Nothing of the project is imported. */
import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { get, post, until } from './client.ts';
import type { Target } from './fact.ts';

const bin = (name: string): string => fileURLToPath(new URL(`../../bin/${name}`, import.meta.url));

/** Below the range of outgoing connections, so that no other program gets it in between. */
async function freePort(): Promise<number> {
  for (;;) {
    const port = 12_000 + Math.floor(20_000 * Math.random());
    const server = createServer();
    const isFree = await new Promise<boolean>((resolve) => {
      server.once('error', () => resolve(false));
      server.listen({ port, host: '127.0.0.1', exclusive: true }, () => server.close(() => resolve(true)));
    });
    if (isFree) return port;
  }
}

const isUp = (url: string): Promise<boolean> =>
  get(url).then(
    ({ status }) => status === 200,
    () => false,
  );

export async function startPrograms(): Promise<{ readonly target: Target; stop(): Promise<void> }> {
  const directory = mkdtempSync(join(tmpdir(), 'svc-conformance-'));
  const children: { kill(): Promise<void> }[] = [];
  const start = (name: string, ...words: string[]): void => {
    const child = spawn(process.execPath, [bin(name), ...words], { stdio: 'ignore', cwd: directory });
    const gone = new Promise<void>((resolve) => child.once('exit', () => resolve()));
    children.push({
      async kill() {
        child.kill('SIGKILL');
        await gone;
      },
    });
  };
  const run = (name: string, ...words: string[]): Record<string, unknown> => {
    const { stdout, stderr, status } = spawnSync(process.execPath, [bin(name), ...words], {
      cwd: directory,
      encoding: 'utf8',
    });
    if (status !== 0) throw new Error(`${name} ${words.join(' ')}: ${stderr}`);
    return JSON.parse(stdout) as Record<string, unknown>;
  };
  const ports = await Promise.all(Array.from({ length: 10 }, freePort));
  const at = (i: number): string => `127.0.0.1:${ports[i]}`;
  const url = (i: number): string => `http://${at(i)}`;
  const file = join(directory, 'wallet.json');
  run('svc-wallet', 'init', '--generate-password', '--json', '--file', file);
  // There is no node yet: a wallet hands out addresses without one.
  const address = String(run('svc-wallet', 'new-address', '--json', '--file', file, '--service', url(0)).address);
  start(
    'svcd',
    ...['run', '--data-dir', join(directory, 'node'), '--cut-millis', '300', '--pow-mode', 'light'],
    ...['--signature-threads', '1', '--initial-work', '2000', '--minimum-work', '2000'],
    // Several outputs: payments under way do not hold those of the next.
    ...Array.from({ length: 8 }, () => ['--fund', `${address}=1000`]).flat(),
    ...['--api-bind', at(0), '--mining-bind', at(1), '--metrics-bind', at(4), '--p2p-listen', at(9)],
  );
  await until(() => isUp(`${url(0)}/health`), Boolean);
  start('svc-wallet', 'daemon', '--file', file, '--listen', at(2), '--service', url(0));
  start(
    'svc-bridge',
    ...['--node', url(1), '--listen', at(3), '--listen-ws', 'off', '--stats-bind', at(7), '--metrics-bind', at(5)],
    ...['--threads', '1', '--verify-threads', '1', '--pow-mode', 'light'],
  );
  await until(() => isUp(`${url(2)}/health`), Boolean);
  await until(() => isUp(`${url(5)}/metrics`), Boolean);
  start(
    'svc-miner',
    ...['-o', `stratum+tcp://${at(3)}`, '-u', `${address}.conformance`, '--cpu-threads', '1', '--throttle', '5'],
    ...['--data-dir', join(directory, 'miner'), '--api-bind', at(8), '--metrics-bind', at(6)],
  );
  await until(() => isUp(`${url(6)}/metrics`), Boolean);
  const token = readFileSync(`${file}.token`, 'utf8').trim();
  // Checks read a transaction that is final.
  const params = { to: address, amount: '1', request_id: 'first' };
  const call = { jsonrpc: '2.0', id: 1, method: 'send', params };
  const pay = () => post(`${url(2)}/v1/rpc`, call, { authorization: `Bearer ${token}` });
  await until(pay, ({ json }) => (json.result as { state?: string } | undefined)?.state === 'finalized');
  return {
    target: {
      api: url(0),
      mining: url(1),
      wallet: url(2),
      token,
      stratum: at(3),
      nodeMetrics: url(4),
      bridgeMetrics: url(5),
      minerMetrics: url(6),
      bridgeStats: url(7),
      minerStats: url(8),
      address,
    },
    async stop() {
      await Promise.all(children.map((child) => child.kill()));
      rmSync(directory, { recursive: true, force: true });
    },
  };
}
