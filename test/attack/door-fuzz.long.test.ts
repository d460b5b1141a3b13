/**
 * Every door under random strokes: what it understands, cut anywhere, mutated, repeated or followed by garbage, in pieces, and
 * then closed, half-closed, reset or left alone, at every state of a connection. Whatever comes, nothing ends, nothing is kept,
 * and no error is logged.
 */
import { randomBytes } from 'node:crypto';
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect as connectTls } from 'node:tls';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { addressOf } from '../bridge/stratum-client.ts';
import { count, seed } from '../level.ts';
import { randomOf } from '../random.ts';
import { DOOR_NAMES, type DoorName, Doors, UPGRADES } from './doors-fixture.ts';
import { handshake } from './raw-client.ts';

let doors: Doors;
beforeAll(async () => {
  doors = await Doors.open();
});
afterAll(() => doors.close());

/** A masked frame, as clients send them. */
function frame(opcode: number, payload: Buffer, mask = randomBytes(4)): Buffer {
  const length =
    payload.length < 126 ? [0x80 | payload.length] : [0x80 | 126, payload.length >> 8, payload.length & 255];
  const masked = payload.map((byte, i) => byte ^ (mask[i & 3] as number));
  return Buffer.concat([Buffer.from([0x80 | opcode, ...length]), mask, masked]);
}
const text = (value: unknown): Buffer => frame(1, Buffer.from(JSON.stringify(value)));

const request = (method: string, target: string, more = '', body = ''): Buffer =>
  Buffer.from(`${method} ${target} HTTP/1.1\r\nhost: 127.0.0.1\r\n${more}\r\n${body}`);
const posted = (target: string, body: string, more = ''): Buffer =>
  request('POST', target, `content-type: application/json\r\ncontent-length: ${body.length}\r\n${more}`, body);

const line = (id: number, method: string, params: unknown): Buffer =>
  Buffer.from(`${JSON.stringify({ jsonrpc: '2.0', id, method, params })}\n`);
const LOGIN = [
  line(1, 'mining.subscribe', { agent: 'fuzz/1' }),
  line(2, 'mining.authorize', { username: `${addressOf(1)}.fuzz`, password: '' }),
  line(3, 'mining.submit', { job_id: 1, nonce: '0000000000000000' }),
  line(4, 'mining.stats', {}),
];
const WALLET = 'authorization: Bearer test-token-of-more-than-32-characters\r\n';
const rpc = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'status', params: {} });
const opened = (name: DoorName, ...frames: Buffer[]): Buffer =>
  Buffer.concat([Buffer.from(UPGRADES[name] ?? ''), ...frames]);
const live = handshake('/v1/ws', { 'sec-websocket-protocol': 'svc.node-api.v1' });

/** Whole conversations that each door understands. */
const SPOKEN: Readonly<Record<DoorName, readonly Buffer[]>> = {
  api: [
    request('GET', '/v1/chain/head'),
    request('GET', '/v1/blocks?limit=3&cursor=00ff'),
    request('OPTIONS', '/v1/transactions', 'origin: https://evil.example\r\n'),
    posted('/v1/transactions/status', '{"transaction_ids":["00"]}', 'expect: 100-continue\r\n'),
    opened('api', frame(1, Buffer.from('{}')), frame(8, Buffer.from([3, 232]))),
    Buffer.concat([
      Buffer.from(live),
      text({ type: 'subscribe', data: { id: 1, topic: 'cuts' } }),
      text({ type: 'request', data: { id: 2, path: '/v1/chain/rates' } }),
      text({ type: 'unsubscribe', data: { id: 3, subscription: 1 } }),
      frame(9, Buffer.from('ping')),
    ]),
  ],
  mining: [
    request('GET', '/v1/node/sync'),
    posted('/v1/mining/templates', '{"payout":"x","max_transactions":1}'),
    posted('/v1/mining/candidates', '{"header_hex":"00","body_hex":"00"}'),
    opened('mining', frame(2, randomBytes(20))),
  ],
  wallet: [
    request('GET', '/health'),
    posted('/v1/rpc', rpc, WALLET),
    posted('/v1/rpc', rpc),
    opened('wallet', text({ jsonrpc: '2.0', id: 1, method: 'subscribe', params: { events: ['finalized'] } })),
  ],
  web: [
    request('GET', '/'),
    request('GET', '/api/v1/openapi.json'),
    request('GET', '/api/v1/nothing?x=%00&cursor=%ff'),
    posted('/api/v1/operator/anything', '{"a":1}'),
    opened('web', frame(1, Buffer.from('x'))),
    Buffer.from(handshake('/stratum/pplns')),
  ],
  stratumWs: [
    request('GET', '/'),
    opened('stratumWs', ...LOGIN.map((each) => frame(1, each))),
    Buffer.from(handshake('/', { 'sec-websocket-protocol': 'svc-mining-v2', origin: 'https://evil.example' })),
    Buffer.concat([
      Buffer.from(handshake('/', { 'sec-websocket-protocol': 'svc-mining-v2' })),
      frame(2, randomBytes(60)),
    ]),
  ],
  stats: [request('GET', '/v1/stats'), posted('/v1/stats', '{}'), Buffer.from(handshake('/v1/stats'))],
  metrics: [request('GET', '/metrics'), request('HEAD', '/metrics?x')],
  miner: [request('GET', '/v1/stats'), posted('/v1/pause', '', 'authorization: Bearer token\r\n')],
  stratum: [
    Buffer.concat(LOGIN),
    Buffer.concat([Buffer.from('SVC2'), randomBytes(80)]),
    Buffer.concat([Buffer.from('PROXY TCP4 203.0.113.5 127.0.0.1 1 2\r\n'), ...LOGIN]),
    Buffer.from([0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3, ...randomBytes(60)]),
  ],
};

const random = randomOf(seed);
const pick = <T>(values: readonly T[]): T => values[random(values.length)] as T;

function mutated(bytes: Buffer): Buffer {
  const copy = Buffer.from(bytes);
  for (let i = random(4); i > 0 && copy.length > 0; i--) copy[random(copy.length)] = random(256);
  switch (random(8)) {
    case 0:
      return Buffer.concat([copy, copy, copy]);
    case 1:
      return Buffer.concat([copy, randomBytes(random(2_000))]);
    case 2:
      return Buffer.concat([randomBytes(random(50)), copy]);
    case 3: {
      const at = random(copy.length + 1);
      return Buffer.concat([copy.subarray(0, at), randomBytes(random(20)), copy.subarray(at)]);
    }
    default:
      return copy;
  }
}

type Ending = 'destroy' | 'reset' | 'half' | 'deaf' | 'stay';
const ENDINGS: readonly Ending[] = ['destroy', 'reset', 'half', 'deaf', 'stay'];

/** One connection: connects, says something in pieces, and stops as it likes. Resolves when it is given up or gone. */
async function stroke(name: DoorName, left: Set<Socket>): Promise<void> {
  const port = doors.ports[name];
  const localAddress = name === 'stratum' || name === 'stratumWs' ? pick(['127.0.0.1', '127.0.0.2']) : '127.0.0.1';
  const raw = connect({ port, host: '127.0.0.1', localAddress, allowHalfOpen: true });
  raw.on('error', () => undefined);
  const socket = name === 'stratum' && random(4) === 0 ? connectTls({ socket: raw, rejectUnauthorized: false }) : raw;
  const ending = pick(ENDINGS);
  socket.on('error', () => undefined);
  const gone = new Promise<void>((resolve) => socket.on('close', () => resolve()));
  left.add(socket);
  socket.on('close', () => left.delete(socket));
  if (ending !== 'deaf') socket.resume();
  const whole = random(3) === 0 ? pick(SPOKEN[name]) : mutated(pick(SPOKEN[name]));
  const bytes = whole.subarray(0, random(3) === 0 ? random(whole.length + 1) : whole.length);
  for (let at = 0; at < bytes.length; ) {
    const next = random(3) === 0 ? bytes.length : Math.min(bytes.length, at + 1 + random(200));
    if (socket.destroyed) return;
    socket.write(bytes.subarray(at, next));
    at = next;
    if (random(4) === 0) await new Promise((resolve) => setImmediate(resolve));
  }
  if (random(2) === 0) await sleep(random(20));
  if (ending === 'destroy') socket.destroy();
  else if (ending === 'reset') raw.resetAndDestroy();
  else if (ending === 'half') socket.end();
  // Most of the others stay until the door has had enough of them.
  if (ending === 'half' || ending === 'stay') await Promise.race([gone, sleep(50)]);
}

test.each(DOOR_NAMES)('%s', async (name) => {
  const left = new Set<Socket>();
  const strokes = count({ quick: 100, full: 400, deep: 20_000 });
  const abreast = 20;
  let begun = 0;
  await Promise.all(
    Array.from({ length: abreast }, async () => {
      while (begun < strokes) {
        begun++;
        await stroke(name, left);
        // Places are few at some doors: those who stay are sent away from time to time.
        if (left.size > 30) for (const socket of left) socket.destroy();
      }
    }),
  );
  for (const socket of left) socket.destroy();
  expect(doors.isAlive).toBe(true);
  await expect.poll(() => doors.held(), { interval: 100 }).toBe(0);
  await doors.expectServed();
  expect(await doors.figures()).toMatchObject({ errors: [], faults: 0 });
});
