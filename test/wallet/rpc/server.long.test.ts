/** The daemon's listener: token, limits, malformed requests, events over the WebSocket, TLS in front. */
import { chmodSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { request as httpRequest } from 'node:http';
import { dirname, join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { WebSocket } from 'ws';
import { TrustedProxies } from '../../../runtime/clients/client-address.ts';
import { isSecureCall } from '../../../wallet/rpc/secure-call.ts';
import { SERVER_LIMITS, WalletServer, type WalletServerOptions } from '../../../wallet/rpc/server.ts';
import { readOrCreateToken, readToken } from '../../../wallet/rpc/token.ts';
import { temporaryDirectory } from '../../temporary.ts';
import { FakeNode } from '../fake-node.ts';
import { fundedWallet, openTestWallet, type TestWallet } from '../open-wallet.ts';

const token = 'test-token-of-more-than-32-characters';
const COIN = 100_000_000n;

async function serve({ wallet }: TestWallet, options: Partial<WalletServerOptions> = {}) {
  const server = new WalletServer(wallet, {
    listen: { host: '127.0.0.1', port: 0 },
    allowRemote: false,
    token,
    ...options,
  });
  const { port } = await server.start();
  onTestFinished(() => server.close());
  const url = `http://127.0.0.1:${port}`;
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  const post = async (body: string, more: Record<string, string> = {}) => {
    const answer = await fetch(`${url}/v1/rpc`, { method: 'POST', headers: { ...headers, ...more }, body });
    return { status: answer.status, body: (await answer.json()) as Record<string, unknown> };
  };
  return { url, port, post, headers };
}

test('health needs no token; everything else does', async () => {
  const { url, post } = await serve(await openTestWallet(new FakeNode()));
  const health = await fetch(`${url}/health`);
  expect([health.status, await health.text()]).toEqual([200, 'ok']);
  const call = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'status', params: {} });
  expect(await post(call)).toMatchObject({
    status: 200,
    body: { jsonrpc: '2.0', id: 1, result: { network: 'development' } },
  });
  for (const authorization of ['', `Bearer ${token}x`, `bearer ${token}`, token, 'Bearer '])
    expect(await post(call, { authorization })).toMatchObject({
      status: 401,
      body: { error: { code: 'unauthorized' } },
    });
  expect((await fetch(`${url}/v1/rpc`, { headers: { authorization: `Bearer ${token}` } })).status).toBe(405);
  expect((await fetch(`${url}/v1/other`)).status).toBe(404);
  expect(await post(call, { 'content-type': 'text/plain' })).toMatchObject({ status: 415 });
});

test('requests that are none', async () => {
  const { post } = await serve(await openTestWallet(new FakeNode()));
  const cases: [string, number, unknown][] = [
    ['{', -32700, null],
    ['', -32700, null],
    ['[]', -32600, null],
    ['[{"jsonrpc":"2.0","id":1,"method":"status"}]', -32600, null],
    ['7', -32600, null],
    ['null', -32600, null],
    ['{"jsonrpc":"2.0","method":"status","params":{}}', -32600, null],
    ['{"jsonrpc":"2.0","id":null,"method":"status"}', -32600, null],
    ['{"jsonrpc":"1.0","id":1,"method":"status"}', -32600, 1],
    ['{"jsonrpc":"2.0","id":1,"method":7}', -32600, 1],
    ['{"jsonrpc":"2.0","id":1,"method":"status","extra":1}', -32600, 1],
    ['{"jsonrpc":"2.0","id":"x","method":"nonsense","params":{}}', -32601, 'x'],
    ['{"jsonrpc":"2.0","id":2,"method":"__proto__","params":{}}', -32601, 2],
    ['{"jsonrpc":"2.0","id":2,"method":"status","params":[]}', -32602, 2],
    ['{"jsonrpc":"2.0","id":2,"method":"status","params":{"a":1}}', -32602, 2],
  ];
  for (const [body, code, id] of cases)
    expect({ body, answer: await post(body) }).toMatchObject({
      answer: { status: 200, body: { id, error: { code } } },
    });
  expect(await post('{"jsonrpc":"2.0","id":3,"method":"status"}')).toMatchObject({ body: { id: 3, result: {} } });
});

test('oversized bodies are refused before they are read, declared or not', async () => {
  const { port, post, headers } = await serve(await openTestWallet(new FakeNode()));
  expect(await post('x'.repeat(SERVER_LIMITS.bodyBytes + 1))).toMatchObject({ status: 413 });
  const status = await new Promise<number | undefined>((resolve, reject) => {
    const sent = httpRequest(
      { port, path: '/v1/rpc', method: 'POST', headers: { ...headers, 'transfer-encoding': 'chunked' } },
      (answer) => resolve(answer.statusCode),
    );
    sent.on('error', reject);
    for (let i = 0; i < 9; i++) sent.write(Buffer.alloc(16 * 1024, 0x20));
    sent.end();
  });
  expect(status).toBe(413);
});

test('more calls than allowed are refused with the time to wait', async () => {
  const { post } = await serve(await openTestWallet(new FakeNode(), { now: () => 1_000_000 }));
  const call = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'status', params: {} });
  const answers: Awaited<ReturnType<typeof post>>[] = [];
  for (let i = 0; i < SERVER_LIMITS.callsPerSecond + 5; i++) answers.push(await post(call));
  expect(answers.filter(({ status }) => status === 429)).toHaveLength(5);
  expect(answers.at(-1)?.body).toMatchObject({
    error: { code: 'too_many_requests' },
    retry_after_millis: expect.any(Number),
  });
});

test('beyond this machine only with --allow-remote, and then only through TLS', async () => {
  const opened = await openTestWallet(new FakeNode());
  expect(
    () => new WalletServer(opened.wallet, { listen: { host: '0.0.0.0', port: 0 }, allowRemote: false, token }),
  ).toThrow(expect.objectContaining({ code: 'remote_not_allowed' }));
  const { post } = await serve(opened, { listen: { host: '0.0.0.0', port: 0 }, allowRemote: true });
  const call = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'status', params: {} });
  expect((await post(call)).status).toBe(200);
  expect((await post(call, { 'x-forwarded-proto': 'https' })).status).toBe(200);
  expect(await post(call, { 'x-forwarded-proto': 'http' })).toMatchObject({
    status: 403,
    body: { error: { code: 'tls_required' } },
  });
});

test.each([
  ['a proxy that does not say how it was called', { 'x-forwarded-for': '192.0.2.1' }],
  ['another way to say for whom', { forwarded: 'for=192.0.2.1;proto=https' }],
  ['a proxy that only names itself', { via: '1.1 proxy' }],
  ['the address alone', { 'x-real-ip': '127.0.0.1' }],
  ['two proxies, the second without TLS', { 'x-forwarded-for': '192.0.2.1', 'x-forwarded-proto': 'https, http' }],
  ['two proxies, the first without TLS', { 'x-forwarded-for': '192.0.2.1', 'x-forwarded-proto': 'http, https' }],
  ['something like TLS', { 'x-forwarded-for': '192.0.2.1', 'x-forwarded-proto': 'https://' }],
  ['nothing', { 'x-forwarded-for': '192.0.2.1', 'x-forwarded-proto': '' }],
])('what a proxy of this machine passes on is not a call of this machine: %s', async (_, forwarded) => {
  const { post } = await serve(await openTestWallet(new FakeNode()), { allowRemote: true });
  const call = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'status', params: {} });
  expect(await post(call, forwarded)).toMatchObject({ status: 403, body: { error: { code: 'tls_required' } } });
  const both = { ...forwarded, 'x-forwarded-proto': 'https' };
  expect((await post(call, both)).status).toBe(200);
});

test('that a call came by TLS is believed from this machine and from listed proxies only', () => {
  const proxies = new TrustedProxies(['10.0.0.7', '2001:db8::/32']);
  const isSecure = (remote: string, proto?: string, local = '10.0.0.1') =>
    isSecureCall({ remote, local, headers: proto === undefined ? {} : { 'x-forwarded-proto': proto } }, proxies);
  expect([isSecure('127.0.0.1'), isSecure('127.0.0.1', 'https'), isSecure('127.0.0.1', 'http')]).toEqual([
    true,
    true,
    false,
  ]);
  // This machine under its own address.
  expect([isSecure('10.0.0.1'), isSecure('::ffff:10.0.0.1')]).toEqual([true, true]);
  for (const stranger of ['10.0.0.8', '192.0.2.1', '::ffff:192.0.2.1', '2001:db9::1', ''])
    for (const proto of [undefined, 'http', 'https', 'https, http'])
      expect([stranger, proto, isSecure(stranger, proto)]).toEqual([stranger, proto, false]);
  expect([isSecure('10.0.0.7', 'https'), isSecure('10.0.0.7'), isSecure('10.0.0.7', 'http')]).toEqual([
    true,
    false,
    false,
  ]);
  expect(isSecure('2001:db8::1', 'https')).toBe(true);
});

test('a web page is not served, whatever it sends and whatever its name leads to', async () => {
  const { url, port, post } = await serve(await openTestWallet(new FakeNode()));
  const call = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'status', params: {} });
  expect(await post(call, { origin: 'https://evil.example' })).toMatchObject({
    status: 403,
    body: { error: { code: 'origin_refused' } },
  });
  const rebound = await new Promise<number | undefined>((resolve, reject) => {
    httpRequest({ port, path: '/health', headers: { host: 'evil.example' } }, (answer) => resolve(answer.statusCode))
      .on('error', reject)
      .end();
  });
  expect(rebound).toBe(421);
  expect((await fetch(`${url}/v1/rpc?x=1`, { method: 'POST' })).status).toBe(404);
});

test('the token file is made once, private, and refused when others can read it', async () => {
  const path = join(temporaryDirectory(), 'wallet.json.token');
  const made = await readOrCreateToken(path);
  expect(statSync(path).mode & 0o777).toBe(0o600);
  expect(await readOrCreateToken(path)).toBe(made);
  expect(readFileSync(path, 'utf8').trim()).toBe(made);
  chmodSync(path, 0o640);
  expect(() => readToken(path)).toThrow(expect.objectContaining({ code: 'token_readable_by_others' }));
  chmodSync(path, 0o600);
  writeFileSync(path, 'short\n');
  expect(() => readToken(path)).toThrow(expect.objectContaining({ code: 'token_damaged' }));
  expect(readdirSync(dirname(path))).toEqual(['wallet.json.token']);
});

test('events reach those who subscribed, and binary frames end a socket', async () => {
  const node = new FakeNode();
  const payer = await fundedWallet(node, [10n * COIN], { name: 'payer' });
  const shop = await openTestWallet(node, { name: 'shop' });
  const { port } = await serve(shop);
  const open = (authorization = `Bearer ${token}`) => {
    const socket = new WebSocket(`ws://127.0.0.1:${port}/v1/ws`, { headers: { authorization } });
    onTestFinished(() => socket.terminate());
    const frames: Record<string, unknown>[] = [];
    socket.on('message', (data) => frames.push(JSON.parse(String(data)) as Record<string, unknown>));
    return {
      socket,
      frames,
      opened: new Promise<number>((resolve) =>
        socket
          .on('open', () => resolve(101))
          .on('unexpected-response', (_, answer) => resolve(answer.statusCode ?? 0))
          .on('error', () => undefined),
      ),
    };
  };
  expect(await open('Bearer wrong').opened).toBe(401);
  const { socket, frames, opened } = open();
  expect(await opened).toBe(101);
  const ask = async (id: number, method: string, params: unknown) => {
    socket.send(JSON.stringify({ jsonrpc: '2.0', id, method, params }));
    return await expect
      .poll(() => frames.find((frame) => frame.id === id))
      .toBeDefined()
      .then(() => frames.find((frame) => frame.id === id));
  };
  expect(await ask(1, 'subscribe', { events: ['finalized', 'settled'] })).toMatchObject({
    result: { events: ['finalized', 'settled'] },
  });
  expect(await ask(2, 'subscribe', { events: ['nonsense'] })).toMatchObject({ error: { code: -32602 } });
  expect(await ask(3, 'send', {})).toMatchObject({ error: { code: -32601 } });
  const { address } = await shop.call('new_address', {});
  await payer.call('send', { to: address, amount: '1', request_id: 'e' });
  await shop.turn();
  node.seal();
  await shop.turn();
  await expect
    .poll(() => frames.filter(({ method }) => method === 'finalized'))
    .toMatchObject([{ jsonrpc: '2.0', params: { payments: [{ address, amount: '1.00000000' }] } }]);
  expect(frames.some(({ method }) => method === 'unconfirmed')).toBe(false);
  expect(await ask(4, 'unsubscribe', { events: ['finalized'] })).toMatchObject({ result: { events: ['settled'] } });
  const closed = new Promise<number>((resolve) => socket.on('close', resolve));
  socket.send(Buffer.from([1, 2, 3]));
  expect(await closed).toBe(1003);
});
