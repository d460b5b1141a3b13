/**
 * Whatever is put into a route, a method or a frame of the node's API, the mining listener, the wallet daemon, the bridge's statistics, the
 * metrics and the miner's API, nobody answers 500, logs an error or counts a defect. Values are made from the schemas that the programs
 * check by, so that they come past the checks and reach what is behind them. The pool's routes: pool-routes.long.test.ts.
 */
import { once } from 'node:events';
import { Agent, request as httpRequest } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { ROUTE_NAMES, ROUTES, type RouteSpec } from '../../protocol/api/routes.ts';
import type { JsonSchema } from '../../protocol/api/schema.ts';
import { METHODS } from '../../wallet/rpc/dispatch.ts';
import { addressOf } from '../bridge/stratum-client.ts';
import { count, seed } from '../level.ts';
import { randomOf } from '../random.ts';
import { type DoorName, Doors } from './doors-fixture.ts';

let doors: Doors;
beforeAll(async () => {
  doors = await Doors.open();
});
const agent = new Agent({ keepAlive: true, maxSockets: 8 });
afterAll(async () => {
  agent.destroy();
  await doors.close();
});

const random = randomOf(seed);
const pick = <T>(values: readonly T[]): T => values[random(values.length)] as T;
const hex = (bytes: number): string =>
  Array.from({ length: bytes }, () => random(256).toString(16).padStart(2, '0')).join('');

/** Text that is right somewhere, and text that is right nowhere. */
const TEXTS = [
  '',
  '0',
  '1',
  '-1',
  '007',
  '1.5',
  '5e1',
  '0x10',
  '2147483648',
  '9007199254740993',
  '9'.repeat(40),
  '18446744073709551616',
  '\0',
  'a\0b',
  '\u{1f4a9}',
  '\n\r',
  '../../',
  "'; drop table",
  '__proto__',
  'constructor',
  'x'.repeat(300),
  '\u0661\u0662',
  'all',
  'incoming',
  'final',
  'development',
  '0.00000001',
  '21000000000',
  '1e400',
  'NaN',
  'Infinity',
  '-0',
  addressOf(1),
  addressOf(1).toUpperCase(),
  addressOf(1).slice(0, -1),
  addressOf(1).replace('d', 'x'),
  `${addressOf(1)}.rig`,
  ...[1, 8, 16, 24, 40, 44, 48, 49, 56, 57, 60, 64, 93, 101, 105, 150].map(hex),
  'ff'.repeat(48),
  '00'.repeat(48),
  'FF'.repeat(48),
  'f'.repeat(95),
  '0'.repeat(112),
];
const ODD: readonly unknown[] = [
  null,
  true,
  -1,
  0,
  1,
  1.5,
  2 ** 31,
  2 ** 32,
  2 ** 53 - 1,
  1e308,
  [],
  [null],
  {},
  { a: 1 },
  [[]],
  '\ud800',
  Array.from({ length: 70 }, () => addressOf(1)),
  [addressOf(1), addressOf(1)],
  [addressOf(1), ''],
];

/** A value that the schema is likely to let through, or one that has nothing to do with it. */
function valueFor(schema: JsonSchema, depth = 0): unknown {
  if (random(12) === 0) return random(2) === 0 ? pick(TEXTS) : pick(ODD);
  if (schema.anyOf !== undefined) return valueFor(pick(schema.anyOf), depth);
  if (schema.const !== undefined) return schema.const;
  if (schema.enum !== undefined) return pick(schema.enum);
  switch (schema.type) {
    case 'integer':
      return pick([schema.minimum ?? 0, schema.maximum ?? 10, schema.default ?? 1, 0, 1, 2, 3]);
    case 'boolean':
      return random(2) === 0;
    case 'null':
      return null;
    case 'array': {
      const most = Math.min(schema.maxItems ?? 4, 4);
      const length = Math.max(schema.minItems ?? 0, random(most + 1));
      return Array.from({ length }, () => valueFor(schema.items ?? {}, depth + 1));
    }
    case 'object': {
      if (depth > 6) return {};
      const fields = Object.entries(schema.properties ?? {}).filter(
        ([name]) => schema.required?.includes(name) === true || random(2) === 0,
      );
      return Object.fromEntries(fields.map(([name, each]) => [name, valueFor(each, depth + 1)]));
    }
    default: {
      const fitting = TEXTS.filter(
        (text) => schema.pattern === undefined || new RegExp(schema.pattern, 'u').test(text),
      );
      return pick(fitting.length > 0 ? fitting : TEXTS);
    }
  }
}

type Answer = { readonly status: number; readonly body: string };

/** Sent as it is written: fetch would put a target right. */
const send = (door: DoorName, method: string, path: string, body?: string, headers: Record<string, string> = {}) =>
  new Promise<Answer>((resolve, reject) => {
    const length =
      body === undefined ? {} : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) };
    const place = { host: '127.0.0.1', port: doors.ports[door], method, path, agent };
    const request = httpRequest({ ...place, headers: { ...length, ...headers } }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('end', () => resolve({ status: response.statusCode ?? 0, body: Buffer.concat(chunks).toString() }));
    });
    request.on('error', reject);
    request.end(body);
  });

/** In a target: mostly encoded as it should be. */
const inTarget = (value: unknown): string => {
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  if (random(8) === 0) return pick(['%', '%zz', '%ff', '%00', '%c0%80', '%ed%a0%80', '%2f', '%3f', '%23', '+']);
  return encodeURIComponent(text.isWellFormed() ? text : '').replace(/^$/, random(2) === 0 ? '%20' : '');
};

async function expectQuiet(
  statuses: ReadonlyMap<number, number>,
  failures: readonly string[],
  what: string,
): Promise<void> {
  const { errors, faults } = await doors.figures();
  expect(failures.slice(0, 10)).toEqual([]);
  expect({ errors: errors.slice(0, 5), faults }).toEqual({ errors: [], faults: 0 });
  console.log(`${what}: ${[...statuses].map(([status, n]) => `${n} x ${status}`).join(', ')}`);
}

test('node API and mining listener: every route, its parameters, query and body', async () => {
  const failures: string[] = [];
  const statuses = new Map<number, number>();
  const ask = async (door: DoorName, method: string, path: string, body?: string) => {
    const answer = await send(door, method, path, body).catch((error: Error) => ({ status: 0, body: error.message }));
    statuses.set(answer.status, (statuses.get(answer.status) ?? 0) + 1);
    if (answer.status >= 500 || (answer.status === 0 && !/ECONNRESET|hang up|EPIPE/.test(answer.body)))
      failures.push(`${answer.status} ${door} ${method} ${path} ${body ?? ''} ${answer.body}`);
  };
  const asks: Promise<void>[] = [];
  const tries = count({ quick: 20, full: 60, deep: 3_000 });
  for (const name of ROUTE_NAMES) {
    const route = ROUTES[name] as RouteSpec;
    for (let i = 0; i < tries; i++) {
      const path = route.path.replace(/\{(\w+)\}/g, (_, each: string) =>
        inTarget(valueFor(route.params.properties?.[each] ?? {})).slice(0, 400),
      );
      const fields = Object.entries((valueFor(route.query) ?? {}) as Record<string, unknown>);
      if (random(6) === 0) fields.push([pick(TEXTS).slice(0, 40), pick(TEXTS)]);
      const query = fields
        .map(([key, value]) => `${inTarget(key)}=${inTarget(value)}`)
        .join('&')
        .slice(0, 1_500);
      const body = route.body === undefined ? undefined : JSON.stringify(valueFor(route.body));
      asks.push(ask('api', route.method, query === '' ? path : `${path}?${query}`, body));
      if (asks.length >= 64) await Promise.all(asks.splice(0));
    }
  }
  const mining = [
    { max_transactions: 5, payout: addressOf(1), extranonce_hex: '00' },
    { header_hex: hex(312), body_hex: hex(40) },
    { header_hex: hex(311), body_hex: '' },
    { payout: addressOf(1), draw: -1 },
  ];
  for (let i = 0; i < 2 * tries; i++) {
    const body = {
      ...pick(mining),
      [pick(['payout', 'header_hex', 'draw', 'body_hex', 'tag', '__proto__'])]: pick([...TEXTS, ...ODD]),
    };
    asks.push(ask('mining', 'POST', pick(['/v1/mining/templates', '/v1/mining/candidates']), JSON.stringify(body)));
    asks.push(
      ask(
        'mining',
        'GET',
        `${pick(['/v1/events', '/v1/node/identity', '/v1/chain/rates'])}?${inTarget(pick(TEXTS))}=${inTarget(pick(TEXTS))}`,
      ),
    );
    if (asks.length >= 64) await Promise.all(asks.splice(0));
  }
  for (const door of ['stats', 'metrics', 'miner'] as const)
    for (let i = 0; i < tries; i++)
      asks.push(
        ask(
          door,
          pick(['GET', 'POST', 'HEAD', 'PUT']),
          `${pick(['/v1/stats', '/metrics', '/v1/pause', '/'])}${pick(['', '/', '?'])}${inTarget(pick(TEXTS))}`,
        ),
      );
  await Promise.all(asks);
  expect(statuses.get(200) ?? 0).toBeGreaterThan(100);
  expect(statuses.get(400) ?? 0).toBeGreaterThan(100);
  await expectQuiet(statuses, failures, 'node, statistics, metrics, miner');
});

test('frames of the node API: requests and subscriptions', async () => {
  for (let round = 0; round < count({ full: 3, deep: 60 }); round++) {
    const socket = new WebSocket(`ws://127.0.0.1:${doors.ports.api}/v1/ws`, ['svc.node-api.v1']);
    socket.on('error', () => undefined);
    await once(socket, 'open');
    for (let i = 0; i < 40 && socket.readyState === WebSocket.OPEN; i++) {
      const route = ROUTES[pick(ROUTE_NAMES)] as RouteSpec;
      const path = `${route.path.replace(/\{\w+\}/g, () => inTarget(pick(TEXTS)))}?${inTarget(pick(TEXTS))}=${inTarget(pick(TEXTS))}`;
      const type = pick(['request', 'subscribe', 'unsubscribe', 'ping', pick(TEXTS)]);
      const data = {
        id: pick([1, 'a', null, -1, ...TEXTS]),
        path,
        topic: pick(['cuts', 'mempool', 'addresses', ...TEXTS]),
        addresses: pick(ODD),
      };
      socket.send(JSON.stringify({ type, data: random(5) === 0 ? pick(ODD) : data }));
      await sleep(5);
    }
    socket.terminate();
  }
  await expectQuiet(new Map(), [], 'frames of the node API');
});

test('wallet daemon: every method with whatever its schema lets through, and more', async () => {
  const authorization = 'Bearer test-token-of-more-than-32-characters';
  const failures: string[] = [];
  const codes = new Map<number, number>();
  const call = async (body: string) => {
    for (;;) {
      const answer = await send('wallet', 'POST', '/v1/rpc', body, { authorization });
      if (answer.status === 429) {
        await sleep(100);
        continue;
      }
      const { error } = JSON.parse(answer.body) as { error?: { code: number | string } };
      const code = Number(error?.code ?? 0);
      codes.set(code, (codes.get(code) ?? 0) + 1);
      if (answer.status >= 500 || code === -32603) failures.push(`${answer.status} ${body} ${answer.body}`);
      return;
    }
  };
  const calls: Promise<void>[] = [];
  // Calls that wait for another party, or go on until they are stopped.
  for (const [name, method] of Object.entries(METHODS))
    for (let i = 0; i < count({ quick: 10, full: 40, deep: 1_000 }); i++) {
      const params = valueFor(method.params);
      calls.push(call(JSON.stringify({ jsonrpc: '2.0', id: i, method: name, params })));
      if (calls.length >= 32) await Promise.all(calls.splice(0));
    }
  for (const text of [
    '[]',
    '{}',
    'null',
    '"',
    '{"jsonrpc":"2.0","id":1,"method":"__proto__"}',
    '{"jsonrpc":"2.0","id":{},"method":"status"}',
  ])
    calls.push(call(text));
  await Promise.all(calls);
  expect(codes.get(0) ?? 0).toBeGreaterThan(20);
  await expectQuiet(codes, failures, 'wallet methods by code');
});
