/** Answers that clients ask for and do not take, and requests that they do not finish: they stay in the memory of the program, which is bounded for all clients together. */
import type { ServerResponse } from 'node:http';
import { connect, type Socket } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { NODE_LIMITS } from '../../node/api/api-limits.ts';
import { TrustedProxies } from '../../runtime/clients/client-address.ts';
import { readBody } from '../../runtime/door/body.ts';
import { Door, SMALL_DOOR } from '../../runtime/door/door.ts';
import { WebSockets } from '../../runtime/door/web-sockets.ts';
import { quietLog } from '../quiet-log.ts';
import { until } from '../until.ts';

const MEBIBYTE = 1 << 20;
const HELD = 24 * MEBIBYTE;
/** More than the system takes of one connection. */
const LARGE = Buffer.alloc(8 * MEBIBYTE, 'x');
const SMALL = LARGE.subarray(0, 7 * MEBIBYTE);
const TIMES = 3;
const LIARS = 12;
const BODY = 128 * 1024;

type Answering = { readonly port: number; asked(): number; held(): number };

/** Gives a large answer to each request, and three to each WebSocket. */
async function answering(proxies = new TrustedProxies([])): Promise<Answering> {
  const sockets = new Set<Socket>();
  const answers = new Set<ServerResponse>();
  const webSockets = new WebSockets({ name: 'test', frameBytes: 100, pingMillis: 60_000 }, { log: quietLog });
  const door = new Door(
    { name: 'test', limits: { ...SMALL_DOOR, heldBytes: HELD }, hosts: null, origins: null, proxies, inTurns: true },
    {
      request: (request, response, { path }) => {
        sockets.add(request.socket);
        answers.add(response);
        response.end(path === '/small' ? SMALL : LARGE);
      },
      upgrade: (request, socket, head) =>
        webSockets.accept(request, socket, head, { client: 'test' }, (opened) => {
          sockets.add(request.socket);
          for (let i = 0; i < TIMES; i++) opened.send(LARGE);
        }),
    },
    { log: quietLog },
  );
  const { port } = await door.listen({ host: '127.0.0.1', port: 0 }, { what: 'tests' });
  onTestFinished(async () => {
    webSockets.close(1001, 'done');
    await door.close();
  });
  const held = () => {
    let bytes = 0;
    for (const socket of sockets) if (!socket.destroyed) bytes += socket.writableLength;
    for (const answer of answers) if (!answer.destroyed && answer.socket === null) bytes += answer.writableLength;
    return bytes;
  };
  return { port, asked: () => sockets.size, held };
}

/** Sends this and reads nothing. */
function ask(port: number, from: string, words: string): Socket {
  const socket = connect({ port, host: '127.0.0.1', localAddress: from }).pause();
  socket.on('error', () => undefined);
  socket.write(words);
  onTestFinished(() => void socket.destroy());
  return socket;
}

/** Who reads at last gets so many bytes. */
async function reads(socket: Socket, bytes: number): Promise<void> {
  let read = 0;
  socket.on('data', (data) => {
    read += data.length;
  });
  socket.resume();
  await until(() => read >= bytes);
}

const get = (path: string): string => `GET ${path} HTTP/1.1\r\nhost: x\r\n\r\n`;
const upgrade =
  'GET / HTTP/1.1\r\nhost: x\r\nconnection: Upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n';

test.each([
  ['answers', get('/')],
  ['answers to several requests at once', get('/').repeat(TIMES)],
  ['frames of WebSockets', upgrade],
])('%s that nobody takes hold no more than their bound, and those who hold most are ended for it', async (_, words) => {
  const { port, asked, held } = await answering();
  const honest = ask(port, '127.0.0.3', get('/small'));
  for (let i = 0; i < LIARS; i++) ask(port, '127.0.0.2', words);
  await until(() => asked() === 1 + LIARS);
  await until(() => held() <= HELD);
  await reads(honest, SMALL.length);
});

test('of clients behind a proxy the one that holds most is ended, and not the one with the largest answer', async () => {
  const PROXY = '127.0.0.2';
  const { port, asked, held } = await answering(new TrustedProxies([PROXY]));
  const of = (client: string, path: string) => get(path).replace('host', `x-forwarded-for: ${client}\r\nhost`);
  const honest = ask(port, PROXY, of('192.0.2.1', '/'));
  for (let i = 0; i < LIARS; i++) ask(port, PROXY, of('192.0.2.2', '/small'));
  await until(() => asked() === 1 + LIARS);
  await until(() => held() <= HELD);
  await reads(honest, LARGE.length);
});

test('bodies that clients never finish have the same bound', async () => {
  const ended = new Set<Socket>();
  const door = new Door(
    { name: 'test', limits: { ...SMALL_DOOR, bodyBytes: BODY, heldBytes: 4 * BODY }, hosts: null, origins: null },
    {
      request: async (request, response) => {
        request.socket.once('close', () => ended.add(request.socket));
        await readBody(request, BODY);
        response.end('read');
      },
    },
    { log: quietLog },
  );
  const { port } = await door.listen({ host: '127.0.0.1', port: 0 }, { what: 'tests' });
  onTestFinished(() => door.close());
  const post = (bytes: number) => `POST / HTTP/1.1\r\nhost: x\r\ncontent-length: ${BODY}\r\n\r\n${'x'.repeat(bytes)}`;
  const honest = ask(port, '127.0.0.3', post(BODY / 2));
  for (let i = 0; i < LIARS; i++) ask(port, '127.0.0.2', post(BODY - 1));
  // Three of them, and the honest one, fit.
  await until(() => ended.size === LIARS - 3);
  let text = '';
  honest.on('data', (data) => {
    text += data;
  });
  honest.resume().write('x'.repeat(BODY / 2));
  await until(() => text.endsWith('read'));
});

test('a public service has such a bound', () => {
  expect(NODE_LIMITS.heldBytes).toBeGreaterThan(0);
});
