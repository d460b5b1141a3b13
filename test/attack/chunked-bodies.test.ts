/** A body in chunks of a byte costs a listener a hundred times what it costs to send: it is refused at its head, and no chunk is read. */
import type { Socket } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { readBody } from '../../runtime/door/body.ts';
import { Door, type DoorHandlers, SMALL_DOOR } from '../../runtime/door/door.ts';
import { quietLog } from '../quiet-log.ts';
import { dial, say } from './raw-client.ts';

const CRUMBS = '1\r\nx\r\n'.repeat(10_000);
const head = (headers: string): string => `POST / HTTP/1.1\r\nhost: 127.0.0.1\r\n${headers}\r\n`;
const CHUNKED = 'transfer-encoding: chunked\r\n';

async function open(handlers: Partial<DoorHandlers> = {}) {
  const did = { parts: 0, requests: 0 };
  const door = new Door(
    { name: 'test', limits: { ...SMALL_DOOR, headBytes: 16_384, bodyBytes: 131_072 }, hosts: null, origins: null },
    {
      request: async (request, response) => {
        did.requests++;
        request.on('data', () => did.parts++);
        const body = await readBody(request, 131_072);
        response.end(`read ${body.length}`);
      },
      ...handlers,
    },
    { log: quietLog },
  );
  const { port } = await door.listen({ host: '127.0.0.1', port: 0 }, { what: 'tests' });
  onTestFinished(() => door.close());
  return { port, did };
}

test.each([
  ['alone', CHUNKED],
  ['behind another coding', 'transfer-encoding: gzip, chunked\r\n'],
  ['after more headers than are collected', `${'a:\r\n'.repeat(2_500)}${CHUNKED}`],
  ['with an upgrade', `connection: upgrade\r\nupgrade: websocket\r\n${CHUNKED}`],
  ['that waits to be told to go on', `expect: 100-continue\r\n${CHUNKED}`],
])('chunks %s', async (_, headers) => {
  for (const upgrade of [undefined, (_request: unknown, socket: { destroy(): unknown }) => void socket.destroy()]) {
    const { port, did } = await open(upgrade && { upgrade });
    expect(await say(port, `${head(headers)}${CRUMBS}`)).toMatch(/^HTTP\/1\.1 (400 .*Content-Length|431 )/s);
    expect(did).toEqual({ parts: 0, requests: 0 });
  }
});

test('what follows on the connection is not served either', async () => {
  const { port, did } = await open();
  const client = await dial(port, head(CHUNKED));
  client.socket.write(`${CRUMBS}0\r\n\r\n`);
  client.socket.write(`${head('content-length: 1\r\n')}x`);
  client.socket.write(head(CHUNKED) + CRUMBS);
  await client.ended;
  client.socket.destroy();
  expect(client.text).toMatch(/^HTTP\/1\.1 400/);
  expect(client.text.match(/HTTP\/1\.1/g)).toHaveLength(1);
  expect(did).toEqual({ parts: 0, requests: 0 });
});

test('behind a request that is being answered they end the connection', async () => {
  let answer: () => void = () => undefined;
  const { port } = await open({
    request: (_request, response) => {
      answer = () => response.end('late');
    },
  });
  const client = await dial(port, 'GET / HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n');
  client.socket.write(head(CHUNKED) + CRUMBS);
  await client.ended;
  answer();
  expect(client.text).toBe('');
});

test('a body with a length is read, in whatever pieces it comes', async () => {
  const { port, did } = await open();
  const client = await dial(port, head('content-length: 1000\r\nconnection: close\r\n'));
  for (let sent = 0; sent < 1_000; sent++) await write(client.socket, 'x');
  await client.ended;
  expect(client.text).toMatch(/read 1000$/);
  expect(did.requests).toBe(1);
});

const write = (socket: Socket, text: string): Promise<void> =>
  new Promise((resolve) => socket.write(text, () => setImmediate(resolve)));
