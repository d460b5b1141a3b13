/** Every route with missing, extra, wrong-typed, huge, negative, non-UTF-8 and deeply nested input: always a 4xx with an error document. */
import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { makeCursor } from '../../node/api/cursor.ts';
import { developmentKey } from '../../node/genesis/development.ts';
import { OUTPOINT_BYTES } from '../../node/index/index-keys.ts';
import { parseAddress } from '../../protocol/address.ts';
import { errorDocument } from '../../protocol/api/documents.ts';
import { API_ERRORS } from '../../protocol/api/error-codes.ts';
import { ROUTE_NAMES, ROUTES, type RouteName, type RouteSpec } from '../../protocol/api/routes.ts';
import { check, type JsonSchema } from '../../protocol/api/schema.ts';
import { toHex } from '../../protocol/bytes.ts';
import { id } from '../../protocol/crypto/identifier.ts';
import { count, seed } from '../level.ts';
import { ApiBed, treasury } from './api-bed.ts';

let bed: ApiBed;
beforeAll(async () => {
  bed = await ApiBed.open();
  await bed.bed.seal(2);
});
afterAll(() => bed.close());

const ID = 'a'.repeat(96);
const GOOD: Record<string, unknown> = {
  address: '',
  height: 1,
  id: ID,
  amount: '5',
  addresses: [],
  transaction_ids: [ID],
  outpoints: [{ transaction_id: ID, output_index: 0 }],
  api_version: 1,
  wire_hex: 'ab',
  after_height: 0,
};
const good = (name: string): unknown =>
  name === 'address' ? treasury() : name === 'addresses' ? [treasury()] : GOOD[name];

async function refused(answer: Response, what: string): Promise<void> {
  expect(answer.status, what).toBeGreaterThanOrEqual(400);
  expect(answer.status, what).toBeLessThan(500);
  const document = await answer.json();
  expect(check(errorDocument, document), what).toBeUndefined();
  const { code, message } = document.error as { code: string; message: string };
  if (code in API_ERRORS) expect(API_ERRORS[code as keyof typeof API_ERRORS], what).toBe(answer.status);
  expect(message.length, what).toBeLessThan(1_000);
}

const pathOf = (route: RouteSpec, values: Record<string, string> = {}): string =>
  route.path.replace(/\{(\w+)\}/g, (_, field: string) => values[field] ?? encodeURIComponent(String(good(field))));

/** A query with what the route cannot do without. */
function queryOf(route: RouteSpec, extra = ''): string {
  const needed = (route.query.required ?? []).map((field) => `${field}=${good(field)}`);
  const parts = [...needed, ...(extra === '' ? [] : [extra])];
  return parts.length === 0 ? '' : `?${parts.join('&')}`;
}

const BAD_SEGMENTS = [
  '%',
  '%ff',
  '%00',
  '-1',
  '1e3',
  '0x10',
  '99999999999999999999',
  'A'.repeat(96),
  'a'.repeat(95),
  'a'.repeat(1500),
  '..',
  '%2e%2e%2f',
  'null',
  '%F0%9F%92%A9',
  '__proto__',
];
const BAD_VALUES = [
  '',
  '-1',
  '1.5',
  '0',
  '1e9',
  '99999999999999999999',
  'NaN',
  '%ff',
  '%00',
  'a'.repeat(500),
  '[]',
  '01',
  '+1',
];

test.each(ROUTE_NAMES)('%s: path and query', async (name: RouteName) => {
  const route: RouteSpec = ROUTES[name];
  if (route.method !== 'GET') return;
  for (const field of Object.keys(route.params.properties ?? {}))
    for (const segment of BAD_SEGMENTS) {
      // Fetch would resolve dots before sending.
      const path = pathOf(route, { [field]: segment });
      await refused(await bed.get(`${path}${queryOf(route)}`), `${name} ${field}=${segment}`);
    }
  await refused(await bed.get(`${pathOf(route)}${queryOf(route, 'unknown=1')}`), `${name} unknown field`);
  await refused(await bed.get(`${pathOf(route)}${queryOf(route, '__proto__=1')}`), `${name} __proto__`);
  for (const field of Object.keys(route.query.properties ?? {})) {
    for (const value of BAD_VALUES) {
      if (field === 'before' && value === '0') continue;
      if (field === 'amount' && value === '0') continue;
      await refused(await bed.get(`${pathOf(route)}?${field}=${value}`), `${name} ${field}=${value}`);
    }
    await refused(
      await bed.get(`${pathOf(route)}${queryOf(route, `${field}=1&${field}=2`)}`),
      `${name} ${field} twice`,
    );
  }
  for (const field of route.query.required ?? [])
    await refused(await bed.get(pathOf(route)), `${name} without ${field}`);
  const body = await fetch(`${bed.base}${pathOf(route)}${queryOf(route)}`, { method: 'POST', body: '{}' });
  await refused(body, `${name} as POST`);
});

const WRONG: readonly unknown[] = [
  null,
  true,
  0,
  -1,
  1.5,
  1e300,
  '',
  'x',
  '💩',
  [],
  {},
  [[]],
  [null],
  [{}],
  'a'.repeat(10_000),
];

function variants(schema: JsonSchema, body: Record<string, unknown>): { what: string; text: string | Uint8Array }[] {
  const found: { what: string; text: string | Uint8Array }[] = [];
  for (const field of Object.keys(schema.properties ?? {})) {
    if ((schema.required ?? []).includes(field)) {
      const { [field]: _, ...rest } = body;
      found.push({ what: `without ${field}`, text: JSON.stringify(rest) });
    }
    for (const wrong of WRONG) {
      const value = { ...body, [field]: wrong };
      if (check(schema, value) === undefined) continue;
      found.push({ what: `${field}=${JSON.stringify(wrong)?.slice(0, 40)}`, text: JSON.stringify(value) });
    }
    if (Array.isArray(body[field])) {
      const [entry] = body[field] as unknown[];
      const max = schema.properties?.[field]?.maxItems ?? 0;
      found.push({ what: `${field} too many`, text: JSON.stringify({ ...body, [field]: Array(max + 1).fill(entry) }) });
      for (const wrong of WRONG)
        found.push({
          what: `${field} with ${JSON.stringify(wrong)?.slice(0, 40)}`,
          text: JSON.stringify({ ...body, [field]: [entry, wrong] }),
        });
    }
  }
  const text = JSON.stringify(body);
  found.push(
    { what: 'an extra field', text: JSON.stringify({ ...body, extra: 1 }) },
    { what: '__proto__', text: `{"__proto__":{"x":1},${text.slice(1)}` },
    { what: 'no body', text: '' },
    { what: 'null', text: 'null' },
    { what: 'an array', text: `[${text}]` },
    { what: 'half', text: text.slice(0, -1) },
    { what: 'two values', text: `${text}${text}` },
    { what: 'not UTF-8', text: Buffer.concat([Buffer.from(text.slice(0, -1)), Buffer.from([0xff, 0x7d])]) },
    { what: 'deep nesting', text: `${'['.repeat(60_000)}${']'.repeat(60_000)}` },
    { what: 'deep objects', text: `${'{"a":'.repeat(20_000)}1${'}'.repeat(20_000)}` },
    { what: 'too large', text: JSON.stringify({ ...body, extra: 'x'.repeat(140_000) }) },
  );
  return found;
}

test.each(ROUTE_NAMES)('%s: body', async (name: RouteName) => {
  const route: RouteSpec = ROUTES[name];
  if (route.body === undefined) return;
  const body = Object.fromEntries((route.body.required ?? []).map((field) => [field, good(field)]));
  for (const { what, text } of variants(route.body, body))
    await refused(await bed.post(route.path, text), `${name} ${what}`);
  await refused(await bed.post(`${route.path}?x=1`, body), `${name} with a query`);
});

test('cursors that were changed, or are of another query, are refused', async () => {
  const page = await bed.client.addressUtxos({ address: treasury(), limit: 2 });
  const cursor = page.next_cursor as string;
  for (let at = 0; at < cursor.length; at++) {
    const changed = `${cursor.slice(0, at)}${cursor[at] === '0' ? '1' : '0'}${cursor.slice(at + 1)}`;
    const answer = await bed.get(`/v1/address/${treasury()}/utxos?cursor=${changed}`);
    expect(answer.status).toBe(400);
    expect((await answer.json()).error.code).toBe('bad_cursor');
  }
  for (const wrong of [cursor.slice(2), `${cursor}00`, 'ab', cursor.slice(0, -1)])
    expect((await bed.get(`/v1/address/${treasury()}/utxos?cursor=${wrong}`)).status).toBe(400);
  expect((await bed.get(`/v1/address/${treasury()}/history?cursor=${cursor}`)).status).toBe(400);
  expect((await bed.post('/v1/address/utxos', { addresses: [treasury()], cursor })).status).toBe(400);
});

test('cursors that name an owner who was not asked for are refused', async () => {
  const stranger = developmentKey('stranger').address;
  const asked = parseAddress(treasury()).payload;
  const list = toHex(id('SVC_API_CURSOR_V1', asked));
  for (const [path, scope, bytes] of [
    ['/v1/staking/positions', `positions ${list}`, 48],
    ['/v1/address/utxos', `utxos of many ${list}`, OUTPOINT_BYTES],
  ] as const) {
    const post = (owner: Uint8Array) =>
      bed.post(path, {
        addresses: [treasury()],
        cursor: makeCursor(scope, Buffer.concat([owner, new Uint8Array(bytes)])),
      });
    expect((await post(asked)).status).toBe(200);
    const answer = await post(stranger);
    expect([answer.status, (await answer.json()).error.code]).toEqual([400, 'bad_cursor']);
  }
});

test('any JSON at all, at any route, is answered with a document', async () => {
  const routes = ROUTE_NAMES.filter((name) => ROUTES[name].method === 'POST');
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...routes), fc.json({ maxDepth: 5 }), async (name, text) => {
      await refused(await bed.post(ROUTES[name].path, text), `${name} ${text}`);
    }),
    { seed, numRuns: count({ quick: 100, full: 400, deep: 5_000 }) },
  );
  expect((await bed.get('/health')).status).toBe(200);
});
