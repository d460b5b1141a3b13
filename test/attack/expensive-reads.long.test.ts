/**
 * Reads cost what they are worth: with a thousand accounts and more no answer of any public route is longer than a page, and what a request makes
 * the pool do is taken from its client's allowance. How long the main thread was busy is printed and not judged: it is the machine's.
 */
import { request as httpRequest } from 'node:http';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { expect, test } from 'vitest';
import { COSTS, type Route } from '../../pool/api/route.ts';
import { readPoolList } from '../../protocol/books/pool-list.ts';
import { checkPoolList } from '../../protocol/books/pool-proof.ts';
import { count } from '../level.ts';
import { openPoolApiBed } from './pool-api-bed.ts';

const ACCOUNTS = count({ full: 1_000, deep: 10_000 });
/** More than the dearest read costs; what is left of it is found out by asking. */
const BURST = 80 + ACCOUNTS / 50;
/** Nothing comes back while the test lasts. */
const RATE = { perSecond: 1e-6, burst: BURST, strikes: 1e9, blockMillis: 1, maxClients: 1_000 };
/** 200 rows of whatever a route lists. */
const LONGEST_PAGE = 96 * 1024;

type Answer = { readonly status: number; readonly body: string };

test(`${ACCOUNTS} accounts: every answer is a page, and work is charged`, async () => {
  const bed = await openPoolApiBed({ accounts: ACCOUNTS, rate: RATE });
  const get = (path: string, client: string) =>
    new Promise<Answer>((resolve, reject) => {
      const place = { host: '127.0.0.1', localAddress: client, port: bed.port, path: `/api/v1${path}` };
      httpRequest({ ...place, agent: false }, (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.on('end', () => resolve({ status: response.statusCode ?? 0, body: Buffer.concat(chunks).toString() }));
      })
        .on('error', reject)
        .end();
    });
  /** Each has an allowance of its own. */
  let clients = 1;
  const newClient = () => `127.0.${Math.floor(++clients / 200)}.${(clients % 200) + 1}`;
  /** What a client has left, found out by spending it. */
  const left = async (client: string): Promise<number> => {
    for (let asked = 0; ; asked++) if ((await get('/connect', client)).status !== 200) return asked;
  };
  const spent = async (...paths: string[]) => {
    const client = newClient();
    const answers: Answer[] = [];
    for (const path of paths) answers.push(await get(path, client));
    expect(answers.map(({ status }) => status)).toEqual(paths.map(() => 200));
    return { units: BURST - (await left(client)), bytes: answers.map(({ body }) => Buffer.byteLength(body)), answers };
  };

  const delay = monitorEventLoopDelay({ resolution: 1 });
  delay.enable();

  // The first proof of a slice hashes every leaf of its window and of its list; the second is a lookup.
  const proof = `/proofs/pplns/1?address=${bed.address}`;
  const cold = await spent(proof);
  delay.disable();
  expect(cold.units).toBeGreaterThanOrEqual(COSTS.proof + (2 * ACCOUNTS) / COSTS.leaves);
  const warm = await spent(proof);
  expect(warm.units).toBeLessThanOrEqual(COSTS.proof + 2);

  // Everybody's credits: a page costs what a page is worth, and all pages together are the list.
  const first = await spent('/proofs/pplns/1/list?limit=200');
  const page = JSON.parse(first.answers[0]?.body as string) as { credits: unknown[]; next_cursor?: string };
  expect([page.credits.length, typeof page.next_cursor]).toEqual([200, 'string']);
  expect(first.units).toBe(COSTS.search + Math.floor((first.bytes[0] as number) / COSTS.bytes));
  const list = await readPoolList('pplns', 1, async (path) => JSON.parse((await get(path, newClient())).body));
  expect(checkPoolList(list)).toMatchObject({ valid: true });
  expect(list.credits).toHaveLength(ACCOUNTS);

  // Whatever a route is asked for at most: its answer is a page, and long ones cost more than short ones.
  const fill = (route: Route): string => {
    const part = { address: bed.address, service: 'pplns', slice: '1', worker: 'rig', id: 'a'.repeat(96) } as const;
    const path = route.path.replace(/:(\w+)/g, (_, name: string) => part[name as keyof typeof part] ?? '1');
    const most = Object.entries(route.query.properties ?? {}).flatMap(([name, { maximum }]) =>
      maximum === undefined ? [] : [`${name}=${maximum}`],
    );
    if (route.path === '/proofs/:service/:slice') most.push(`address=${bed.address}`);
    return most.length === 0 ? path : `${path}?${most.join('&')}`;
  };
  const routes = bed.api.routes.filter((route) => route.method === 'GET' && route.operator !== true);
  expect(routes.length).toBeGreaterThan(12);
  // Time of the thread itself: on a busy machine the delay of its event loop says more about the others.
  let dearest = { path: '', millis: 0 };
  for (const route of routes) {
    const client = newClient();
    const before = process.threadCpuUsage();
    const { status, body } = await get(fill(route), client);
    const { user, system } = process.threadCpuUsage(before);
    const millis = (user + system) / 1_000;
    if (millis > dearest.millis) dearest = { path: route.path, millis };
    expect([route.path, status]).toEqual([route.path, route.path === '/blocks/:id' ? 404 : 200]);
    expect(Buffer.byteLength(body), route.path).toBeLessThan(LONGEST_PAGE);
    const units = BURST - (await left(client));
    expect(units, route.path).toBeGreaterThanOrEqual((route.cost ?? 1) + Math.floor(body.length / COSTS.bytes));
  }
  console.log(
    `${ACCOUNTS} accounts: a first proof ${cold.units} units, main thread late by ${(delay.max / 1e6).toFixed(0)} ms at most; a page ` +
      `of the list ${first.units} units, ${first.bytes[0]} bytes; of all routes ${dearest.path} used most of the main thread, ` +
      `${dearest.millis.toFixed(0)} ms with the client's own part`,
  );
});

test('who owes waits, and nobody else does', async () => {
  const bed = await openPoolApiBed({ accounts: 500, rate: { ...RATE, burst: 10 } });
  const get = async (path: string) => (await fetch(`${bed.base}${path}`)).status;
  expect(await get(`/proofs/pplns/1?address=${bed.address}`)).toBe(200);
  expect(await get('/connect')).toBe(429);
});
