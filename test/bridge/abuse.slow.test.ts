/** Every line of abuse that pools are known to suffer: bounded, scored, and nobody else pays for it. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { WebSocket } from 'ws';
import type { StratumServer } from '../../bridge/stratum-server.ts';
import { TEST_CERTIFICATE } from '../miner/certificate.ts';
import { type BedOptions, EASY, startBed } from './bed.ts';
import { addressOf, mine, V1Client, V2Client } from './stratum-client.ts';

const PROXIED: BedOptions = { proxies: ['127.0.0.1/32'] };

async function dial(
  port: number,
  first?: string | Uint8Array,
): Promise<Socket & { text: string; gone: Promise<void> }> {
  const socket = connect(port, '127.0.0.1');
  socket.on('error', () => {});
  const gone = new Promise<void>((resolve) => socket.on('close', () => resolve()));
  const dialled = Object.assign(socket, { text: '', gone });
  socket.on('data', (data) => {
    dialled.text += data.toString('latin1');
  });
  onTestFinished(() => void socket.destroy());
  await once(socket, 'connect');
  if (first !== undefined) socket.write(first);
  return dialled;
}
const proxy = (address: string): string => `PROXY TCP4 ${address} 127.0.0.1 1 2\r\n`;

/** Somebody who behaves is served while the abuse lasts; it tries again where a busy machine made it too slow. */
async function expectServed(port: number, header = ''): Promise<void> {
  const minesAtOnce = async (): Promise<number> => {
    const client = await V1Client.open(port);
    try {
      const isLate = client.closed.then(() => Promise.reject(new Error('closed before it was logged in')));
      isLate.catch(() => undefined);
      await Promise.race([client.login(`${addressOf(9)}.honest`), isLate]);
      const job = client.jobs[0]!;
      return await client.submitCode(job.jobId, mine(job, client.prefix).nonce);
    } finally {
      client.close();
    }
  };
  const isAnswered = async (): Promise<number> => {
    const socket = await dial(port, `${header}{"jsonrpc":"2.0","id":1,"method":"mining.ping"}\n`);
    while (!socket.text.includes('"result":{}') && !socket.destroyed) await sleep(5);
    socket.destroy();
    return socket.text.includes('"result":{}') ? 0 : -1;
  };
  await expect.poll(header === '' ? minesAtOnce : isAnswered).toBe(0);
}

const connectionsOf = async (server: StratumServer): Promise<number> =>
  (await server.figures()).listeners.reduce((sum, { connections }) => sum + connections, 0);

test('a line without an end: answered, closed, never buffered', async () => {
  const { port } = await startBed();
  const socket = await dial(port, `{"jsonrpc":"2.0","id":1,"method":"${'x'.repeat(9_000)}`);
  socket.write('y'.repeat(9_000));
  await socket.gone;
  expect(socket.text).toContain('"code":-32700');
  await expectServed(port);
});

test('oversized, deeply nested and broken JSON, and binary garbage', async () => {
  const { port } = await startBed();
  const socket = await dial(
    port,
    `{"jsonrpc":"2.0","id":1,"method":"mining.ping","params":${'{"a":'.repeat(50)}1${'}'.repeat(50)}}\n`,
  );
  while (!socket.text.includes('\n')) await sleep(5);
  expect(socket.text).toContain('"code":-32700');
  socket.write(
    `{"jsonrpc":"2.0","id":2,"method":"mining.ping","params":{${Array.from({ length: 300 }, (_, i) => `"k${i}":1`).join(',')}}}\n`,
  );
  socket.write(Buffer.from([0x7b, 0xff, 0xfe, 0x00, 0x0a]));
  while (socket.text.split('\n').length < 4) await sleep(5);
  expect(socket.text.match(/-32700/g)?.length).toBe(3);
  const garbage = await dial(port, Buffer.from([0, 1, 2, 3, 255, 254]));
  await garbage.gone;
  const half = await dial(port, 'SVC3');
  await half.gone;
  const big = await dial(port, Buffer.from([0x53, 0x56, 0x43, 0x32, 0xff, 0xff, 0x01]));
  await big.gone;
  await expectServed(port);
});

test('slow logins, held TLS handshakes and connections that say nothing are closed in time', async () => {
  const { port } = await startBed({ limits: { ...EASY, loginMillis: 1_000 }, certificate: TEST_CERTIFICATE });
  const silent = await dial(port);
  const slow = await dial(port, '{"jsonrpc"');
  const tls = await dial(port, Buffer.from([0x16, 0x03, 0x01, 0x02, 0x00]));
  const half = await dial(port, '{"jsonrpc":"2.0","id":1,"method":"mining.subscribe","params":{"agent":"a"}}\n');
  await Promise.all([silent.gone, slow.gone, tls.gone, half.gone]);
  await expectServed(port);
});

test('an idle zombie is closed; one that pings is not', async () => {
  const { port } = await startBed({ limits: { ...EASY, idleMillis: 4_000 } });
  const [zombie, alive] = [await V1Client.open(port), await V1Client.open(port)];
  await zombie.login(`${addressOf(1)}.z`);
  await alive.login(`${addressOf(1)}.a`);
  const timer = setInterval(() => void alive.ask({ method: 'mining.ping' }), 100);
  await zombie.closed;
  expect(await alive.ask({ method: 'mining.ping' })).toMatchObject({ kind: 'result' });
  clearInterval(timer);
  alive.close();
});

test('a miner that does not read is dropped, and delays nobody', async () => {
  const { port, source, server } = await startBed({ limits: { ...EASY, stallMillis: 1_000, queueBytes: 20_000 } });
  const deaf = await dial(port);
  deaf.pause();
  deaf.write('{"jsonrpc":"2.0","id":1,"method":"mining.subscribe","params":{"agent":"a"}}\n');
  deaf.write(`{"jsonrpc":"2.0","id":2,"method":"mining.authorize","params":{"username":"${addressOf(1)}"}}\n`);
  const reader = await V1Client.open(port);
  await reader.login(`${addressOf(2)}.r`);
  // Jobs until the system's own buffers are full, then some.
  for (let i = 0; i < 4_000 && (await server.figures()).listeners[0]!.connections > 1; i++) {
    const seen = reader.jobs.length;
    source.cut();
    await reader.until(() => (reader.jobs.length > seen ? true : undefined));
    if (i > 2_500) await sleep(20);
  }
  expect((await server.figures()).listeners[0]).toMatchObject({ connections: 1 });
  reader.close();
});

test('a share flood is bounded by code 27, and above-target shares end the session, not the account', async () => {
  const { port, sink } = await startBed({ ...PROXIED, limits: { ...EASY, submits: { perSecond: 1, burst: 20 } } });
  const client = await V1Client.open(port, 'proxied');
  await client.login(`${addressOf(1)}.f`);
  const job = client.jobs[0]!;
  let from = 0n;
  const nonces = Array.from({ length: 30 }, () => {
    const hit = mine(job, client.prefix, from);
    from = hit.next;
    return hit.nonce;
  });
  const codes = await Promise.all(nonces.map((nonce) => client.submitCode(job.jobId, nonce)));
  expect(codes.slice(0, 20)).toEqual(Array(20).fill(0));
  expect(codes.slice(20)).toContain(27);
  const liar = await V1Client.open(port, 'proxied');
  await liar.login(`${addressOf(1)}.liar`, 'd=1000000000');
  const lie = liar.jobs[0]!;
  for (let i = 0; i < 25; i++)
    liar.send({
      method: 'mining.submit',
      params: { jobId: lie.jobId, nonce: Uint8Array.of(i, 1, 1, 1, 1, 1, ...liar.prefix) },
    });
  await liar.closed;
  expect(liar.received.some((message) => message.kind === 'error' && message.error.code === 28)).toBe(true);
  await expect.poll(() => sink.rejected.filter(({ code }) => code === 23).length).toBeGreaterThan(10);
  await expectServed(port, proxy('203.0.113.6'));
  client.close();
});

test('PROXY: mandatory from the proxies, never read from others, bans fall on the address behind it', async () => {
  const { port, server } = await startBed({ ...PROXIED, limits: { ...EASY, bans: { ...EASY.bans, limit: 20 } } });
  const without = await dial(port, '{"jsonrpc":"2.0","id":1,"method":"mining.ping"}\n');
  await without.gone;
  const wrong = await dial(port, 'PROXY TCP4 nonsense 1 2 3\r\n{"jsonrpc"');
  await wrong.gone;
  const endless = await dial(port, `PROXY TCP4 ${'1'.repeat(200)}`);
  await endless.gone;
  const bad = await dial(port, `${proxy('203.0.113.5')}{nonsense}\n{more}\n{more}\n{more}\n{more}\n`);
  await bad.gone;
  expect(bad.text).toContain('"code":28');
  expect(server.bans()).toMatchObject([{ key: '203.0.113.5' }]);
  const again = await dial(port, `${proxy('203.0.113.5')}{"jsonrpc":"2.0","id":1,"method":"mining.ping"}\n`);
  await again.gone;
  expect(again.text).toContain('"retry_after_millis"');
  await expectServed(port, proxy('203.0.113.6'));
  const v2 = Buffer.concat([
    Buffer.from([0x0d, 0x0a, 0x0d, 0x0a, 0, 0x0d, 0x0a, 0x51, 0x55, 0x49, 0x54, 0x0a, 0x21, 0x11, 0, 12]),
    Buffer.from([203, 0, 113, 5, 127, 0, 0, 1, 0, 1, 0, 2]),
    Buffer.from('{"jsonrpc":"2.0","id":1,"method":"mining.ping"}\n'),
  ]);
  const binary = await dial(port, v2);
  await binary.gone;
  expect(binary.text).toContain('"code":28');
  const plain = await startBed();
  const spoof = await dial(plain.port, proxy('203.0.113.9'));
  await spoof.gone;
});

test('loopback is never banned', async () => {
  const { port, server } = await startBed({ limits: { ...EASY, bans: { ...EASY.bans, limit: 10 } } });
  const socket = await dial(port, '{no}\n'.repeat(40));
  while (socket.text.split('\n').length < 40) await sleep(5);
  expect(server.bans()).toEqual([]);
  await expectServed(port);
});

test('worker names with markup or separators are refused; the address must be of this network', async () => {
  const { port } = await startBed();
  const client = await V1Client.open(port);
  await client.subscribe();
  const authorize = async (username: string): Promise<number> => {
    const answer = await client.ask({ method: 'mining.authorize', params: { username, password: '' } });
    return answer.kind === 'error' ? answer.error.code : 0;
  };
  expect(await authorize(`${addressOf(1)}.<script>alert(1)</script>`)).toBe(-32602);
  expect(await authorize(`${addressOf(1)}.a b`)).toBe(-32602);
  expect(await authorize(`${addressOf(1)}.${'x'.repeat(65)}`)).toBe(-32602);
  expect(await authorize(`${addressOf(1)}.`)).toBe(-32602);
  expect(await authorize('nobody.rig')).toBe(29);
  expect(await authorize(`${addressOf(1).replace('dsvc1', 'svc1')}.rig`)).toBe(29);
  expect(await authorize(`${addressOf(1)}.rig:1`)).toBe(-32602);
  expect(await authorize(`${addressOf(1)}.rig.1`)).toBe(0);
  client.close();
});

test('many connections of one address, and of all, are bounded; others get in', async () => {
  const limits = { ...EASY, connectionsPerAddress: 5, connections: 8 };
  const { port, server } = await startBed({ ...PROXIED, limits });
  const first = await Promise.all(Array.from({ length: 5 }, () => dial(port, `${proxy('203.0.113.5')}{`)));
  await expect.poll(() => connectionsOf(server)).toBe(5);
  const sixth = await dial(port, `${proxy('203.0.113.5')}{`);
  await sixth.gone;
  await expectServed(port, proxy('203.0.113.6'));
  await expect.poll(() => connectionsOf(server)).toBe(5);
  const rest = await Promise.all(Array.from({ length: 3 }, (_, i) => dial(port, `${proxy(`203.0.113.${20 + i}`)}{`)));
  await expect.poll(() => connectionsOf(server)).toBe(8);
  const ninth = await dial(port, `${proxy('203.0.113.30')}{`);
  await ninth.gone;
  for (const socket of [...first, ...rest]) socket.destroy();
  await expectServed(port, proxy('203.0.113.5'));
});

test('login flood: requests beyond the bucket get 27 and end in a ban of the session', async () => {
  const { port } = await startBed({ ...PROXIED });
  const ping = '{"jsonrpc":"2.0","id":1,"method":"mining.ping"}\n';
  const socket = await dial(port, `${proxy('203.0.113.40')}${ping.repeat(400)}`);
  await socket.gone;
  expect(socket.text).toContain('"code":27');
  expect(socket.text).toContain('"code":28');
});

test('WebSocket: foreign origins, foreign subprotocols and frames of the wrong kind', async () => {
  const { wsPort } = await startBed({ wsOrigins: ['https://pool.example'] });
  const refused = async (protocols: string[], origin?: string): Promise<number> => {
    const socket = new WebSocket(`ws://127.0.0.1:${wsPort}`, protocols, origin === undefined ? {} : { origin });
    socket.on('error', () => {});
    const [, response] = (await once(socket, 'unexpected-response')) as [unknown, { statusCode: number }];
    socket.terminate();
    return response.statusCode;
  };
  expect(await refused(['svc-mining-v1'], 'https://evil.example')).toBe(403);
  expect(await refused(['chat'])).toBe(400);
  // One JSON-RPC line per text message: the specification names no subprotocol for it.
  const plain = new WebSocket(`ws://127.0.0.1:${wsPort}`);
  await once(plain, 'open');
  expect(plain.protocol).toBe('');
  plain.send(JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'mining.subscribe', params: { agent: 'plain/1' } }));
  const [answer] = (await once(plain, 'message')) as [Buffer];
  expect(JSON.parse(answer.toString())).toMatchObject({ id: 1, result: { nonce_prefix: expect.any(String) } });
  plain.terminate();
  const socket = new WebSocket(`ws://127.0.0.1:${wsPort}`, ['svc-mining-v1'], { origin: 'https://pool.example' });
  await once(socket, 'open');
  socket.send(Buffer.from([1, 2, 3]));
  await once(socket, 'close');
  const large = new WebSocket(`ws://127.0.0.1:${wsPort}`, ['svc-mining-v2']);
  large.on('error', () => {});
  await once(large, 'open');
  large.send(Buffer.alloc(20_000));
  await once(large, 'close');
});

test('v2: a sequence that jumps, and a frame no client sends', async () => {
  const { port } = await startBed();
  const client = await V2Client.open(port);
  const job = await client.login(`${addressOf(1)}.s`);
  client.send({ type: 'submit', sequence: 5, submit: { jobId: job.jobId, nonce: new Uint8Array(8) } });
  expect((await client.next('error')).error.code).toBe(-32600);
  await client.closed;
});
