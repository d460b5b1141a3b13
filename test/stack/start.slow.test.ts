/** `npm start` as a process: what it says, what it leaves behind, and that a second start goes on where the first ended. */

import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import type { PoolDocument } from '../../pool/api/documents.ts';
import { files, PORTS, type PortName, type Ports, url } from '../../stack/parts.ts';
import { temporaryDirectory } from '../temporary.ts';
import { processesOf } from './processes-of.ts';
import { readJson, stackPorts } from './stack-fixture.ts';

const MAIN = join(import.meta.dirname, '../../stack/main.ts');
const options = (ports: Ports): string[] =>
  (Object.keys(PORTS) as PortName[]).flatMap((name) => [PORTS[name].option, String(ports[name])]);

class Start {
  readonly child: ChildProcess;
  readonly ended: Promise<number>;
  said = '';

  constructor(words: readonly string[]) {
    this.child = spawn(process.execPath, [MAIN, ...words], { stdio: ['ignore', 'pipe', 'pipe'] });
    for (const stream of [this.child.stdout, this.child.stderr])
      stream?.on('data', (chunk: Buffer) => {
        this.said += chunk.toString();
      });
    this.ended = new Promise((resolve) => this.child.once('close', (code) => resolve(code ?? -1)));
    onTestFinished(async () => {
      await this.end();
    });
  }

  says(text: string | RegExp): Promise<void> {
    return expect.poll(() => this.said).toMatch(text);
  }

  async end(signal: NodeJS.Signals = 'SIGINT'): Promise<number> {
    this.child.kill(signal);
    return this.ended;
  }
}

test('starts, ends with Ctrl-C without a process left, goes on at the second start, forgets with --reset, and ends while it is starting', async () => {
  const data = temporaryDirectory();
  const ports = await stackPorts();
  const words = ['--data-dir', data, '--throttle', '5', ...options(ports)];
  const height = async () => (await readJson<PoolDocument>(`${url(ports.web)}/api/v1/pool`)).network_figures.height;
  const address = async () => (await readJson<PoolDocument>(`${url(ports.web)}/api/v1/pool`)).pool_address;

  const first = new Start(words);
  await first.says(`the page is at ${url(ports.web)}/`);
  for (const name of ['node', 'wallet', 'pool', 'bridge']) expect(first.said).toMatch(new RegExp(`${name} +\\S`));
  await expect.poll(height).toBeGreaterThan(2);
  const [reached, paidTo] = [await height(), await address()];
  const miner = /the miner is paid at (\S+), wallet (\S+)/.exec(first.said);
  expect(miner?.[2]).toBe(files(data).minerWallet);
  const wallet = readFileSync(files(data).poolWallet, 'utf8');
  const second = new Start(words);
  expect(await second.ended).not.toBe(0);
  expect(await first.end()).toBe(0);
  expect(processesOf(data)).toEqual([]);

  const again = new Start(words);
  await again.says('the page is at');
  expect(again.said).not.toContain('made a wallet');
  expect(again.said).toContain(miner?.[0]);
  await expect.poll(() => height().catch(() => 0)).toBeGreaterThanOrEqual(reached);
  expect(await address()).toBe(paidTo);
  expect(await again.end('SIGTERM')).toBe(0);

  const kept = [files(data).node, files(data).pool];
  for (const folder of kept) writeFileSync(join(folder, 'of before'), '');
  const reset = new Start([...words, '--reset']);
  // Chain and books are gone before the first program starts, and the wallet is another one; then Ctrl-C, while it is starting.
  await reset.says('made a wallet');
  for (const folder of kept) expect(existsSync(join(folder, 'of before'))).toBe(false);
  expect(readFileSync(files(data).poolWallet, 'utf8')).not.toBe(wallet);
  expect(await reset.end()).toBe(0);
  expect(reset.said).not.toContain('the page is at');
  expect(processesOf(data)).toEqual([]);
});

test('a port in use is named with the option that changes it', async () => {
  const ports = await stackPorts();
  const holder = createServer().listen(ports.soloWs, '127.0.0.1');
  onTestFinished(() => void holder.close());
  const start = new Start(['--data-dir', temporaryDirectory(), ...options(ports)]);
  expect(await start.ended).toBe(1);
  expect(start.said).toContain(`port ${ports.soloWs}`);
  expect(start.said).toContain('--solo-ws-port');
});
