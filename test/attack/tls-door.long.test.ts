/**
 * Inside TLS: what a client can make the server do again and again after one handshake, and how it can leave. Renegotiation, names that are none, tickets of
 * other sessions, TLS in TLS, records without content, halves of connections. Handshakes that are never finished: stratum-door.long.test.ts.
 */
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { connect as connectTcp } from 'node:net';
import { type ConnectionOptions, connect, type TLSSocket } from 'node:tls';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { Doors } from './doors-fixture.ts';

let doors: Doors;
beforeAll(async () => {
  doors = await Doors.open();
});
afterAll(() => doors.close());
afterEach(async () => {
  await expect.poll(() => doors.held()).toBe(0);
  expect(await doors.figures()).toMatchObject({ errors: [], faults: 0 });
  await doors.expectServed(['stratum']);
});

const PING = '{"jsonrpc":"2.0","id":1,"method":"mining.ping"}\n';

async function secured(options: ConnectionOptions = {}): Promise<TLSSocket> {
  const socket = connect({ port: doors.ports.stratum, host: '127.0.0.1', rejectUnauthorized: false, ...options });
  socket.on('error', () => undefined);
  await once(socket, 'secureConnect');
  return socket;
}

/** However it ends: who is thrown out in the middle of a write is reset, which is an error before it is closed. */
const closed = (socket: TLSSocket): Promise<void> => new Promise((resolve) => socket.once('close', () => resolve()));

async function pinged(socket: TLSSocket): Promise<string> {
  socket.write(PING);
  const [data] = (await once(socket, 'data')) as [Buffer];
  return data.toString();
}

test('a client that negotiates again and again is cut off', async () => {
  const socket = await secured({ maxVersion: 'TLSv1.2', minVersion: 'TLSv1.2' });
  const gone = closed(socket);
  let times = 0;
  const again = (): void => {
    const isSent = socket.renegotiate({ rejectUnauthorized: false }, (error) => {
      if (error !== null) return;
      times++;
      again();
    });
    if (isSent === false) socket.destroy();
  };
  again();
  await gone;
  expect(times).toBeLessThanOrEqual(4);
});

test('names that are none are served or refused, like any other', async () => {
  for (const servername of ['x'.repeat(250), 'a..b', '-', `${'ä'.repeat(60)}`, 'localhost\u0000evil']) {
    const socket = connect({ port: doors.ports.stratum, host: '127.0.0.1', rejectUnauthorized: false, servername });
    socket.on('error', () => undefined);
    await Promise.race([once(socket, 'secureConnect').catch(() => undefined), closed(socket)]);
    socket.destroy();
  }
});

/** A first message of TLS 1.2 with these bytes as the extension that names the server, in records as large as they may be. */
function hello(name: Buffer): Buffer {
  const sized = (bytes: Buffer, width: 1 | 2 | 3): Buffer => {
    const length = Buffer.alloc(width);
    length.writeUIntBE(bytes.length, 0, width);
    return Buffer.concat([length, bytes]);
  };
  const extension = (kind: number, bytes: Buffer) => Buffer.concat([Buffer.from([0, kind]), sized(bytes, 2)]);
  const groups = extension(10, sized(Buffer.from([0, 29, 0, 23]), 2));
  const signatures = extension(13, sized(Buffer.from([4, 3, 8, 4, 4, 1]), 2));
  const body = Buffer.concat([
    Buffer.from([3, 3]),
    randomBytes(32),
    sized(Buffer.alloc(0), 1),
    sized(Buffer.from([0xc0, 0x2b, 0xc0, 0x2f]), 2),
    sized(Buffer.from([0]), 1),
    sized(Buffer.concat([extension(0, name), groups, signatures]), 2),
  ]);
  const message = Buffer.concat([Buffer.from([1]), sized(body, 3)]);
  const records: Buffer[] = [];
  for (let at = 0; at < message.length; at += 16_384)
    records.push(Buffer.from([22, 3, 1]), sized(message.subarray(at, at + 16_384), 2));
  return Buffer.concat(records);
}

const nameList = (...names: Buffer[]): Buffer => {
  const entries = names.map((bytes) => Buffer.concat([Buffer.from([0, bytes.length >> 8, bytes.length & 255]), bytes]));
  const list = Buffer.concat(entries);
  return Buffer.concat([Buffer.from([list.length >> 8, list.length & 255]), list]);
};

const HANDSHAKE = 22;
const ALERT = 21;
/** From a listed proxy (doors-process.ts), for a client of its own. */
const PROXY_V2 = Buffer.concat([
  Buffer.from('0d0a0d0a000d0a515549540a2111000c', 'hex'),
  Buffer.from([192, 0, 2, 1, 192, 0, 2, 2, 1, 2, 3, 4]),
]);

test.each([
  ['a name', nameList(Buffer.from('pool.example'))],
  ['no bytes', Buffer.alloc(0)],
  ['no names', nameList()],
  ['an empty name', nameList(Buffer.alloc(0))],
  ['64 KiB', nameList(Buffer.alloc(65_400, 'x'))],
  ['256 bytes', nameList(Buffer.alloc(256, 'x'))],
  ['NUL', nameList(Buffer.from('pool.example\0.evil'))],
  ['bytes that are no text', nameList(Buffer.from([0xff, 0xfe, 0x80, 0xc3]))],
  ['two names', nameList(Buffer.from('a.example'), Buffer.from('b.example'))],
  ['a list that is longer than it says', Buffer.concat([nameList(Buffer.from('a')), Buffer.from('b')])],
  ['a list that is shorter than it says', nameList(Buffer.from('abc')).subarray(0, 5)],
])('a server name of %s is answered by the library, also behind a proxy', async (_, name) => {
  for (const localAddress of ['127.0.0.1', '127.0.0.2']) {
    const tcp = connectTcp({ port: doors.ports.stratum, host: '127.0.0.1', localAddress });
    tcp.on('error', () => undefined);
    if (localAddress === '127.0.0.2') tcp.write(PROXY_V2);
    tcp.write(hello(name));
    const [first] = (await once(tcp, 'data')) as [Buffer];
    expect([HANDSHAKE, ALERT]).toContain(first[0]);
    tcp.destroy();
  }
});

test('tickets: those of the server shorten a handshake, changed ones are a handshake like any other', async () => {
  const first = await secured({ maxVersion: 'TLSv1.2' });
  expect(await pinged(first)).toContain('"result":{}');
  const session = first.getSession() as Buffer;
  first.destroy();
  for (let i = 0; i < 50; i++) {
    const changed = Buffer.from(session);
    // Not its length and kind, which our own library would refuse.
    for (let at = 0; at < 1 + (i % 8); at++)
      changed[changed.length - 20 - ((i * 7 + at) % 60)] = randomBytes(1)[0] as number;
    const socket = connect({
      port: doors.ports.stratum,
      host: '127.0.0.1',
      rejectUnauthorized: false,
      maxVersion: 'TLSv1.2',
      session: changed,
    });
    socket.on('error', () => undefined);
    await Promise.race([once(socket, 'secureConnect').catch(() => undefined), closed(socket)]);
    socket.destroy();
  }
});

test('TLS in TLS is garbage', async () => {
  const outer = await secured();
  const gone = closed(outer);
  outer.write(Buffer.concat([Buffer.from([0x16, 0x03, 0x01, 0x02, 0x00]), randomBytes(512)]));
  outer.resume();
  await gone;
});

test('a client that says goodbye and never closes, and one that closes without goodbye, are gone', async () => {
  for (const leave of ['goodbye', 'fin', 'reset'] as const) {
    const tcp = connectTcp({ port: doors.ports.stratum, host: '127.0.0.1', allowHalfOpen: true });
    tcp.on('error', () => undefined);
    const socket = connect({ socket: tcp, rejectUnauthorized: false });
    socket.on('error', () => undefined);
    await once(socket, 'secureConnect');
    expect(await pinged(socket)).toContain('"result":{}');
    if (leave === 'goodbye') socket.end();
    else if (leave === 'fin') tcp.end();
    else tcp.resetAndDestroy();
    await expect.poll(() => doors.held()).toBe(0);
    tcp.destroy();
  }
});

test('thousands of records of one byte are read, and a line without an end is refused', async () => {
  const socket = await secured();
  const gone = closed(socket);
  socket.resume();
  for (let i = 0; i < 40_000 && !socket.destroyed; i++)
    if (!socket.write('{')) await Promise.race([once(socket, 'drain').catch(() => undefined), gone]);
  await gone;
});
