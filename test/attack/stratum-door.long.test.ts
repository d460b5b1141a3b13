/** The stratum ports: what counts against a client's limit, and connections that are given up before they have said anything. */
import { type AddressInfo, connect, createServer } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { expect, onTestFinished, test } from 'vitest';
import { WebSocket } from 'ws';
import { EASY, startBed } from '../bridge/bed.ts';
import { TEST_CERTIFICATE } from '../miner/certificate.ts';
import { dial, handshake, type RawClient, socketsOf } from './raw-client.ts';

const V1 = { 'sec-websocket-protocol': 'svc-mining-v1' };

async function dialled(port: number, first?: string | Uint8Array, host?: string): Promise<RawClient> {
  const client = await dial(port, first, host);
  onTestFinished(() => void client.socket.destroy());
  return client;
}

/** The first message of a real handshake. */
async function clientHello(): Promise<Buffer> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const hello = new Promise<Buffer>((resolve) =>
    server.on('connection', (socket) =>
      socket
        .on('error', () => undefined)
        .once('data', (bytes: Buffer) => {
          socket.destroy();
          resolve(bytes);
        }),
    ),
  );
  connectTls({ port: (server.address() as AddressInfo).port, host: '127.0.0.1' }).on('error', () => undefined);
  const bytes = await hello;
  server.close();
  return bytes;
}

test('whatever comes to the WebSocket port counts against --max-per-address, also plain HTTP and silence', async () => {
  const { wsPort } = await startBed({ limits: { ...EASY, connectionsPerAddress: 4 } });
  const held = await Promise.all([
    dialled(wsPort),
    dialled(wsPort, 'GET / HT'),
    dialled(wsPort, handshake('/', V1)),
    dialled(wsPort, 'POST / HTTP/1.1\r\nhost: x\r\ncontent-le'),
  ]);
  await held[2]?.answered;
  expect(held[2]?.text).toMatch(/^HTTP\/1\.1 101/);
  const fifth = await dialled(wsPort, handshake('/', V1));
  await fifth.ended;
  expect(fifth.text).toBe('');
  for (const { socket } of held.slice(0, 2)) socket.destroy();
  const answer = async () => {
    const again = await dialled(wsPort, handshake('/', V1));
    await Promise.race([again.answered, again.ended]);
    return again.text;
  };
  await expect.poll(answer).toMatch(/^HTTP\/1\.1 101/);
});

test('behind a proxy each client has its own limit, and gives its place back', async () => {
  const limits = { ...EASY, connectionsPerAddress: 2, connections: 8 };
  const { wsPort, server } = await startBed({ limits, proxies: ['127.0.0.1/32'] });
  const open = (client: string): Promise<WebSocket | number> =>
    new Promise((resolve) => {
      const headers = { 'x-forwarded-for': client };
      const socket = new WebSocket(`ws://127.0.0.1:${wsPort}`, ['svc-mining-v1'], { headers });
      onTestFinished(() => socket.terminate());
      socket.on('error', () => resolve(0));
      socket.on('open', () => resolve(socket));
      socket.on('unexpected-response', (_request, answer) => resolve(answer.statusCode ?? 0));
    });
  const before = socketsOf();
  for (let round = 0; round < 3; round++) {
    const opened = await Promise.all(['203.0.113.5', '203.0.113.5', '203.0.113.6', '203.0.113.6'].map(open));
    expect(opened.every((each) => each instanceof WebSocket)).toBe(true);
    expect([await open('203.0.113.5'), await open('203.0.113.6')]).toEqual([503, 503]);
    for (const each of opened) (each as WebSocket).terminate();
    await expect.poll(async () => (await server.figures()).listeners[0]?.byTransport.ws).toBe(0);
    // The refused ones are destroyed after a moment; they counted as the proxy's.
    await expect.poll(() => socketsOf()).toBeLessThanOrEqual(before);
  }
});

test('TLS handshakes abandoned anywhere, by silence, reset or half-close, leave nothing', async () => {
  const { port, server } = await startBed({
    limits: { ...EASY, loginMillis: 1_000, connectionsPerAddress: 400 },
    certificate: TEST_CERTIFICATE,
    proxies: ['127.0.0.3/32'],
  });
  const hello = await clientHello();
  const before = socketsOf();
  const clients: RawClient[] = [];
  for (let i = 0; i < 120; i++) {
    const client = await dial(port, hello.subarray(0, 1 + ((i * 7) % hello.length)));
    if (i % 3 === 0) client.socket.resetAndDestroy();
    else if (i % 3 === 1) client.socket.end();
    clients.push(client);
  }
  for (let i = 0; i < 30; i++) {
    const socket = connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false });
    socket.on('error', () => undefined);
    if (i % 2 === 0) setTimeout(() => socket.destroy(), i % 5);
    else socket.on('secureConnect', () => socket.destroy());
  }
  // A proxy that never sends the header it owes.
  for (let i = 0; i < 20; i++) {
    const socket = connect({ port, host: '127.0.0.1', localAddress: '127.0.0.3' });
    socket.on('error', () => undefined).on('close', () => undefined);
    onTestFinished(() => void socket.destroy());
    if (i % 2 === 0) socket.write('PROXY TCP4 1');
  }
  const listener = async () => (await server.figures()).listeners[0];
  await expect.poll(async () => (await listener())?.byTransport).toEqual({ tcp: 0, tls: 0, ws: 0 });
  // What is left are the halves of the clients that say nothing and close nothing.
  await expect.poll(() => socketsOf() - before).toBeLessThanOrEqual(40);
  for (const { socket } of clients) socket.destroy();
});
