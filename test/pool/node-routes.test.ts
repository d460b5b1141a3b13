/** The chain through the pool: the node's own answers and refusals, a bounded number of reads at a time, and nothing but reads. */
import { expect, test } from 'vitest';
import { PUBLIC_RATE_LIMIT, RateLimiter } from '../../node/api/rate-limit.ts';
import { nodeRoutes } from '../../pool/api/public/node-routes.ts';
import type { Exchange } from '../../pool/api/route.ts';
import { Turns } from '../../pool/api/turns.ts';
import { ApiError } from '../../protocol/api/client.ts';
import { ROUTE_NAMES } from '../../protocol/api/routes.ts';
import { ApiBed } from '../api/api-bed.ts';
import { webBed } from './web-bed.ts';

const live = (_: unknown, socket: { destroy(): unknown }) => void socket.destroy();
const listen = async (node: Parameters<typeof nodeRoutes>[0], prefix = '') =>
  `http://127.0.0.1:${await webBed([], { live, routes: nodeRoutes(node) }, { prefix })}${prefix}`;

test("answers are the node's own, refusals too; nothing can be submitted", async () => {
  const { client, bed } = await ApiBed.forTest();
  await bed.seal(3);
  const base = `${await listen(client)}/api/v1/node`;
  const read = async (path: string, init?: RequestInit) => {
    const response = await fetch(`${base}${path}`, init);
    return { status: response.status, body: (await response.json()) as Record<string, never> };
  };
  expect((await read('/v1/cuts?limit=2')).body).toEqual(await client.cuts({ limit: 2 }));
  expect((await read('/v1/economics/supply')).body).toEqual(await client.supply());
  const unknown = await read(`/v1/blocks/${'ab'.repeat(48)}`);
  expect(unknown).toMatchObject({ status: 404, body: { error: { code: 'not_found' } } });
  for (const path of ['/v1/blocks/short', '/v1/cuts?limit=101', '/v1/cuts?limit=1&limit=2', '/v1/cuts?x=1'])
    expect(await read(path), path).toMatchObject({ status: 400, body: { error: { code: 'bad_request' } } });
  expect(await read('/v1/address/nobody/balance')).toMatchObject({ status: 400 });
  const post = {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: '{"api_version":1,"wire_hex":"00"}',
  };
  for (const path of ['/v1/transactions', '/v1/node/status', '/../../operator/status'])
    expect((await read(path, post)).status, path).toBe(404);
});

test('a node that is away is a refusal with a time to come again, and one client has never more than four reads under way', async () => {
  let most = 0;
  let now = 0;
  const slow = async () => {
    most = Math.max(most, ++now);
    await new Promise((resolve) => setTimeout(resolve, 20));
    now--;
    throw new ApiError('client_unreachable', 0, 'no answer');
  };
  const node = Object.fromEntries(ROUTE_NAMES.map((name) => [name, slow])) as never;
  const base = await listen(node);
  // Different questions, or one answer would serve them all.
  const answers = await Promise.all(
    Array.from({ length: 100 }, (_, i) => fetch(`${base}/api/v1/node/v1/cuts?before=${i + 1}`)),
  );
  expect(answers.map(({ status }) => status)).toEqual(Array.from({ length: 100 }, () => 503));
  expect(answers[0]?.headers.get('retry-after')).toBe('2');
  expect(most).toBe(4);
  expect(now).toBe(0);
});

const statusRoute = (routes: ReturnType<typeof nodeRoutes>) =>
  routes.find(({ path }) => path === '/node/v1/transactions/:id/status') as (typeof routes)[number];
const visitor = (client: string, socket = { destroyed: false }) =>
  ({ client, charge: () => undefined, request: { raw: { socket } } }) as unknown as Exchange;
const asking = (id: string) => ({ params: { id }, query: {}, body: undefined });

test('one client does not take the places of others, and nothing is read for one that left', async () => {
  const waiting: (() => void)[] = [];
  let calls = 0;
  const slow = () => {
    calls++;
    return new Promise((resolve) => waiting.push(() => resolve({})));
  };
  const route = statusRoute(nodeRoutes(Object.fromEntries(ROUTE_NAMES.map((name) => [name, slow])) as never));
  const socket = { destroyed: false };
  const greedy = Array.from({ length: 72 }, (_, i) =>
    route.handle(asking(`${i}`), visitor('greedy', socket)).catch((error: Error) => error.message),
  );
  const other = route.handle(asking('x'), visitor('other'));
  await new Promise(setImmediate);
  expect(calls).toBe(5);
  socket.destroyed = true;
  for (const answer of waiting) answer();
  expect(await other).toEqual({});
  const answers = await Promise.all(greedy);
  expect(calls).toBe(5);
  expect(answers.filter((answer) => answer === 'the client is gone')).toHaveLength(32);
  expect(answers.filter((answer) => answer === 'the node has too much to answer')).toHaveLength(36);
});

test('visitors never use up what a node allows the pool itself; after a refusal nothing is passed on for a minute', async () => {
  let now = 0;
  const rate = new RateLimiter(PUBLIC_RATE_LIMIT);
  let refuses = false;
  let passed = 0;
  const call = async () => {
    passed++;
    if (refuses || !rate.take('the pool', 1, now).ok) throw new ApiError('too_many_requests', 429, 'too much');
    return {};
  };
  const node = Object.fromEntries(ROUTE_NAMES.map((name) => [name, call])) as never;
  const route = statusRoute(nodeRoutes(node, () => now));
  const ask = (i: number) => route.handle(asking(`${now}${i}`), visitor(`${i}`)).catch(() => undefined);
  for (; now < 120_000; now += 250) {
    for (let i = 0; i < 36; i++) await ask(i);
    expect(rate.take('the pool', 5, now).ok).toBe(true);
  }
  expect(passed).toBeGreaterThan(2_000);
  refuses = true;
  passed = 0;
  for (const end = now + 60_000; now < end; now += 250) for (let i = 0; i < 36; i++) await ask(i);
  expect(passed).toBe(1);
  refuses = false;
  await ask(0);
  expect(passed).toBe(2);
});

test('a visitor that asks for all it can get leaves the explorer to the others', async () => {
  let now = 0;
  const node = Object.fromEntries(ROUTE_NAMES.map((name) => [name, async () => ({})])) as never;
  const route = statusRoute(nodeRoutes(node, () => now));
  const ask = async (client: string, id: string): Promise<boolean> =>
    route.handle(asking(id), visitor(client)).then(
      () => true,
      () => false,
    );
  for (; now < 60_000; now += 250) {
    for (let i = 0; i < 60; i++) await ask('192.0.2.1', `${now}/${i}`);
    for (let i = 0; i < 28; i++) if (now % 10_000 === 0) expect(await ask('198.51.100.1', `o${now}/${i}`)).toBe(true);
  }
});

test('a stranger with all addresses of a network leaves the explorer to the others, and a greedy neighbour leaves some of it', async () => {
  let now = 0;
  const node = Object.fromEntries(ROUTE_NAMES.map((name) => [name, async () => ({})])) as never;
  const route = statusRoute(nodeRoutes(node, () => now));
  const ask = async (client: string, id: string): Promise<boolean> =>
    route.handle(asking(id), visitor(client)).then(
      () => true,
      () => false,
    );
  let asked = 0;
  for (; now < 60_000; now += 100) {
    for (let i = 0; i < 5; i++) await ask(`2001:db8:1:${(++asked).toString(16)}::/64`, `${asked}`);
    for (let i = 0; i < 5; i++) await ask('192.0.2.1', `n${now}/${i}`);
    if (now % 5_000 === 0)
      for (let i = 0; i < 15; i++) {
        expect(await ask('198.51.100.1', `o${now}/${i}`)).toBe(true);
        if (i < 4) expect(await ask('192.0.2.9', `p${now}/${i}`)).toBe(true);
      }
  }
});

test('turns: so many holders, so many waiting, and a name that nobody holds is forgotten', async () => {
  const turns = new Turns({ most: 1, holders: 2 });
  const [first, second] = [await turns.take('a'), await turns.take('a')];
  const third = turns.take('a');
  expect(await turns.take('a')).toBeUndefined();
  expect(await turns.take('b')).toBeDefined();
  first?.();
  (await third)?.();
  second?.();
  for (let i = 0; i < 2; i++) expect(await turns.take('a')).toBeDefined();
});

test('a page below its path has no slash at its end, and the prefix has one', async () => {
  const base = await listen({} as never, '/pool');
  const location = async (path: string) =>
    (await fetch(`${base}${path}`, { redirect: 'manual' })).headers.get('location');
  expect(await location('/explorer/')).toBe('/pool/explorer');
  expect(await location('')).toBe('/pool/');
  for (const path of ['//elsewhere.example/', '/..//elsewhere.example/', '/%2f/'])
    expect(await location(path)).toBeNull();
});
