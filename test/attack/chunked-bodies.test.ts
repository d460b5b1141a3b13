/** A body in chunks of a byte costs a listener a hundred times what it costs to send: so many such chunks are read, and no more. */
import type { Socket } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { readBody } from '../../runtime/door/body.ts';
import { Door, type DoorHandlers, SMALL_DOOR } from '../../runtime/door/door.ts';
import { quietLog } from '../quiet-log.ts';
import { dial, say } from './raw-client.ts';

const CRUMBS = '1\r\nx\r\n'.repeat(10_000);
/** With some for the first packets, which may be cut anywhere. */
const MOST_PARTS = 40;
const head = (headers: string): string => `POST / HTTP/1.1\r\nhost: 127.0.0.1\r\n${headers}\r\n`;
const CHUNKED = 'transfer-encoding: chunked\r\n';

type Parser = { constructor: { kOnBody: number }; [place: number]: (part: Buffer) => void };

async function open(handlers: Partial<DoorHandlers> = {}) {
  const did = { parts: 0, calls: 0, requests: 0 };
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
  door.server.on('connection', ({ parser }: Socket & { parser: Parser }) => {
    const place = parser.constructor.kOnBody;
    const take = parser[place] as Parser[number];
    parser[place] = function (this: Parser, part) {
      did.calls++;
      take.call(this, part);
    };
    // Parsers are used again by other connections.
    onTestFinished(() => void Object.assign(parser, { [place]: take }));
  });
  const { port } = await door.listen({ host: '127.0.0.1', port: 0 }, { what: 'tests' });
  onTestFinished(() => door.close());
  return { port, did };
}

test.each([
  ['alone', CHUNKED],
  ['behind another coding', 'transfer-encoding: gzip, chunked\r\n'],
  ['that waits to be told to go on', `expect: 100-continue\r\n${CHUNKED}`],
])('chunks %s: of crumbs some are looked at, then the connection ends', async (_, headers) => {
  const { port, did } = await open();
  const client = await dial(port, `${head(headers)}${CRUMBS}`);
  await client.ended;
  expect(did.parts).toBeLessThanOrEqual(MOST_PARTS);
  expect(did.calls).toBeLessThanOrEqual(MOST_PARTS);
});

test('crumbs after the answer end the connection too', async () => {
  const { port, did } = await open({ request: (_request, response) => void response.end('read nothing') });
  const client = await dial(port, head(CHUNKED));
  await client.answered;
  client.socket.write(CRUMBS);
  await client.ended;
  expect(client.text).toMatch(/read nothing/);
  expect(did.calls).toBeLessThanOrEqual(MOST_PARTS);
});

test('a parser that stopped in the middle of a body reads the next one', async () => {
  const { port } = await open();
  for (let i = 0; i < 3; i++) {
    const client = await dial(port, head(CHUNKED) + CRUMBS);
    await client.ended;
    expect(await say(port, `${head(`connection: close\r\n${CHUNKED}`)}2\r\n{}\r\n0\r\n\r\n`)).toMatch(/read 2$/);
  }
});

test.each([
  ['after more headers than are collected', `${'a:\r\n'.repeat(2_500)}${CHUNKED}`, /^HTTP\/1\.1 431 /],
  ['with an upgrade', `connection: upgrade\r\nupgrade: websocket\r\n${CHUNKED}`, /^HTTP\/1\.1 400 .*WebSocket/s],
])('chunks %s are refused at the head', async (_, headers, answer) => {
  const { port, did } = await open({ upgrade: (_request, socket) => void socket.destroy() });
  expect(await say(port, `${head(headers)}${CRUMBS}`)).toMatch(answer);
  expect(did).toEqual({ parts: 0, calls: 0, requests: 0 });
});

test('what follows crumbs on the connection is not served, and an answer under way is not sent', async () => {
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

test('a body in chunks of a usual size is read, and one that is too large is refused', async () => {
  const { port } = await open();
  const chunk = `1000\r\n${'x'.repeat(0x1000)}\r\n`;
  expect(await say(port, `${head(`connection: close\r\n${CHUNKED}`)}${chunk.repeat(30)}0\r\n\r\n`)).toMatch(
    /read 122880$/,
  );
  expect(await say(port, `${head(`connection: close\r\n${CHUNKED}`)}${'2\r\n{}\r\n'.repeat(20)}0\r\n\r\n`)).toMatch(
    /read 40$/,
  );
  expect(await say(port, `${head(`connection: close\r\n${CHUNKED}`)}${chunk.repeat(40)}0\r\n\r\n`)).toMatch(/read 9$/);
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
