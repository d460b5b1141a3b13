import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { endServer } from '../shared-databases.ts';
import { temporaryDirectory } from '../temporary.ts';

test('a server that does not end when it is told to is killed, and the run says so', async () => {
  const server = spawn('sh', ['-c', 'trap "" INT; echo there; read forever'], { stdio: ['pipe', 'pipe', 'ignore'] });
  onTestFinished(() => void server.kill('SIGKILL'));
  const gone = once(server, 'exit');
  await once(server.stdout, 'data');
  const file = join(temporaryDirectory(), 'postmaster.pid');
  writeFileSync(file, `${server.pid}\nmore\n`);
  const said: string[] = [];
  await endServer(file, (line) => void said.push(line), 100);
  expect(await gone).toEqual([null, 'SIGKILL']);
  expect(said).toEqual([expect.stringContaining(`(process ${server.pid}) did not end in 0.1 s`)]);
});
