/**
 * Commands of the documents, run as they are written from a fresh folder with a home of its own. Only ports are added, because the usual
 * ones may be another program's. test/guards/documented-commands.ts lists them, and the others with the reason why not.
 */
import { spawn } from 'node:child_process';
import { symlinkSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { freePort } from '../../runtime/free-port.ts';
import { EXECUTED } from '../guards/documented-commands.ts';
import { ROOT } from '../guards/project-files.ts';
import { temporaryDirectory } from '../temporary.ts';
import { until } from '../until.ts';

class Reader {
  readonly folder = temporaryDirectory();
  readonly #env = {
    ...process.env,
    HOME: this.folder,
    PATH: [dirname(process.execPath), join(ROOT, 'bin'), process.env.PATH].join(delimiter),
  };

  start(line: string) {
    const child = spawn('/bin/sh', ['-c', `exec ${line}`], {
      cwd: this.folder,
      env: this.#env,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const running = {
      child,
      said: '',
      ended: new Promise<number>((resolve) => child.once('close', (code) => resolve(code ?? -1))),
    };
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (chunk) => {
        running.said += chunk;
      });
    onTestFinished(async () => {
      child.kill('SIGKILL');
      await running.ended;
    });
    return running;
  }

  async run(line: string): Promise<string> {
    const running = this.start(line);
    expect(await running.ended, `${line}: ${running.said}`).toBe(0);
    return running.said;
  }
}

test('commands of the documents do what they say', async () => {
  const reader = new Reader();
  symlinkSync(join(ROOT, 'bin'), join(reader.folder, 'bin'));
  const [api, mining] = [await freePort(), await freePort()];
  const served = `--api-bind 127.0.0.1:${api} --mining-bind 127.0.0.1:${mining}`;
  let address = '';
  const said: string[] = [];
  let node: ReturnType<Reader['start']> | undefined;
  for (const line of EXECUTED) {
    if (line.startsWith('svcd run')) {
      const started = reader.start(`bin/${line} ${served}`);
      node = started;
      await until(
        async () => (await fetch(`http://127.0.0.1:${api}/v1/node/status`).catch(() => undefined)) !== undefined,
      );
    } else if (line === 'svc-wallet balance') {
      said.push(await reader.run(`${line} --service http://127.0.0.1:${api}`));
      node?.child.kill('SIGINT');
      expect(await node?.ended, node?.said).toBe(0);
    } else {
      said.push(await reader.run(line.replace('ADDRESS', address)));
      address = /dsvc1[0-9a-z]{20,}/.exec(said.at(-1) ?? '')?.[0] ?? address;
    }
  }
  expect(said[0]).toContain('24 words');
  expect(address).not.toBe('');
});
