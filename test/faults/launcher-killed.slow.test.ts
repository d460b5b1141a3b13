/**
 * kill -9 of the process that started a program: of the launcher that runs a program on the carried Node, and of `npm start`. The
 * children end in order by themselves, and the same command works again at once.
 */

import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { PORTS, type PortName, type Ports } from '../../stack/parts.ts';
import { MINER_ADDRESS, PoolFixture } from '../miner/pool-fixture.ts';
import { processesOf } from '../stack/processes-of.ts';
import { stackPorts } from '../stack/stack-fixture.ts';
import { temporaryDirectory } from '../temporary.ts';

const ROOT = join(import.meta.dirname, '../..');

/** Makes the Node of this test pass for an old one, so that a launcher starts the carried Node. */
function oldNode(): Record<string, string> {
  const file = join(temporaryDirectory(), 'old.cjs');
  writeFileSync(
    file,
    `if (process.env.PLAY_OLD === '1') {
       process.env.PLAY_OLD = '0';
       Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '20.0.0' } });
     }`,
  );
  return { PLAY_OLD: '1', NODE_OPTIONS: `--require=${file}` };
}

class Started {
  readonly child: ChildProcess;
  said = '';

  constructor(words: readonly string[], env: Record<string, string> = {}) {
    this.child = spawn(process.execPath, words, {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, ...env },
    });
    for (const stream of [this.child.stdout, this.child.stderr])
      stream?.on('data', (chunk: Buffer) => {
        this.said += chunk.toString();
      });
    onTestFinished(() => void this.child.kill('SIGKILL'));
  }

  says(text: string): Promise<void> {
    return expect.poll(() => this.said, { interval: 50 }).toContain(text);
  }

  kill(signal: NodeJS.Signals): Promise<void> {
    return new Promise((resolve) => {
      this.child.once('exit', () => resolve());
      this.child.kill(signal);
    });
  }
}

const nobodyLeft = (data: string): Promise<void> => expect.poll(() => processesOf(data)).toEqual([]);

test('a node outlives its launcher by moments, and starts again at once', async () => {
  const data = join(temporaryDirectory(), 'node');
  const words = [join(ROOT, 'bin/svcd'), 'run', '--network', 'development', '--data-dir', data];
  const ports = ['--api-bind', 'off', '--mining-bind', '127.0.0.1:0', '--metrics-bind', '127.0.0.1:0'];
  const first = new Started([...words, ...ports], oldNode());
  await first.says('mining listener');
  expect(processesOf(data).length).toBe(2);
  await first.kill('SIGKILL');
  const again = new Started([...words, ...ports]);
  await again.says('mining listener');
  // The first has given its store away some time before it is gone.
  await first.says('stopped');
  await expect.poll(() => processesOf(data).length).toBe(1);
  await again.kill('SIGTERM');
  await nobodyLeft(data);
});

test('a miner outlives its launcher by moments', async () => {
  const pool = await new PoolFixture({ shareWork: 60_000n }).listen();
  onTestFinished(() => pool.close());
  const data = temporaryDirectory();
  const words = ['-o', pool.url, '-u', MINER_ADDRESS, '--no-gpu', '--cpu-threads', '1', '--data-dir', data];
  const off = ['--api-bind', 'off', '--metrics-bind', 'off'];
  const miner = new Started([join(ROOT, 'bin/svc-miner'), ...words, ...off], oldNode());
  await expect.poll(() => pool.accepted).toBeGreaterThan(0);
  await miner.kill('SIGKILL');
  await nobodyLeft(data);
  await expect.poll(() => pool.clients.size).toBe(0);
});

test('the whole stack ends when npm start is killed, and starts again at once', async () => {
  const data = temporaryDirectory();
  mkdirSync(data, { recursive: true });
  const ports: Ports = await stackPorts();
  const options = (Object.keys(PORTS) as PortName[]).flatMap((name) => [PORTS[name].option, String(ports[name])]);
  const words = [join(ROOT, 'stack/main.ts'), '--data-dir', data, '--no-miner', ...options];
  const first = new Started(words);
  await first.says('JSON-RPC');
  expect(processesOf(data).length).toBeGreaterThanOrEqual(3);
  await first.kill('SIGKILL');
  await nobodyLeft(data);
  const again = new Started(words);
  await again.says('JSON-RPC');
  expect(again.said).not.toContain('made a wallet');
  await again.kill('SIGTERM');
  await nobodyLeft(data);
});

test('a program started by hand has no parent to watch', async () => {
  const env = { SVC_PARENT_FD: '3' };
  const started = new Started([join(ROOT, 'bin/svcd'), '--version'], env);
  await started.says('svcd ');
});
