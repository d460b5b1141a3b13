/** Whatever is put into the pool's routes, no answer is 500 and nothing is logged: a client's input is the client's fault. */
import { readdir, readFile } from 'node:fs/promises';
import { Agent, request as httpRequest } from 'node:http';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { AnswerCache } from '../../pool/api/answer-cache.ts';
import { answerKey, type Route } from '../../pool/api/route.ts';
import { check } from '../../protocol/api/schema.ts';
import { count, seed } from '../level.ts';
import { randomOf } from '../random.ts';
import { openPoolApiBed } from './pool-api-bed.ts';

const BIG = '9'.repeat(17);
/** As they stand in a URL: some are no valid encoding at all. */
const NASTY = [
  '',
  '0',
  '-1',
  '1',
  '50',
  '050',
  '5e1',
  '0x10',
  '1.5',
  '2147483647',
  '2147483648',
  '4294967296',
  BIG,
  '9'.repeat(40),
  'NaN',
  'Infinity',
  'null',
  'undefined',
  '__proto__',
  'constructor',
  'a%00b',
  '%00',
  '%',
  '%zz',
  '%ff',
  '%c0%80',
  '%ed%a0%80',
  '%F0%9F%92%A9',
  '%0a%0d',
  '..%2f..%2f',
  "'%3B--",
  '%27%20or%201%3D1',
  '-',
  '--',
  '%2d',
  'x'.repeat(300),
  `${BIG}-0`,
  `${BIG}-${BIG}`,
  '0-0',
  '1-',
  '1-a',
  '1-abc',
  '1--',
  '1-1-1',
  `1-${'a'.repeat(96)}`,
  `1-${'-'.repeat(36)}`,
  '1-00000000-0000-0000-0000-000000000000',
  `1-00000000-0000-0000-0000-000000000000-${BIG}`,
  '99999999999-0',
  'a'.repeat(96),
  '00000000-0000-0000-0000-000000000000',
  'pplns',
  'solo',
  'paid',
  '%5B%5D',
  '%7B%7D',
  '١٢٣',
];
/** Of the values, the part that one route is asked with. */
const PART = count({ full: 4, deep: 1 });
const BODIES: readonly unknown[] = [
  null,
  [],
  1,
  'text',
  true,
  {},
  { key: null },
  { key: '\u0000' },
  { key: '\ud800' },
  { key: 'a\u0000b', minutes: 1 },
  { key: '\ud800', minutes: 1 },
  { key: 'x'.repeat(5_000), minutes: 1 },
  { key: '1.2.3.4', minutes: 1e308 },
  { threshold_atoms: BIG + BIG },
  { threshold_atoms: '18446744073709551615' },
  { threshold_atoms: '9223372036854775808' },
  { threshold_atoms: '5000', request: {}, proof: {} },
  { threshold_atoms: '5000', request: { address: 1 }, proof: [] },
  { email: 'a@example.org' },
  { email: 'a@example.org\r\nBcc: b@example.org', events: ['blocks'] },
  { email: 'a@example.org', events: [], request: {}, proof: {} },
  { url: '', events: ['blocks', 'blocks', 'x'] },
  { code: 'x'.repeat(32) },
  { transaction_id: 'a'.repeat(96), fee_atoms: '9'.repeat(18) },
  { transaction_id: '\u0000', fee_atoms: '-1' },
  { __proto__: { key: 1 }, constructor: { prototype: 1 } },
];

const agent = new Agent({ keepAlive: true, maxSockets: 8 });
afterAll(() => agent.destroy());

type Answer = { readonly status: number; readonly body: string };

/** Sent as it is written: fetch would put a URL right. */
const send = (port: number, method: string, path: string, headers: Record<string, string>, body?: string) =>
  new Promise<Answer>((resolve, reject) => {
    const length = body === undefined ? {} : { 'content-length': String(Buffer.byteLength(body)) };
    const all = { ...headers, ...length };
    const request = httpRequest({ host: '127.0.0.1', port, method, path, headers: all, agent }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('end', () => resolve({ status: response.statusCode ?? 0, body: Buffer.concat(chunks).toString() }));
    });
    request.on('error', reject);
    request.end(body);
  });

test('no input of any route answers 500 or fills the log', async () => {
  const bed = await openPoolApiBed();
  const draw = randomOf(seed);
  const pick = <T>(list: readonly T[]): T => list[draw(list.length)] as T;
  const failures: string[] = [];
  const counts = new Map<number, number>();
  const ask = async (route: Route, path: string, body?: unknown) => {
    const headers: Record<string, string> = { authorization: `Bearer ${bed.token}` };
    if (body !== undefined) headers['content-type'] = 'application/json';
    const text = body === undefined ? undefined : JSON.stringify(body);
    const where = encodeURI(`/api/v1${path}`).replace(/%25/g, '%');
    const answer = await send(bed.port, route.method, where, headers, text).catch((error: Error) => {
      failures.push(`${error.message} ${route.method} ${path} ${text ?? ''}`);
      return { status: 0, body: '' };
    });
    counts.set(answer.status, (counts.get(answer.status) ?? 0) + 1);
    const said = () => (route.media === undefined ? JSON.parse(answer.body) : answer.body);
    const problem = answer.status === 200 ? check(route.answer, said()) : undefined;
    if (problem !== undefined) failures.push(`${route.path}: ${problem.field} ${problem.problem}`);
    if (answer.status >= 500) failures.push(`${answer.status} ${route.method} ${path} ${text ?? ''} ${answer.body}`);
  };
  const rightPart = (name: string): string =>
    ({ address: bed.address, service: 'pplns', slice: '1', worker: 'rig', id: 'a'.repeat(96) })[name] ?? '1';
  const fill = (route: Route, part: (name: string) => string) =>
    route.path.replace(/:(\w+)/g, (_, name: string) => part(name));
  for (const [number, route] of bed.api.routes.entries()) {
    const parts = [...route.path.matchAll(/:(\w+)/g)].map((match) => match[1] as string);
    const queries = Object.keys(route.query.properties ?? {});
    const bodies = route.body === undefined ? [undefined] : BODIES;
    const asks: (readonly [path: string, body: unknown])[] = bodies.map((body) => [fill(route, rightPart), body]);
    // Each value at each place, over the routes; at the deep level at each place of each route.
    for (const nasty of NASTY.filter((_, i) => (i + number) % PART === 0)) {
      for (const odd of parts) asks.push([fill(route, (name) => (name === odd ? nasty : rightPart(name))), bodies[0]]);
      for (const query of [...queries, 'junk', nasty])
        asks.push([`${fill(route, rightPart)}?${query}=${nasty}`, bodies[0]]);
    }
    for (let i = 0; i < count({ full: 20, deep: 2_000 }); i++) {
      const words = queries.map((name) => `${name}=${pick(NASTY)}`).join('&');
      const path = fill(route, (name) => (draw(2) === 0 ? pick(NASTY) : rightPart(name)));
      asks.push([`${path}?${words}`, pick(bodies)]);
    }
    await Promise.all(asks.map(([path, body]) => ask(route, path, body)));
  }
  expect(failures.slice(0, 20)).toEqual([]);
  expect(bed.lines).toEqual([]);
  expect(counts.get(200) ?? 0).toBeGreaterThan(20);
  console.log(`pool routes: ${[...counts].map(([status, n]) => `${n} x ${status}`).join(', ')}`);
});

test('junk neither passes by the answer cache nor fills it', async () => {
  let built = 0;
  const cache = new AnswerCache({ capacity: 10, totalBytes: 3_000 }, { now: () => 1_000 });
  const get = (key: string, answer: unknown) =>
    cache.get(key, 5_000, async () => {
      built++;
      if (answer === undefined) throw new Error('there is no such thing');
      return answer;
    });
  for (let i = 0; i < 100; i++) await expect(get(`nobody ${i}`, undefined)).rejects.toThrow();
  expect(cache.size).toEqual({ answers: 0, bytes: 0 });
  for (let i = 0; i < 100; i++) await get(`somebody ${i}`, 'x'.repeat(1_000));
  expect(cache.size).toEqual({ answers: 3, bytes: 3_000 });
  built = 0;
  await get('somebody 99', 'x');
  expect(built).toBe(0);
  const request = (url: string, query: object) => ({ routeOptions: { url }, params: { a: 'é' }, query }) as never;
  const key = answerKey(request('/blocks', { limit: '5', state: 'paid' }));
  expect(answerKey(request('/blocks', { state: 'paid', limit: '5' }))).toBe(key);
  expect(answerKey(request('/blocks', { state: 'paid', limit: '6' }))).not.toBe(key);
});

test('every parameter that the page asks with is one that its route has', async () => {
  const bed = await openPoolApiBed();
  const source = (await readdir('dashboard', { recursive: true })).filter(
    (name) => /\.tsx?$/.test(name) && !name.startsWith('explorer/'),
  );
  const texts = await Promise.all(source.map((name) => readFile(join('dashboard', name), 'utf8')));
  const parametersOf = (last: string): Set<string> =>
    new Set(
      bed.api.routes
        .filter((route) => route.path.endsWith(`/${last}`))
        .flatMap((route) => Object.keys(route.query.properties ?? {})),
    );
  // Such as `blocks${query({ service, limit: 50 })}` and `${path}/credits${query({ cursor, limit: 20 })}`; paths from /v1 on, and those of the explorer, are the node's.
  const asked = texts
    .flatMap((text) => [...text.matchAll(/`([^`\n]*?)([\w.]+)\$\{query\(\{([^}]*)\}\)\}/g)])
    .filter(([, before = '']) => !before.startsWith('/v1/'));
  expect(asked.length).toBeGreaterThan(4);
  for (const [, , route = '', words = ''] of asked)
    for (const word of words.split(','))
      expect([...parametersOf(route)], `${route}: ${word}`).toContain(word.split(':')[0]?.trim());
});
