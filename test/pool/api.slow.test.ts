import { createHash, createHmac } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { rawPublicKey, signMessage } from '../../node/ml-dsa.ts';
import type {
  BestSharesDocument,
  BlocksDocument,
  ChartDocument,
  CreditsDocument,
  EarningsDocument,
  FeedDocument,
  HistoryDocument,
  LeadersDocument,
  LiveFrame,
  MinerDocument,
  PaymentsDocument,
  PoolDocument,
  StatusDocument,
  WorkersDocument,
} from '../../pool/api/documents.ts';
import type {
  AuditDocument,
  BansDocument,
  OperatorHistoryDocument,
  OperatorLogDocument,
  OperatorStatus,
  QueueDocument,
  SettingsDocument,
  WithholdingDocument,
} from '../../pool/api/operator/operator-documents.ts';
import type { Route } from '../../pool/api/route.ts';
import { markSubmitting, reservePayout } from '../../pool/payout/payout-states.ts';
import { BestShares } from '../../pool/stats/best-shares.ts';
import { noteFigures } from '../../pool/stats/figure-history.ts';
import { SIGNATURE_HEADER } from '../../pool/webhooks/notice-request.ts';
import { WebhookSender } from '../../pool/webhooks/webhook-sender.ts';
import { formatAddress } from '../../protocol/address.ts';
import { check } from '../../protocol/api/schema.ts';
import { readPoolList } from '../../protocol/books/pool-list.ts';
import { checkPoolList, checkPoolProof, type PoolProof } from '../../protocol/books/pool-proof.ts';
import { toHex } from '../../protocol/bytes.ts';
import { addressProofMessage } from '../../protocol/transactions/address-proof.ts';
import { quietLog } from '../quiet-log.ts';
import { until } from '../until.ts';
import { absentWallet } from './absent-wallet.ts';
import { block, key, keyed, NASTY, openPoolApiBed, type PoolApiBed, wallet } from './api-bed.ts';
import { account, type BooksBed } from './books-bed.ts';

let bed: PoolApiBed;
let books: BooksBed;
let token: string;
beforeAll(async () => {
  bed = await openPoolApiBed();
  ({ books, token } = bed);
});
afterAll(() => bed.close());

const get = (path: string, init: RequestInit = {}) => fetch(`http://127.0.0.1:${bed.web.address.port}/p${path}`, init);
/** Every good answer fits the schema of its route. */
const json = async <T = Record<string, never>>(path: string, init: RequestInit = {}): Promise<T> => {
  const response = await get(`/api/v1${path}`, init);
  const answer = await response.json();
  const isOf = (route: Route) =>
    route.method === (init.method ?? 'GET') &&
    new RegExp(`^${route.path.replace(/:\w+/g, '[^/]+')}$`).test(path.split('?')[0] as string);
  const route = bed.api.routes.find(isOf);
  if (response.ok && route !== undefined) expect(check(route.answer, answer), path).toBeUndefined();
  return answer as T;
};
const address = formatAddress(keyed, 'development');

test('the pool, its miners and their parts are reported, with names as they are', async () => {
  const pool = await json<PoolDocument>('/pool');
  expect(pool.services[0]).toMatchObject({ service: 'pplns', miners: 121, blocks_found: 7, blocks_paid: 7 });
  expect(pool.services[0]?.luck.hundred).toBeGreaterThan(0);
  expect(pool.network_figures).toEqual({
    height: 9,
    hash_rate: 5,
    hash_rate_millis: 40_000,
    block_work: '1000',
    synced: true,
  });
  expect(await json<MinerDocument>(`/miners/${address}`)).toMatchObject({
    workers: 1,
    accepted: 1,
    payout_minimum: '1000',
  });
  const { workers } = await json<WorkersDocument>(`/miners/${address}/workers`);
  expect(workers[0]).toMatchObject({ name: NASTY, online: true, service: 'pplns' });
  const chart = await json<ChartDocument>(`/miners/${address}/chart?hours=24`);
  expect(chart.points).toHaveLength(1);
  const same = await json<ChartDocument>(`/miners/${address}/workers/pplns/${encodeURIComponent(NASTY)}/chart`);
  expect(same).toEqual(chart);
  // 500 hashes in the first seconds of all: a rate of those seconds, not of an hour that is still to come.
  expect(chart.points[0]?.hash_rate).toBeGreaterThan(0);
  expect(await json<ChartDocument>('/pool/chart?hours=100')).toMatchObject({ seconds_per_point: 3600 });
  const hour = await json<ChartDocument>('/pool/chart?hours=1');
  expect(hour.seconds_per_point).toBe(60);
  expect(hour.points.reduce((sum, point) => sum + (point.shares ?? 0), 0)).toBe(121);
  const history = await json<HistoryDocument>('/pool/history');
  expect(history.points.reduce((sum, point) => sum + point.blocks, 0)).toBe(7);
  expect(history.points.at(-1)).toMatchObject({ block_work: '1000', paid: '0' });
  expect((await json<LeadersDocument>('/leaders')).leaders).toEqual([
    { address, blocks: 7, reward: '7000000', luckiest: expect.any(Number) },
  ]);
  expect(pool.since_millis).toBeGreaterThan(Date.now() - 600_000);
  const { blocks } = await json<BlocksDocument>(`/blocks?finder=${address}&state=paid`);
  expect(blocks).toHaveLength(7);
  expect(blocks[0]).toMatchObject({ worker: NASTY, reward: '1000000', credited: true });
  expect((await json<PaymentsDocument>(`/payments?address=${address}`)).payments).toEqual([]);
});

test('the best share of each miner, and a list of the best: only better ones count, whatever came before the books', async () => {
  const at = { service: 'pplns', work: 1n, cutHeight: 1, headerDigest: new Uint8Array(), nonce: new Uint8Array() };
  const of = (payload: Uint8Array, worker: string, hashWork: number, extranonce = new Uint8Array(20)) => ({
    ...at,
    account: payload,
    worker,
    hashWork,
    extranonce,
    atMillis: 1_000_000 + (hashWork % 100_000),
  });
  const connection = new Uint8Array(20);
  const best = new BestShares();
  best.add([
    of(keyed, NASTY, 700, connection),
    of(keyed, NASTY, 90_000, connection),
    of(keyed, NASTY, 800, connection),
  ]);
  best.add([of(account('m 3'), 'rig.3', 2 ** 53 - 1), of(account('not in the books yet'), 'rig', 5)]);
  const away = Object.assign(() => Promise.reject(new Error('away')), {}) as never;
  await expect(best.flush(away)).rejects.toThrow('away');
  await best.flush(books.sql);
  // Another instance, and a miner that comes again: worse ones change nothing.
  best.add([of(keyed, NASTY, 89_999)]);
  await best.flush(books.sql);
  const address = formatAddress(keyed, 'development');
  const own = { work: '90000', worker: NASTY, at_millis: 1_090_000 };
  const list = [
    { address: formatAddress(account('m 3'), 'development'), work: String(2 ** 53 - 1), worker: 'rig.3' },
    { address, ...own },
  ];
  expect((await json<BestSharesDocument>('/best-shares')).best_shares).toMatchObject(list);
  const rig = account('not in the books yet');
  const share = { kind: 'share', service: 'pplns', account: rig, worker: 'rig', work: 1n, atMillis: 1, identity: null };
  await books.take([share as never]);
  await best.flush(books.sql);
  const late = await json<MinerDocument>(`/miners/${formatAddress(rig, 'development')}`);
  expect(late.best_share).toMatchObject({ work: '5', worker: 'rig' });
  // Its share is of long ago: a worker that is silent is not counted.
  expect(late).toMatchObject({ online: false, workers: 0, accepted: 1 });
});

test('pages join without gap or repetition', async () => {
  for (const [path, name, id, total] of [
    ['/blocks?limit=3', 'blocks', 'block_id', 7],
    ['/miners?limit=50', 'miners', 'address', 121],
    ['/slices/pplns?limit=1', 'slices', 'slice', 2],
  ] as const) {
    const seen: unknown[] = [];
    let cursor = '';
    do {
      const page = await json<Record<string, unknown>>(`${path}${cursor === '' ? '' : `&cursor=${cursor}`}`);
      seen.push(...(page[name] as Record<string, unknown>[]).map((row) => row[id]));
      cursor = (page.next_cursor as string | undefined) ?? '';
    } while (cursor !== '');
    expect(seen).toHaveLength(total);
    expect(new Set(seen).size).toBe(total);
  }
});

test('a proof downloaded over the API verifies; with one byte changed it does not', async () => {
  const response = await get(`/api/v1/proofs/pplns/1?address=${address}`);
  expect(response.headers.get('cache-control')).toContain('immutable');
  const text = await response.text();
  const verdict = checkPoolProof(JSON.parse(text) as PoolProof);
  expect(verdict).toMatchObject({ valid: true });
  const { credits } = await json<CreditsDocument>(`/miners/${address}/credits`);
  expect(verdict.valid && String(verdict.credit)).toBe(credits[0]?.amount);
  const one = await json<CreditsDocument>(`/miners/${address}/credits?limit=1`);
  expect(one.credits.length).toBeLessThanOrEqual(1);
  for (const at of [20, 200, Math.floor(text.length / 2), text.length - 40]) {
    const digit = [...text.slice(at)].findIndex((character) => /\d/.test(character)) + at;
    const changed = text.slice(0, digit) + ((Number(text[digit]) + 1) % 10) + text.slice(digit + 1);
    expect(checkPoolProof(JSON.parse(changed) as PoolProof)).toMatchObject({ valid: false });
  }
  expect(checkPoolList(await readPoolList('pplns', 1, (path) => json(path)))).toMatchObject({ valid: true });
  expect((await get('/api/v1/proofs/pplns/77/list')).status).toBe(404);
  // Who never mined here is proven to be absent, before the first, between two and after the last.
  for (const payload of [new Uint8Array(49), account('nobody'), new Uint8Array(49).fill(255, 1)]) {
    const nobody = formatAddress(payload, 'development');
    const proof = await json<PoolProof>(`/proofs/pplns/1?address=${nobody}`);
    expect(checkPoolProof(proof)).toMatchObject({ valid: true, credit: 0n });
  }
});

test('unchanged answers cost nothing, wrong ones are refused with a code', async () => {
  const first = await get('/api/v1/blocks');
  const again = await get('/api/v1/blocks', { headers: { 'if-none-match': first.headers.get('etag') ?? '' } });
  expect(again.status).toBe(304);
  for (const [path, status] of [
    ['/blocks?limit=0', 400],
    ['/blocks?cursor=x', 400],
    ['/blocks?state=odd', 400],
    ['/blocks/zz', 400],
    ['/miners/nobody', 400],
    [`/miners/${formatAddress(account('nobody'), 'development')}`, 404],
    ['/slices/odd', 400],
    ['/operator/status', 401],
    ['/proofs/pplns/1', 400],
    ['/pool/chart?hours=0', 400],
    ['/pool/history?hours=2', 400],
    ['/nothing', 404],
  ] as const) {
    const response = await get(`/api/v1${path}`);
    expect({ path, status: response.status }).toEqual({ path, status });
    expect(((await response.json()) as { error: { code: string } }).error.code).toBeTypeOf('string');
  }
  const broken = await get('/api/v1/operator/bans', {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: '{',
  });
  expect(broken.status).toBe(400);
});

test('a body that is not declared as JSON is refused with what to send, a missing one by its first field', async () => {
  const bans = async (type: string | undefined, body: BodyInit | null = null) => {
    const headers = { authorization: `Bearer ${token}`, ...(type === undefined ? {} : { 'content-type': type }) };
    const response = await get('/api/v1/operator/bans', { method: 'POST', headers, body });
    return { status: response.status, ...((await response.json()) as object) };
  };
  const refused = (message: string) => ({ status: 400, error: { code: 'bad_request', message } });
  const ban = new TextEncoder().encode('{"key":"10.9.9.9","minutes":1}');
  // As curl -d sends it, and as it does without a header.
  for (const type of ['application/x-www-form-urlencoded', undefined, 'text/xml'])
    expect(await bans(type, ban)).toMatchObject(refused(expect.stringContaining('content-type: application/json')));
  expect(await bans(undefined)).toMatchObject(refused('key is missing'));
});

test('the earnings of all days are the credits of the miner', async () => {
  const { credits } = await json<CreditsDocument>(`/miners/${address}/credits`);
  const { days } = await json<EarningsDocument>(`/miners/${address}/earnings`);
  const sum = (list: readonly { amount: string }[]) => list.reduce((all, { amount }) => all + BigInt(amount), 0n);
  expect(sum(credits)).toBeGreaterThan(0n);
  expect(sum(days)).toBe(sum(credits));
});

test('the operator, and only with the token, sees and changes things', async () => {
  const headers = { authorization: `Bearer ${token}` };
  const typed = { ...headers, 'content-type': 'application/json' };
  const call = <T>(path: string, method = 'GET', body?: object) =>
    json<T>(
      `/operator${path}`,
      body === undefined ? { method, headers } : { method, headers: typed, body: JSON.stringify(body) },
    );
  expect((await get('/api/v1/operator/config', { headers: { authorization: `Bearer ${token}x` } })).status).toBe(401);
  expect(await call('/config')).toEqual({ api_version: 1, config: { fee: 1 } });
  expect(await call<OperatorStatus>('/status')).toMatchObject({
    sheet: { rewards: '7000000', gap: '0' },
    wallet: { ready: false, reason: 'no wallet here' },
    accountant: { holder: 'test', here: true },
    payouts_paused: false,
  });
  await books.fenced((transaction) =>
    noteFigures(transaction, { head: undefined, spendable: 5n, connections: new Map([['pool-1', 7]]) }, Date.now()),
  );
  const figures = {
    refused: [],
    books_behind: null,
    payouts_open: 0,
    wallet_spendable: '5',
    front_ends: [{ name: 'pool-1', connections: 7 }],
  };
  for (const [query, seconds] of [
    ['?hours=1', 60],
    ['', 600],
    ['?hours=720', 3600],
  ] as const)
    expect(await call<OperatorHistoryDocument>(`/history${query}`)).toMatchObject({
      seconds_per_point: seconds,
      points: [figures],
    });
  await call('/bans', 'POST', { key: '10.1.2.3', minutes: 60 });
  expect(await call<BansDocument>('/bans')).toMatchObject({ bans: [{ key: '10.1.2.3/32' }] });
  expect(await call('/bans', 'DELETE', { key: '10.1.2.3' })).toEqual({ api_version: 1, lifted: true });
  await call('/pause', 'POST');
  expect(await call<OperatorStatus>('/status')).toMatchObject({ payouts_paused: true });
  const noteNow = async () =>
    (await call<SettingsDocument>('/settings')).settings.find(({ name }) => name === 'pause_note')?.value;
  expect(await call('/pause', 'POST', { note: 'two\nlines' })).toMatchObject({ error: { code: 'bad_request' } });
  expect(await call('/pause', 'POST', { note: 'the wallet moves' })).toMatchObject({ payouts_paused: true });
  expect(await noteNow()).toBe('the wallet moves');
  expect(await call('/pay-now', 'POST')).toMatchObject({ error: { code: 'conflict' } });
  await call('/resume', 'POST');
  expect(await noteNow()).toBeNull();
  // The payout loop waits for an interval after this time, and not at all without it.
  await books.sql`insert into settings values ('last_payout_millis', '1')`;
  expect(await call('/pay-now', 'POST')).toEqual({ api_version: 1, asked: true });
  expect(await books.sql`select 1 from settings where name = 'last_payout_millis'`).toHaveLength(0);
  const payout = '00000000-0000-4000-8000-000000000001';
  const doing = (action: string, body?: object) => call(`/payouts/${payout}/${action}`, 'POST', body);
  const queue = async () => (await call<QueueDocument>('/queue')).payouts;
  const refused = { error: { code: 'conflict' } };
  expect(await doing('void')).toMatchObject({ error: { code: 'not_found' } });
  const reserve = () => books.fenced((transaction) => reservePayout(transaction, payout, { minimum: 1n }));
  await reserve();
  expect(await queue()).toMatchObject([{ payout_id: payout, state: 'reserved', recipients: 7, actions: ['void'] }]);
  expect(await doing('release')).toMatchObject(refused);
  await books.sql`update payouts set needs_person = 'the wallet refuses it' where id = ${payout}`;
  expect(await queue()).toMatchObject([{ needs_person: 'the wallet refuses it', actions: ['release', 'void'] }]);
  expect(await doing('release')).toMatchObject({ released: payout });
  // Asked of the wallet, and nobody knows what it did: only the wallet's own word counts.
  const terms = { prefix: 'payout-test-', requestTable: 'table', height: 1 };
  await books.fenced((transaction) => markSubmitting(transaction, payout, terms));
  for (const action of ['release', 'void']) expect(await doing(action)).toMatchObject(refused);
  await books.sql`update payouts set needs_person = 'unclear' where id = ${payout}`;
  const [open] = await queue();
  expect(open).toMatchObject({ state: 'submitting', number: 1, actions: ['release', 'void', 'sent'] });
  expect(await doing('void')).toMatchObject({ error: { code: 'unavailable' } });
  const transaction_id = 'ab'.repeat(48);
  expect(await doing('sent', { transaction_id })).toMatchObject(refused);
  const recipients = (open?.items ?? []).map(({ address, amount }) => ({ address, amount: BigInt(amount) }));
  wallet.payment = async () => ({ kind: 'ok', value: { recipients: recipients.slice(1), fee: 5n } });
  expect(await doing('sent', { transaction_id })).toMatchObject(refused);
  const rest = { spendable: 0n, outputs: 0, indexedHeight: 1, isCaughtUp: true, validityCuts: 1, stopped: null };
  wallet.status = async () => ({ kind: 'ok', value: { requestTable: 'other table', ...rest } });
  wallet.payments = async () => ({ kind: 'ok', value: [] });
  expect(await doing('void')).toMatchObject(refused);
  wallet.status = async () => ({ kind: 'ok', value: { requestTable: 'table', ...rest } });
  // Released while the wallet answers: from then on it may be asked for this payout.
  wallet.payments = async () => {
    expect(await doing('release')).toMatchObject({ released: payout });
    return { kind: 'ok', value: [] };
  };
  expect(await doing('void')).toMatchObject(refused);
  await books.sql`update payouts set needs_person = 'unclear' where id = ${payout}`;
  wallet.payments = async () => ({ kind: 'ok', value: [] });
  expect(await doing('void')).toMatchObject({ voided: payout });
  expect(await queue()).toEqual([]);
  expect(await call<OperatorStatus>('/status')).toMatchObject({
    sheet: { in_flight: '0', gap: '0' },
    payouts_held: null,
  });
  Object.assign(wallet, absentWallet('no wallet here'));
  const { entries } = await call<OperatorLogDocument>('/log');
  expect(entries.map((row) => row.action)).toEqual([
    'payout_void',
    'payout_release',
    'payout_release',
    'payouts_now',
    'edit',
    'payouts_resume',
    'payouts_pause',
    'edit',
    'payouts_pause',
    'unban',
    'ban',
  ]);
  // Which token did it, never the token itself.
  const mark = createHash('sha256').update(token).digest('hex').slice(0, 8);
  expect(entries.map(({ details }) => (details as { token: string }).token)).toEqual(entries.map(() => mark));
});

test('an audit that the operator starts ends without a difference, and the log says who began it and how it ended', async () => {
  const headers = { authorization: `Bearer ${token}` };
  expect((await get('/api/v1/operator/audit', { method: 'POST' })).status).toBe(401);
  expect(await json('/operator/audit', { headers })).toMatchObject({ state: 'idle', result: null });
  expect(await json('/operator/audit', { headers, method: 'POST' })).toMatchObject({ state: 'running' });
  const log = await until(async () => {
    const { entries } = await json<OperatorLogDocument>('/operator/log?limit=2', { headers });
    return entries[0]?.action === 'audit_end' && entries;
  });
  const audit = await json<AuditDocument>('/operator/audit', { headers });
  expect(audit).toMatchObject({
    state: 'done',
    reason: null,
    result: { lists: 1, differences: 0, findings: [], ledger: false, wallet: false },
  });
  const mark = createHash('sha256').update(token).digest('hex').slice(0, 8);
  expect(log).toMatchObject([
    { action: 'audit_end', actor: '127.0.0.1', details: { differences: 0, token: mark } },
    { action: 'audit', actor: '127.0.0.1', details: { token: mark } },
  ]);
});

test('an account that keeps blocks back is named to the operator, and each miner sees its own luck', async () => {
  const address = formatAddress(account('m 3'), 'development');
  const [row] = await books.sql<{ id: number }[]>`select id from accounts where address = ${address}`;
  const evidence = Buffer.alloc(96);
  await books.sql`insert into luck (service, account_id, work, expected, found, evidence, named_at, highest)
    values (0, ${row?.id ?? 0}, 24000, 24, 6, ${evidence}, to_timestamp(1000), 1000), (0, 0, 90000, 90, 70, ${evidence}, null, 1)`;
  await books.sql`insert into luck_slices values (0, 0, 1000000)`;
  const headers = { authorization: `Bearer ${token}` };
  const { line, suspects } = await json<WithholdingDocument>('/operator/withholding', { headers });
  expect(line).toBe(10_000);
  expect(suspects).toMatchObject([
    { address, expected: 24, found: 6, withheld_work: '18000', named_millis: 1_000_000 },
  ]);
  expect(suspects[0]?.evidence).toBe(Number.MAX_VALUE);
  const { luck } = await json<MinerDocument>(`/miners/${address}`);
  const [found] = await books.sql<{ count: number }[]>`select count(*)::int as count from blocks
    where account_id = ${row?.id ?? 0} and service = 0`;
  expect(luck).toMatchObject([{ service: 'pplns', expected: 24, found: found?.count }]);
  expect(luck[0]?.probability).toBeLessThan(0.01);
});

test('a payout threshold is changed by the key of the address and nobody else', async () => {
  const path = `/miners/${address}/payout-threshold`;
  const post = (to: string, body: object) =>
    get(`/api/v1${to}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
  expect((await post(`${path}/request`, { threshold_atoms: '999' })).status).toBe(400);
  expect((await post(`${path}/request`, { threshold_atoms: '1000000000001' })).status).toBe(400);
  expect((await post(`${path}/request`, { threshold_atoms: '1000000000000' })).status).toBe(200);
  const request = await (await post(`${path}/request`, { threshold_atoms: '5000' })).json();
  const proof = {
    version: 1,
    address,
    challenge: request.challenge,
    public_key: toHex(rawPublicKey(key)),
    signature: toHex(signMessage(key, addressProofMessage(request))),
  };
  expect((await post(path, { threshold_atoms: '6000', request, proof })).status).toBe(403);
  const other = { ...proof, signature: proof.signature.replace(/^../, proof.signature.startsWith('00') ? '01' : '00') };
  expect((await post(path, { threshold_atoms: '5000', request, proof: other })).status).toBe(403);
  expect((await post(path, { threshold_atoms: '5000', request, proof })).status).toBe(200);
  const [row] = await books.sql`select payout_min from accounts where address = ${address}`;
  expect(row?.payout_min).toBe(5000n);
});

test('the dashboard is isolated and cached, whatever path its page is opened at', async () => {
  const page = await get('/miner/abc');
  expect(await page.text()).toContain('<title>pool</title>');
  expect(page.headers.get('cross-origin-embedder-policy')).toBe('require-corp');
  expect(page.headers.get('content-security-policy')).toContain("default-src 'none'");
  const script = await get('/assets/main-abcdef12.js', { headers: { 'accept-encoding': 'br' } });
  expect(script.headers.get('cache-control')).toContain('immutable');
  expect(script.headers.get('content-encoding')).toBe('br');
  expect((await get('/assets/none.js')).status).toBe(404);
  expect((await get('/../../etc/passwd')).status).toBe(404);
  expect((await get('/metrics')).status).toBe(200);
  const document = await json<{ paths: Record<string, unknown> }>('/openapi.json');
  expect(Object.keys(document.paths)).toContain('/miners/{address}/workers');
  expect(await (await get('/api/v1/')).text()).toContain('/api/v1/blocks');
});

test('live pages and webhooks hear of a block once it is in the books', async () => {
  const received: { event: string; signature: string; body: string }[] = [];
  let refusals = 2;
  const receiver = createServer((request, response) => {
    let body = '';
    request.on('data', (chunk) => {
      body += chunk;
    });
    request.on('end', () => {
      if (refusals-- > 0) return void response.writeHead(500).end();
      received.push({
        event: String(request.headers['svc-pool-event']),
        signature: String(request.headers[SIGNATURE_HEADER]),
        body,
      });
      response.end();
    });
  });
  await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/hook`;
  const sender = new WebhookSender(
    { urls: [url], secret: 'secret', pollMillis: 50 },
    { sql: books.sql, log: quietLog, now: Date.now, wall: Date.now },
  );
  const frames: LiveFrame[] = [];
  const page = new WebSocket(`ws://127.0.0.1:${bed.web.address.port}/p/api/v1/live`);
  page.addEventListener('message', ({ data }) => frames.push(JSON.parse(String(data)) as LiveFrame));
  await until(() => frames.length > 0);
  expect(frames[0]?.type).toBe('pool');
  await until(async () => (await books.sql`select 1 from webhooks`).length === 2);
  await books.take([block(50)]);
  await until(() => received.length === 1 && frames.some((frame) => frame.type === 'block'));
  page.close();
  const [{ body, signature, event } = { body: '', signature: '', event: '' }] = received;
  expect(event).toBe('block_found');
  const [, at, mac] = /^t=(\d+),v1=([0-9a-f]{64})$/.exec(signature) ?? [];
  expect(mac).toBe(createHmac('sha256', 'secret').update(`${at}.${body}`).digest('hex'));
  expect(JSON.parse(body).data).toMatchObject({ finder: address, worker: NASTY });
  // The sender has noted the answer: one that is stopped before that tells the event again, as documented.
  await until(async () => (await books.sql`select 1 from webhooks where attempts = 0`).length === 2);
  await sender.close();
  // Another sender goes on where the first stopped: nothing is reported twice.
  const next = new WebhookSender(
    { urls: [url], secret: 'secret', pollMillis: 20 },
    { sql: books.sql, log: quietLog, now: Date.now, wall: Date.now },
  );
  await books.take([block(51)]);
  await until(() => received.length === 2);
  await next.close();
  await new Promise((resolve) => receiver.close(resolve));
});

test('feeds have the newest blocks and payments, or those of one address, in both formats', async () => {
  const blocks = await json<FeedDocument>('/feeds/blocks.json');
  expect(blocks.items.length).toBeGreaterThan(0);
  expect(blocks.items[0]?.id).toMatch(/^urn:svc-pool:block:[0-9a-f]{96}$/);
  expect((await json<FeedDocument>('/feeds/blocks.json?address=nobody')).items).toEqual([]);
  for (const name of ['blocks', 'payments']) {
    const atom = await get(`/api/v1/feeds/${name}.atom`);
    expect(atom.headers.get('content-type')).toMatch(/^application\/atom\+xml/);
    expect(await atom.text()).toMatch(/^<\?xml[\s\S]*<\/feed>\n$/);
  }
  const [first] = blocks.items;
  expect(await (await get('/api/v1/feeds/blocks.atom')).text()).toContain(`<id>${first?.id}</id>`);
});

test('the status is answered while the database is not', async () => {
  const { sql } = books;
  await sql.begin(async (transaction) => {
    // Nobody can read what every refresh of the figures reads.
    await transaction`lock table settings in access exclusive mode`;
    const status = await json<StatusDocument>('/status');
    expect(status.parts.map(({ name }) => name)).toEqual(['mining', 'node', 'database', 'books', 'payouts']);
    const page = await get('/status');
    expect(page.status).toBe(200);
    expect(await page.text()).toContain('The pool’s page');
  });
});

test('workers that fall silent by the hundred delay no news of a block, and only the newest of them are sent', async () => {
  const kinds: string[] = [];
  const workers: string[] = [];
  let isSlow = true;
  const receiver = createServer((request, response) => {
    const kind = String(request.headers['svc-pool-event']);
    let text = '';
    request.setEncoding('utf8').on('data', (part: string) => {
      text += part;
    });
    request.on('end', () => {
      if (kind === 'worker_silent') {
        if (!isSlow) workers.push((JSON.parse(text) as { data: { worker: string } }).data.worker);
        // Not now: tried again later.
        response.statusCode = isSlow ? 503 : 200;
      } else kinds.push(kind);
      response.end();
    });
  });
  await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/lanes`;
  const sender = new WebhookSender(
    { urls: [url], secret: 'secret', pollMillis: 20 },
    { sql: books.sql, log: quietLog, now: Date.now, wall: Date.now },
  );
  const { sql } = books;
  await until(async () => (await sql`select 1 from webhooks where url = ${url}`).length === 2);
  for (let i = 0; i < 250; i++)
    await sql`select tell('worker_silent', ${sql.json({ address, worker: `x${i}`, service: 'pplns' })})`;
  await books.take([block(52)]);
  await until(() => kinds.includes('block_found'));
  isSlow = false;
  await until(async () => {
    await sql`update webhooks set next_at = now() where url = ${url}`;
    return workers.at(-1) === 'x249';
  });
  expect(workers.length).toBe(100);
  await sender.close();
  await new Promise((resolve) => receiver.close(resolve));
});
