/** Single strokes against every door: absurd targets, resets, refused and abandoned connections. Nothing ends, nothing is kept. */
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { count, level } from '../level.ts';
import { type DoorName, Doors, HTTP_DOORS, UPGRADES } from './doors-fixture.ts';
import { dial, handshake } from './raw-client.ts';

let doors: Doors;
beforeAll(async () => {
  doors = await Doors.open();
});
afterAll(() => doors.close());

afterEach(async () => {
  expect(doors.isAlive).toBe(true);
  await doors.expectServed();
  expect(await doors.figures()).toMatchObject({ errors: [], faults: 0 });
});

const TARGETS = [
  '//',
  '///',
  '//[',
  '/\\',
  '//:x@/',
  '/%',
  '/%00',
  '/v1/%ff',
  '*',
  'http://',
  'x',
  `/${'a'.repeat(7_000)}`,
];

/** The port is all there is to a stratum server's address: it does not read the target. */
const REFUSED = /^HTTP\/1\.1 (4\d\d|200)/;
const REFUSED_OR_OPENED = /^HTTP\/1\.1 (4\d\d|200|101)/;

test.each(HTTP_DOORS)('%s: a target that is no URL is refused, asked for and as a WebSocket', async (name) => {
  for (const target of TARGETS) {
    const asked = await dial(doors.ports[name], `GET ${target} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n`);
    const opened = await dial(doors.ports[name], handshake(target));
    for (const client of [asked, opened]) {
      await client.answered;
      expect([target, client.text]).toEqual([
        target,
        expect.stringMatching(name === 'stratumWs' ? REFUSED_OR_OPENED : REFUSED),
      ]);
      client.socket.destroy();
    }
  }
});

test.each(HTTP_DOORS)('%s: resets while it answers, refuses or waits', async (name) => {
  const port = doors.ports[name];
  const firsts = [
    handshake('//'),
    handshake('/nowhere'),
    handshake('/v1/ws'),
    'nonsense\r\n\r\n',
    'GET / HTTP/1.1\r\nhost: x\r\n\r\n'.repeat(20),
    'POST /v1/rpc HTTP/1.1\r\nhost: x\r\ncontent-length: 1000\r\n\r\nhalf',
    ...(UPGRADES[name] === undefined ? [] : [UPGRADES[name]]),
  ];
  for (const first of firsts)
    for (let i = 0; i < count({ full: 10, deep: 200 }); i++) {
      const { socket } = await dial(port, first);
      if (i % 2 === 0) await new Promise((resolve) => setImmediate(resolve));
      socket.resetAndDestroy();
    }
});

test('a client that is refused and does not close is disconnected within seconds', async () => {
  const refused = (name: DoorName): string[] => [
    // A door without WebSockets answers them as requests like any other, and the connection may go on.
    ...(UPGRADES[name] === undefined
      ? []
      : [
          handshake('/nowhere'),
          handshake('/v1/events', { 'sec-websocket-protocol': 'another' }),
          handshake('/', { origin: 'https://evil.example' }),
        ]),
    'nonsense\r\n\r\n',
    `GET / HTTP/1.1\r\nhost: x\r\nx: ${'a'.repeat(30_000)}\r\n\r\n`,
    ...(name === 'wallet' ? [handshake('/v1/ws')] : []),
  ];
  const clients = [];
  for (const name of HTTP_DOORS)
    for (const first of refused(name)) for (let i = 0; i < 8; i++) clients.push(await dial(doors.ports[name], first));
  await Promise.all(clients.map(({ answered }) => answered));
  await expect.poll(() => doors.held(), { interval: 200 }).toBe(0);
  for (const { socket } of clients) socket.destroy();
});

test('a client that sends half a request, or none, is disconnected when its time is over', async () => {
  // Bodies have half a minute.
  const body = 'POST /v1/rpc HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 9\r\n\r\nhalf';
  const halves = ['', 'G', 'GET / HTTP/1.1\r\nhost: x\r\n', ...(level === 'deep' ? [body] : [])];
  const clients = [];
  for (const name of HTTP_DOORS)
    for (const half of halves)
      for (let i = 0; i < 8; i++) clients.push(await dial(doors.ports[name], half === '' ? undefined : half));
  await expect.poll(() => doors.held(), { interval: 100 }).toBe(0);
  for (const { socket } of clients) socket.destroy();
});
