/** Frames of a live socket cost as much of a client's allowance as what they make the node do, over all connections of the client. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { WebSocket, WebSocketServer } from 'ws';
import { refusal } from '../../node/api/api-error.ts';
import { NODE_LIMITS } from '../../node/api/api-limits.ts';
import { LiveConnection, type LiveDependencies } from '../../node/api/live-socket.ts';
import { formatAddress } from '../../protocol/address.ts';
import { pattern } from '../../vectors/generate/pattern.ts';
import { ApiBed, type TestFrame, type TestSocket } from '../api/api-bed.ts';

const CONNECTIONS = 30;
/** As many of 64 addresses as one connection may watch. */
const SUBSCRIPTIONS = 8;

const openLive = async (bed: ApiBed): Promise<{ socket: TestSocket; frames: TestFrame[] }> => {
  const socket = bed.socket('/v1/ws', 'svc.node-api.v1');
  const frames: TestFrame[] = [];
  socket.ws.on('message', (data: Buffer) => frames.push(JSON.parse(data.toString()) as TestFrame));
  await new Promise((resolve) => socket.ws.on('open', resolve));
  return { socket, frames };
};

test('subscriptions of a thousand addresses are paid for', async () => {
  const bed = await ApiBed.forTest({ api: { public: true } });
  const addresses = (from: number) =>
    Array.from({ length: 64 }, (_, i) =>
      formatAddress(Uint8Array.of(0, ...pattern(`watched ${from + i}`, 48)), 'development'),
    );
  const lives = await Promise.all(Array.from({ length: CONNECTIONS }, () => openLive(bed)));
  for (const { socket } of lives)
    for (let id = 0; id < SUBSCRIPTIONS; id++)
      socket.ws.send(
        JSON.stringify({ type: 'subscribe', data: { id, topic: 'addresses', addresses: addresses(64 * id) } }),
      );
  const all = () => lives.flatMap(({ frames }) => frames);
  // Each is answered, or its connection is closed because the client was blocked.
  const isOver = () => lives.every(({ socket, frames }) => frames.length >= SUBSCRIPTIONS || socket.ws.readyState > 1);
  await expect.poll(isOver).toBe(true);
  const subscribed = all().filter(({ type }) => type === 'subscribed').length;
  // 500 units, one for each connection, five for each subscription.
  expect(subscribed).toBe(Math.floor((500 - CONNECTIONS) / 5));
  expect(all().some(({ data }) => data.code === 'too_many_requests' && (data.retry_after_millis as number) > 0)).toBe(
    true,
  );
});

test('frames beyond the limit of a connection cost too: the client is blocked before it has sent thousands', async () => {
  const bed = await ApiBed.forTest({ api: { public: true } });
  const lives = await Promise.all(Array.from({ length: 10 }, () => openLive(bed)));
  for (const { socket } of lives) for (let i = 0; i < 900; i++) socket.ws.send('{"type":"ping","data":{"id":1}}');
  await Promise.all(lives.map(({ socket }) => socket.closed));
  const answered = lives.flatMap(({ frames }) => frames).length;
  // 500 units and a hundred refusals, then at most one closing message each.
  expect(answered).toBeLessThanOrEqual(500 + 100 + lives.length);
  expect((await bed.get('/v1/chain/head')).status).toBe(429);
});

test('behind the frame for which a connection is closed no frame is looked at', async () => {
  let looked = 0;
  const server = createServer().listen(0, '127.0.0.1');
  const sockets = new WebSocketServer({ server });
  onTestFinished(() => {
    for (const socket of sockets.clients) socket.terminate();
    server.close();
  });
  const allow = () => {
    looked++;
    throw refusal('client_blocked', 'it is blocked', {}, 1_000);
  };
  sockets.on('connection', (socket) => {
    new LiveConnection(socket, NODE_LIMITS, {
      allow,
      now: () => 0,
      watched: { take: () => true, giveBack: () => undefined },
    } as unknown as LiveDependencies);
  });
  await new Promise((resolve) => server.once('listening', resolve));
  const client = new WebSocket(`ws://127.0.0.1:${(server.address() as AddressInfo).port}`);
  await new Promise((resolve) => client.once('open', resolve));
  for (let i = 0; i < 5_000; i++) client.send('x');
  await new Promise((resolve) => client.once('message', resolve));
  expect(looked).toBe(1);
});
