/**
 * Another user of the machine, or a stranger, holds every connection of a door: other clients are still served, and
 * a client that has shown the wallet's token keeps its connection.
 */
import { Agent, request as httpRequest } from 'node:http';
import { expect, onTestFinished, test } from 'vitest';
import { Door, type DoorHandlers, SMALL_DOOR } from '../../runtime/door/door.ts';
import { WalletServer } from '../../wallet/rpc/server.ts';
import { quietLog } from '../quiet-log.ts';
import { FakeNode } from '../wallet/fake-node.ts';
import { openTestWallet } from '../wallet/open-wallet.ts';
import { dial, handshake, type RawClient, say } from './raw-client.ts';

const TOKEN = 'test-token-of-more-than-32-characters';
const WALLET_CONNECTIONS = 128;

async function walletPort(): Promise<number> {
  const { wallet } = await openTestWallet(new FakeNode());
  const server = new WalletServer(wallet, {
    listen: { host: '127.0.0.1', port: 0 },
    allowRemote: false,
    token: TOKEN,
  });
  onTestFinished(() => server.close());
  return (await server.start()).port;
}

/** Connections that stay, whatever is said on them; new ones in the place of those that the door ended. */
async function hold(port: number, count: number, text: (i: number) => string | undefined): Promise<RawClient[]> {
  const clients = await Promise.all(Array.from({ length: count }, (_, i) => dial(port, text(i))));
  onTestFinished(() => {
    for (const { socket } of clients) socket.destroy();
  });
  return clients;
}

/** A call with the token; rejects when there is no answer. */
function call(port: number, agent?: Agent): Promise<number> {
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'status', params: {} });
  const headers = { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' };
  return new Promise((resolve, reject) => {
    const sent = httpRequest({ port, host: '127.0.0.1', path: '/v1/rpc', method: 'POST', headers, agent }, (answer) => {
      answer.resume();
      answer.on('end', () => resolve(answer.statusCode ?? 0));
    });
    sent.on('error', reject);
    sent.end(body);
  });
}

const keepAlive = 'GET /health HTTP/1.1\r\nhost: x\r\n\r\n';
const body = 'POST /v1/rpc HTTP/1.1\r\nhost: x\r\ncontent-length: 1000\r\n\r\nx';

test.each([
  ['nothing said', () => undefined],
  ['half a head', () => 'GET / HTTP/1.1\r\nhost: x\r\n'],
  ['kept alive', () => keepAlive],
  ['half a body', () => body],
  ['refused handshakes', () => handshake('/v1/ws')],
  ['all of them', (i: number) => [undefined, 'GET / HTTP/1.1\r\n', keepAlive, body, handshake('/v1/ws')][i % 5]],
])('the wallet answers who has the token though all its connections are taken: %s', async (_, text) => {
  const port = await walletPort();
  await hold(port, 2 * WALLET_CONNECTIONS, text);
  for (let i = 0; i < 10; i++) expect(await call(port)).toBe(200);
});

test('who has shown the token keeps its connection, called upon or not', async () => {
  const port = await walletPort();
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  onTestFinished(() => agent.destroy());
  const events = await dial(port, handshake('/v1/ws', { authorization: `Bearer ${TOKEN}` }));
  onTestFinished(() => void events.socket.destroy());
  await events.answered;
  expect(events.text).toMatch(/^HTTP\/1\.1 101/);
  expect(await call(port, agent)).toBe(200);
  const [socket] = Object.values(agent.freeSockets).flat();
  for (let round = 0; round < 3; round++) {
    await hold(port, WALLET_CONNECTIONS, (i) => (i % 2 === 0 ? keepAlive : undefined));
    expect(await call(port, agent)).toBe(200);
    expect(Object.values(agent.freeSockets).flat()).toEqual([socket]);
    expect(events.socket.destroyed).toBe(false);
  }
});

const DOOR = { ...SMALL_DOOR, connections: 8, reserved: 0 };

async function open(request: DoorHandlers['request']): Promise<{ port: number; door: Door }> {
  const door = new Door({ name: 'test', limits: DOOR, hosts: [], origins: [] }, { request }, { log: quietLog });
  onTestFinished(() => door.close());
  return { door, port: (await door.listen({ host: '127.0.0.1', port: 0 }, { what: 'tests' })).port };
}

const GET = 'GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n';

test('an answer that is not taken makes room; work under way does not', async () => {
  const large = Buffer.alloc(32 << 20, 'x');
  let isWorking = true;
  const { port, door } = await open((_request, response, { path }) => {
    if (path === '/large') response.end(large);
    else if (path !== '/work') response.end('served');
    else
      void expect
        .poll(() => isWorking)
        .toBe(false)
        .then(() => response.end('worked'));
  });
  const working = await hold(port, 3, () => GET.replace('/', '/work'));
  const unread = await hold(port, 5, () => GET.replace('/', '/large'));
  for (const { socket } of unread) socket.pause();
  for (let i = 0; i < 20; i++) expect(await say(port, GET)).toMatch(/served$/);
  expect(door.figures.refused).toBeGreaterThan(0);
  isWorking = false;
  await Promise.all(working.map(({ ended }) => ended));
  for (const { text } of working) expect(text).toMatch(/worked$/);
});

test('when the program works for every connection, the next is refused, and nothing is counted twice, also of those that were displaced', async () => {
  const answers: (() => void)[] = [];
  const { port, door } = await open((_request, response) => {
    answers.push(() => response.end('served'));
  });
  const idle = await hold(port, DOOR.connections, () => 'GET / HTTP/1.1\r\n');
  await expect.poll(() => door.figures.open).toBe(DOOR.connections);
  const working = await hold(port, DOOR.connections, () => GET);
  await expect.poll(() => answers.length).toBe(DOOR.connections);
  expect(door.figures.refused).toBe(DOOR.connections);
  await Promise.all(idle.map(({ ended }) => ended));
  expect(await say(port, GET)).toBe('');
  for (const answer of answers.splice(0)) answer();
  await Promise.all(working.map(({ ended }) => ended));
  for (const { socket } of working) socket.destroy();
  await expect.poll(() => door.figures.open).toBe(0);
  // As many places as before, and no more.
  const again = await hold(port, DOOR.connections, () => GET);
  await expect.poll(() => answers.length).toBe(DOOR.connections);
  expect(await say(port, GET)).toBe('');
  for (const answer of answers.splice(0)) answer();
  await Promise.all(again.map(({ ended }) => ended));
});
