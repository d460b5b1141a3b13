/** The wallet's door: without the token nothing is read, whatever the method and however the token is spelt; with it no input is more than a refusal. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { METHODS } from '../../wallet/rpc/dispatch.ts';
import { Doors } from './doors-fixture.ts';
import { dial, handshake, say } from './raw-client.ts';

const TOKEN = 'test-token-of-more-than-32-characters';
let doors: Doors;
beforeAll(async () => {
  doors = await Doors.open();
});
afterAll(async () => {
  expect(await doors.figures()).toMatchObject({ errors: [], faults: 0 });
  await doors.expectServed(['wallet']);
  await doors.close();
});

const status = (text: string): number => Number(/^HTTP\/1\.1 (\d+)/.exec(text)?.[1] ?? 0);

type Call = {
  readonly path?: string;
  readonly method?: string;
  readonly headers?: readonly string[];
  readonly length?: number;
};

/** A call as text. */
function call(body: string | Buffer, { path = '/v1/rpc', method = 'POST', headers = [], length }: Call = {}): Buffer {
  const head = [
    `${method} ${path} HTTP/1.1`,
    'host: 127.0.0.1',
    'content-type: application/json',
    `content-length: ${length ?? Buffer.byteLength(body)}`,
    ...headers,
    'connection: close',
    '',
    '',
  ];
  return Buffer.concat([Buffer.from(head.join('\r\n')), Buffer.from(body)]);
}

const request = (method: string, params: unknown = {}): string =>
  JSON.stringify({ jsonrpc: '2.0', id: 1, method, params });
const authorized = [`authorization: Bearer ${TOKEN}`];

test('no method is called without the token', async () => {
  for (const method of [...Object.keys(METHODS), 'subscribe', '__proto__', ''])
    expect(status(await say(doors.ports.wallet, call(request(method)))), method).toBe(401);
});

test.each([
  ['another token', [`authorization: Bearer ${TOKEN.slice(0, -1)}x`]],
  ['a part of it', [`authorization: Bearer ${TOKEN.slice(0, -1)}`]],
  ['more than it', [`authorization: Bearer ${TOKEN}x`]],
  ['none', ['authorization: Bearer ']],
  ['another scheme', [`authorization: Basic ${Buffer.from(`:${TOKEN}`).toString('base64')}`]],
  ['no scheme', [`authorization: ${TOKEN}`]],
  ['the wrong one first', ['authorization: Bearer x', `authorization: Bearer ${TOKEN}`]],
  ['a cookie', [`cookie: token=${TOKEN}; authorization=Bearer ${TOKEN}`]],
  ['headers of proxies', [`proxy-authorization: Bearer ${TOKEN}`, `x-authorization: Bearer ${TOKEN}`]],
])('a token as %s is none', async (_, headers) => {
  expect(status(await say(doors.ports.wallet, call(request('balance'), { headers })))).toBe(401);
  const upgrade = handshake('/v1/ws').replace('\r\n\r\n', `\r\n${headers.join('\r\n')}\r\n\r\n`);
  expect(status(await say(doors.ports.wallet, upgrade))).toBe(401);
});

test('a token in the target is not looked at, and a web page is refused before it', async () => {
  const { wallet } = doors.ports;
  expect(status(await say(wallet, call(request('balance'), { path: `/v1/rpc?token=${TOKEN}` })))).toBe(404);
  expect(status(await say(wallet, handshake('/v1/ws', { 'sec-websocket-protocol': TOKEN })))).toBe(401);
  const page = [...authorized, 'origin: http://127.0.0.1:28703'];
  expect(status(await say(wallet, call(request('balance'), { headers: page })))).toBe(403);
  const simple = call(request('balance'), { headers: authorized }).toString().replace('application/json', 'text/plain');
  expect(status(await say(wallet, simple))).toBe(415);
});

test('a body of a stranger is not waited for; one of a caller has its limit', async () => {
  const stranger = await dial(doors.ports.wallet, call('', { length: 1 << 30 }));
  await stranger.ended;
  expect(status(stranger.text)).toBe(401);
  stranger.socket.destroy();
  const large = await say(
    doors.ports.wallet,
    call(request('balance', { a: 'x'.repeat(130 * 1024) }), { headers: authorized }),
  );
  expect(status(large)).toBe(413);
  const chunked = call('', { headers: [...authorized, 'transfer-encoding: chunked'] })
    .toString()
    .replace('content-length: 0\r\n', '');
  const endless = await dial(doors.ports.wallet, chunked);
  const part = `8000\r\n${'x'.repeat(0x8000)}\r\n`;
  for (let i = 0; i < 10; i++) endless.socket.write(part);
  await endless.ended;
  expect(status(endless.text)).toBe(413);
  endless.socket.destroy();
});

test.each([
  ['a batch', `[${request('balance')},${request('balance')}]`, -32600],
  ['no id', JSON.stringify({ jsonrpc: '2.0', method: 'balance' }), -32600],
  ['an id that is an object', JSON.stringify({ jsonrpc: '2.0', id: {}, method: 'balance' }), -32600],
  ['a field more', JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'balance', __proto: 1 }), -32600],
  ['nothing', '', -32700],
  ['lists in lists', '['.repeat(60_000), -32700],
  ['lists in lists, closed', `${'['.repeat(60_000)}${']'.repeat(60_000)}`, -32600],
  [
    'deep parameters',
    `{"jsonrpc":"2.0","id":1,"method":"balance","params":${'{"a":'.repeat(9_000)}1${'}'.repeat(9_000)}}`,
    -32602,
  ],
  ['a method of every object', request('toString'), -32601],
  ['the prototype', request('__proto__'), -32601],
  ['parameters in a list', request('balance', [1]), -32602],
  ['a prototype as parameter', '{"jsonrpc":"2.0","id":1,"method":"balance","params":{"__proto__":{"x":1}}}', -32602],
])('%s is refused', async (_, body, code) => {
  const text = await say(doors.ports.wallet, call(body, { headers: authorized }));
  expect(status(text)).toBe(200);
  const answer = JSON.parse(text.slice(text.indexOf('\r\n\r\n') + 4)) as { error?: { code: number } };
  expect(answer.error?.code).toBe(code);
});

test('bytes that are no text are refused', async () => {
  const text = await say(doors.ports.wallet, call(Buffer.from([0x22, 0xff, 0x22]), { headers: authorized }));
  expect(text).toContain('-32700');
});
