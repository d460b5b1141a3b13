/**
 * Clients behind a proxy that speaks the PROXY protocol: each is banned and counted by its own address, however the proxy
 * writes it, and nobody becomes this machine itself by what a header says.
 */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { createLogger, readLevelFilter } from '../../runtime/log/log.ts';
import { EASY, startBed } from '../bridge/bed.ts';

const PING = '{"jsonrpc":"2.0","id":1,"method":"mining.ping"}\n';
const NONSENSE = '{nonsense}\n'.repeat(5);
const STRICT = {
  proxies: ['127.0.0.1/32'],
  limits: { ...EASY, loginMillis: 600_000, bans: { ...EASY.bans, limit: 20 } },
};
const SIGNATURE = [0x0d, 0x0a, 0x0d, 0x0a, 0, 0x0d, 0x0a, 0x51, 0x55, 0x49, 0x54, 0x0a];

const header = (command: number, family: number, addresses: readonly number[]): Buffer =>
  Buffer.from([...SIGNATURE, 0x20 | command, family, 0, addresses.length, ...addresses]);

/** A dual-stack proxy writes an IPv4 client as IPv6: ::ffff:a.b.c.d. */
function mapped(address: string): Buffer {
  const source = [...Array(10).fill(0), 0xff, 0xff, ...address.split('.').map(Number)];
  return header(1, 0x21, [...source, ...source, 0, 1, 0, 2]);
}

type Dialled = Socket & { text: string; gone: Promise<boolean> };

/** Less than the time a connection has to log in: it was sent away, not left waiting. */
const SOON_MILLIS = 120_000;

async function dial(port: number, start: Uint8Array | string, then: string): Promise<Dialled> {
  const socket = connect(port, '127.0.0.1');
  socket.on('error', () => {});
  const gone = Promise.race([
    new Promise<boolean>((resolve) => socket.on('close', () => resolve(true))),
    sleep(SOON_MILLIS, false, { ref: false }),
  ]);
  const dialled = Object.assign(socket, { text: '', gone });
  socket.on('data', (data) => {
    dialled.text += data.toString('latin1');
  });
  onTestFinished(() => void socket.destroy());
  await once(socket, 'connect');
  socket.write(Buffer.concat([Buffer.from(start), Buffer.from(then)]));
  return dialled;
}

async function expectServed(port: number, start: Uint8Array | string): Promise<void> {
  const socket = await dial(port, start, PING);
  await expect.poll(() => socket.text).toContain('"result":{}');
  socket.destroy();
}

test('IPv4 clients that a proxy writes as mapped IPv6 are banned one by one', async () => {
  const { port, server } = await startBed(STRICT);
  expect(await (await dial(port, mapped('203.0.113.5'), NONSENSE)).gone).toBe(true);
  expect(server.bans().map(({ key }) => key)).toEqual(['203.0.113.5']);
  const again = await dial(port, 'PROXY TCP6 ::ffff:203.0.113.5 ::1 1 2\r\n', PING);
  expect(await again.gone).toBe(true);
  expect(again.text).toContain('"retry_after_millis"');
  await expectServed(port, mapped('203.0.113.6'));
  await expectServed(port, 'PROXY TCP4 203.0.113.7 127.0.0.1 1 2\r\n');
});

test('a proxy that sends no header is told of in the log, once, with its address', async () => {
  const lines: string[] = [];
  const sink = { write: (line: string) => void lines.push(line), flush: () => undefined, close: () => undefined };
  const log = createLogger('bridge', { filter: readLevelFilter('warn'), format: 'text' }, { sink, now: () => 0 });
  const { port } = await startBed({ ...STRICT, log });
  for (let i = 0; i < 2; i++) expect(await (await dial(port, PING, '')).gone).toBe(true);
  await expectServed(port, mapped('203.0.113.6'));
  const told = lines.filter((line) => line.includes('--proxy-protocol'));
  expect(told).toEqual([expect.stringMatching(/a connection without a PROXY header is refused.*address=127\.0\.0\.1/)]);
});

test('a limit of connections holds for one IPv4 client in all its spellings, and for no other', async () => {
  const { port, server } = await startBed({ ...STRICT, limits: { ...STRICT.limits, connectionsPerAddress: 3 } });
  const spellings = [
    mapped('203.0.113.5'),
    'PROXY TCP4 203.0.113.5 127.0.0.1 1 2\r\n',
    'PROXY TCP6 ::FFFF:203.0.113.5 ::1 1 2\r\n',
  ];
  const held = await Promise.all(spellings.map((start) => dial(port, start, '{')));
  await expect.poll(async () => (await server.figures()).listeners[0]?.connections).toBe(3);
  expect(held.map((socket) => socket.destroyed)).toEqual([false, false, false]);
  expect(await (await dial(port, mapped('203.0.113.5'), '{')).gone).toBe(true);
  await expectServed(port, mapped('203.0.113.6'));
});

test.each([
  ['mapped loopback', mapped('127.0.0.1'), 'proxied-127.0.0.1'],
  ['loopback', 'PROXY TCP4 127.0.0.9 127.0.0.1 1 2\r\n', 'proxied-127.0.0.9'],
  ['IPv6 loopback', 'PROXY TCP6 ::1 ::1 1 2\r\n', 'proxied-::1'],
  ['a client the proxy does not know', 'PROXY UNKNOWN\r\n', 'proxied-127.0.0.1'],
  ['an unspecified family', header(1, 0, []), 'proxied-127.0.0.1'],
  ['a connection of the proxy itself', header(0, 0, []), 'proxied-127.0.0.1'],
])('what a header calls %s is not this machine: it is banned like anybody else', async (_name, start, key) => {
  const { port, server } = await startBed(STRICT);
  const socket = await dial(port, start, NONSENSE);
  expect(await socket.gone).toBe(true);
  expect(server.bans().map((ban) => ban.key)).toEqual([key]);
  await expectServed(port, 'PROXY TCP4 203.0.113.7 127.0.0.1 1 2\r\n');
});
