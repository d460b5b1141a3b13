/** The miner's API against a web page in the operator's browser: neither its origin nor a name that leads to this machine reads it. */
import { request } from 'node:http';
import { expect, onTestFinished, test } from 'vitest';
import { listenForApi } from '../../miner/api.ts';
import { quietLog } from '../quiet-log.ts';

test('a page that rebinds its name to this machine learns nothing; programs are served', async () => {
  let paused = 0;
  const actions = {
    stats: () => ({ address: 'dsvc1...', pools: [] }),
    pause: () => void paused++,
    resume: () => undefined,
  };
  const api = await listenForApi({ host: '127.0.0.1', port: 0 }, 'secret', { actions, log: quietLog });
  onTestFinished(() => api.close());
  const ask = (method: string, path: string, headers: Record<string, string>) =>
    new Promise<[number | undefined, string]>((resolve, reject) => {
      const asked = request({ host: '127.0.0.1', port: api.address.port, method, path, headers }, (answer) => {
        let text = '';
        answer.on('data', (part) => {
          text += part;
        });
        answer.on('end', () => resolve([answer.statusCode, text]));
      });
      asked.on('error', reject).end();
    });
  for (const host of [
    'evil.example',
    `evil.example:${api.address.port}`,
    '127.0.0.1.evil.example',
    'localhost.evil.example',
  ]) {
    const [status, text] = await ask('GET', '/v1/stats', { host });
    expect([host, status]).toEqual([host, 421]);
    expect(text).not.toContain('dsvc1');
    expect((await ask('POST', '/v1/pause', { host, authorization: 'Bearer secret' }))[0]).toBe(421);
  }
  expect((await ask('GET', '/v1/stats', { host: '127.0.0.1', origin: 'https://evil.example' }))[0]).toBe(403);
  expect(paused).toBe(0);
  for (const host of ['127.0.0.1', 'localhost:28770', '[::1]:28770', 'rig7', 'rig7.local'])
    expect((await ask('GET', '/v1/stats', { host }))[0]).toBe(200);
  expect(await ask('POST', '/v1/pause', { authorization: 'Bearer secret' })).toEqual([200, '{"paused":true}\n']);
  expect((await ask('POST', '/v1/pause', { authorization: 'Bearer wrong' }))[0]).toBe(401);
});
