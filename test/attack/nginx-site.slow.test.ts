/**
 * The nginx site of deploy/ before a whole pool, both real: miners in browsers are limited and banned one by one, by their own
 * addresses, and what they write into X-Forwarded-For themselves changes nothing.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { Agent, get } from 'node:https';
import { connect } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { WebSocket } from 'ws';
import { freePorts } from '../../runtime/free-port.ts';
import { lookAround } from '../../scripts/ready/system-packages.mjs';
import { TEST_CERTIFICATE } from '../miner/certificate.ts';
import { MINER_ADDRESS } from '../miner/pool-fixture.ts';
import { type StackFixture, startStack } from '../stack/stack-fixture.ts';

const MOST_PER_ADDRESS = 3;
const PING = '{"jsonrpc":"2.0","id":1,"method":"mining.ping"}';

let stack: StackFixture;
let nginx: ChildProcess;
let port: number;

/** The file as it is shipped; ports, certificate and folders are those of this test. */
function site(ports: { readonly https: number; readonly http: number; readonly pool: number }, folder: string): string {
  const shipped = readFileSync(join(import.meta.dirname, '../../deploy/nginx/pool.conf'), 'utf8');
  return shipped
    .replaceAll(/^\s*listen \[::\].*\n/gm, '')
    .replace('listen 443 ssl;', `listen 127.0.0.1:${ports.https} ssl;`)
    .replace('listen 80;', `listen 127.0.0.1:${ports.http};`)
    .replaceAll('127.0.0.1:28740', `127.0.0.1:${ports.pool}`)
    .replaceAll(/\/etc\/letsencrypt\/live\/pool.example\//g, `${folder}/`);
}

beforeAll(async () => {
  stack = await startStack({
    pace: { cutMillis: 600 },
    poolWords: ['--trusted-proxy', '127.0.0.1', '--ban-score', '20', '--max-per-address', String(MOST_PER_ADDRESS)],
  });
  const [https = 0, http = 0] = await freePorts(2);
  port = https;
  const folder = stack.data;
  writeFileSync(join(folder, 'fullchain.pem'), TEST_CERTIFICATE.cert);
  writeFileSync(join(folder, 'privkey.pem'), TEST_CERTIFICATE.key, { mode: 0o600 });
  writeFileSync(join(folder, 'site.conf'), site({ https, http, pool: stack.ports.web }, folder));
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (name) => `${name}_temp_path ${folder}/${name};`,
  );
  writeFileSync(
    join(folder, 'nginx.conf'),
    `daemon off; master_process off; pid ${folder}/nginx.pid; error_log ${folder}/nginx.log;
events {} http { access_log off; ${temporary.join(' ')} include ${folder}/site.conf; }`,
  );
  const command = lookAround(process.env).command('nginx') ? 'nginx' : '/usr/sbin/nginx';
  nginx = spawn(command, ['-e', `${folder}/nginx.log`, '-p', folder, '-c', `${folder}/nginx.conf`], {
    stdio: 'inherit',
  });
  while (nginx.exitCode === null && !(await isOpen(port))) await sleep(50);
  expect(nginx.exitCode, 'nginx takes the site file').toBeNull();
});

afterAll(async () => {
  if (nginx?.exitCode === null) {
    nginx.kill('SIGTERM');
    await once(nginx, 'exit');
  }
  await stack?.stop();
});

const isOpen = (at: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(at, '127.0.0.1', () => {
      socket.destroy();
      resolve(true);
    });
    socket.on('error', () => resolve(false));
  });

type Miner = { readonly socket: WebSocket; text: string; readonly closed: Promise<void> };

/** A browser at an address of its own, on the pool's own page. */
function miner(address: string, headers: Record<string, string> = {}): Promise<Miner | number> {
  const socket = new WebSocket(`wss://127.0.0.1:${port}/stratum/pplns`, ['svc-mining-v1'], {
    localAddress: address,
    rejectUnauthorized: false,
    headers: { host: 'pool.example', origin: 'https://pool.example', ...headers },
  });
  onTestFinished(() => socket.terminate());
  const closed = new Promise<void>((resolve) => socket.on('close', () => resolve()));
  const found: Miner = { socket, text: '', closed };
  socket.on('message', (data) => {
    found.text += `${data}\n`;
  });
  return new Promise((resolve) => {
    socket.on('error', () => {});
    socket.on('open', () => resolve(found));
    socket.on('unexpected-response', (_request, response) => resolve(response.statusCode ?? 0));
  });
}

async function opened(address: string, headers?: Record<string, string>): Promise<Miner> {
  const found = await miner(address, headers);
  if (typeof found === 'number') throw new Error(`refused with ${found}`);
  return found;
}

async function expectServed(address: string): Promise<void> {
  const { socket, ...found } = await opened(address);
  const answered = once(socket, 'message') as Promise<[Buffer]>;
  socket.send(PING);
  expect(String((await answered)[0])).toContain('"result":{}');
  socket.close();
  await found.closed;
}

test('a web miner that misbehaves is banned, and no other, whatever addresses it claims', async () => {
  const bad = await opened('127.0.0.2', { 'x-forwarded-for': '203.0.113.77, 127.0.0.3' });
  for (let i = 0; i < 8; i++) bad.socket.send('{nonsense}');
  await bad.closed;
  expect(bad.text).toContain('"code":28');
  const token = readFileSync(join(stack.files.pool, 'operator.token'), 'utf8').trim();
  const bans = async () => {
    const answer = await fetch(`${stack.webUrl}/api/v1/operator/bans`, {
      headers: { authorization: `Bearer ${token}` },
    });
    return ((await answer.json()) as { bans: { key: string }[] }).bans.map(({ key }) => key);
  };
  await expect.poll(bans).toEqual(['proxied-127.0.0.2']);
  const again = await opened('127.0.0.2');
  await again.closed;
  expect(again.text).toContain('"retry_after_millis"');
  await expectServed('127.0.0.3');
});

test('the limit of connections of one address counts each web miner by itself', async () => {
  const held = await Promise.all(Array.from({ length: MOST_PER_ADDRESS }, () => opened('127.0.0.4')));
  expect(await miner('127.0.0.4')).toBe(503);
  await expectServed('127.0.0.5');
  for (const { socket } of held) expect(socket.readyState).toBe(WebSocket.OPEN);
});

const status = (address: string, agent: Agent): Promise<number> =>
  new Promise((resolve, reject) => {
    const options = { localAddress: address, rejectUnauthorized: false, headers: { host: 'pool.example' }, agent };
    // A list that is not there is as dear to ask for as one that is: a slow machine, too, asks faster than the allowance grows.
    const path = `/api/v1/proofs/pplns/1000000?address=${MINER_ADDRESS}`;
    const request = get(`https://127.0.0.1:${port}${path}`, options, (response) => {
      response.resume();
      response.on('end', () => resolve(response.statusCode ?? 0));
    });
    request.on('error', reject);
  });

test('who reads the API too fast is asked to wait, and nobody else behind the proxy is', async () => {
  const [fast, slow] = [new Agent({ keepAlive: true, maxSockets: 20 }), new Agent()];
  onTestFinished(() => fast.destroy());
  const seen = new Set<number>();
  for (let i = 0; i < 200 && !seen.has(429); i++)
    for (const each of await Promise.all(Array.from({ length: 40 }, () => status('127.0.0.6', fast)))) seen.add(each);
  expect([...seen].sort()).toEqual([404, 429]);
  expect(await status('127.0.0.7', slow)).toBe(404);
});

test('the page of a site on another port than 443 has its live figures', async () => {
  const socket = new WebSocket(`wss://127.0.0.1:${port}/api/v1/live`, {
    origin: `https://127.0.0.1:${port}`,
    rejectUnauthorized: false,
  });
  await once(socket, 'open');
  socket.close();
});
