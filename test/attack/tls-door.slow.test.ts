/**
 * Inside TLS: what a client can make the server do again and again after one handshake, and how it can leave. Renegotiation, names that are none, tickets of
 * other sessions, TLS in TLS, records without content, halves of connections. Handshakes that are never finished: stratum-door.slow.test.ts.
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
  await expect.poll(() => doors.held(), { timeout: 60_000 }).toBe(0);
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

async function pinged(socket: TLSSocket): Promise<string> {
  socket.write(PING);
  const [data] = (await once(socket, 'data')) as [Buffer];
  return data.toString();
}

test('a client that negotiates again and again is cut off', async () => {
  const socket = await secured({ maxVersion: 'TLSv1.2', minVersion: 'TLSv1.2' });
  const gone = once(socket, 'close');
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
    await Promise.race([once(socket, 'secureConnect'), once(socket, 'close')]);
    socket.destroy();
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
      ...{ port: doors.ports.stratum, host: '127.0.0.1', rejectUnauthorized: false, maxVersion: 'TLSv1.2' },
      session: changed,
    });
    socket.on('error', () => undefined);
    await Promise.race([once(socket, 'secureConnect'), once(socket, 'close')]);
    socket.destroy();
  }
});

test('TLS in TLS is garbage', async () => {
  const outer = await secured();
  const gone = once(outer, 'close');
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
    await expect.poll(() => doors.held(), { timeout: 60_000 }).toBe(0);
    tcp.destroy();
  }
});

test('thousands of records of one byte are read, and a line without an end is refused', async () => {
  const socket = await secured();
  const gone = once(socket, 'close');
  socket.resume();
  for (let i = 0; i < 40_000 && !socket.destroyed; i++)
    if (!socket.write('{')) await Promise.race([once(socket, 'drain').catch(() => undefined), gone]);
  await gone;
});
