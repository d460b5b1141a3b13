import { createHmac } from 'node:crypto';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { NO_RATE_LIMIT } from '../../node/api/rate-limit.ts';
import { privateKeyOfSeed, rawPublicKey, signMessage } from '../../node/ml-dsa.ts';
import { OperatorToken } from '../../pool/api/operator-token.ts';
import { openPoolApi, type PoolApi } from '../../pool/api/pool-api.ts';
import { startWeb, type WebListener } from '../../pool/api/web.ts';
import { makeCredits } from '../../pool/books/credits.ts';
import { recordPaid } from '../../pool/books/rewards.ts';
import type { JournalRecord } from '../../pool/journal-record.ts';
import { LocalSharedState } from '../../pool/shared/shared-state.ts';
import { foldStats } from '../../pool/stats/fold.ts';
import { SIGNATURE_HEADER, WebhookSender } from '../../pool/webhooks/webhook-sender.ts';
import { formatAddress, keyAddressPayload } from '../../protocol/address.ts';
import { addressProofMessage } from '../../protocol/address-proof.ts';
import { toHex } from '../../protocol/bytes.ts';
import { checkPoolList, checkPoolProof, type PoolList, type PoolProof } from '../../protocol/pool-proof.ts';
import { targetOfWork } from '../../protocol/target.ts';
import { Metrics } from '../../runtime/metrics.ts';
import { pattern } from '../../vectors/generate/pattern.ts';
import { quietLog } from '../quiet-log.ts';
import { account, type BooksBed, openBooks, SLICE_CUTS } from './books-bed.ts';

const key = privateKeyOfSeed(pattern('key of a miner', 32));
const keyed = keyAddressPayload(rawPublicKey(key));
const NASTY = `<img src=x onerror=alert(1)>"';--`;

let books: BooksBed;
let api: PoolApi;
let web: WebListener;
let directory: string;
let token: string;

const share = (payload: Uint8Array, worker: string, work: bigint): JournalRecord => ({
  kind: 'share',
  service: 'pplns',
  account: payload,
  worker,
  work,
  atMillis: Date.now(),
});
const block = (n: number): JournalRecord => ({
  kind: 'block',
  service: 'pplns',
  account: keyed,
  worker: NASTY,
  blockId: pattern(`block ${n}`, 48),
  anchorHeight: SLICE_CUTS + (n % 3),
  target: targetOfWork(1000n),
  extranonce: pattern('extranonce', 20),
  atMillis: Date.now() - 1000 * n,
});

beforeAll(async () => {
  books = await openBooks();
  directory = mkdtempSync(join(tmpdir(), 'svc-api-'));
  mkdirSync(join(directory, 'page', 'assets'), { recursive: true });
  writeFileSync(join(directory, 'page', 'index.html'), '<!doctype html><title>pool</title>');
  writeFileSync(join(directory, 'page', 'assets', 'main-abcdef12.js'), `export {};${' '.repeat(2000)}`);
  await books.height(0);
  const miners = Array.from({ length: 120 }, (_, i) => share(account(`m ${i}`), `rig.${i}`, BigInt(10 + i)));
  await books.take([share(keyed, NASTY, 500n), ...miners]);
  await books.height(SLICE_CUTS);
  await books.take(Array.from({ length: 7 }, (_, n) => block(n)));
  await books.height(2 * SLICE_CUTS);
  for (let n = 0; n < 7; n++)
    await books.fenced((transaction) =>
      recordPaid(transaction, {
        blockId: pattern(`block ${n}`, 48),
        transactionId: pattern(`reward ${n}`, 48),
        outputIndex: n,
        amount: 1_000_000n,
        height: 100,
      }),
    );
  const options = { sliceCuts: SLICE_CUTS, feePpm: new Map([[0, 10_000n]]) };
  await books.fenced((transaction) => makeCredits(transaction, options, 200));
  await books.fenced((transaction) => foldStats(transaction, Date.now()));
  api = await openPoolApi(
    {
      terms: {
        name: 'test pool',
        network: 'development',
        address: formatAddress(account('pool'), 'development'),
        feePpm: { pplns: 10_000, solo: 5_000 },
        payoutMin: 1_000n,
        payoutIntervalMillis: 60_000,
        windowThousandths: 1_000n,
        sliceCuts: SLICE_CUTS,
      },
      network: 'development',
      config: { fee: 1 },
    },
    {
      sql: books.sql,
      shared: new LocalSharedState({ resumeMillis: 1, resumeSessions: 1 }, Date.now),
      chain: () => ({ height: 9, targetWork: 1000n, hashesPerSecond: 5n }),
      log: quietLog,
      now: Date.now,
    },
  );
  const operator = new OperatorToken(join(directory, 'token'));
  await operator.ensure();
  token = readFileSync(join(directory, 'token'), 'utf8').trim();
  web = await startWeb(
    {
      listen: { host: '127.0.0.1', port: 0 },
      prefix: '/p',
      proxies: [],
      dashboard: join(directory, 'page'),
      title: 'test',
      version: '1',
      metrics: true,
      rate: NO_RATE_LIMIT,
    },
    { routes: api.routes, token: operator, metrics: new Metrics(), log: quietLog, now: Date.now, ready: () => true },
  );
});
afterAll(async () => {
  await web.close();
  await api.close();
  await books.close();
  rmSync(directory, { recursive: true, force: true });
});

const get = (path: string, init: RequestInit = {}) => fetch(`http://127.0.0.1:${web.address.port}/p${path}`, init);
const json = async <T = Record<string, never>>(path: string, init: RequestInit = {}): Promise<T> =>
  (await (await get(`/api/v1${path}`, init)).json()) as T;
const address = formatAddress(keyed, 'development');

test('the pool, its miners and their parts are told, with names as they are', async () => {
  const pool = await json<{ services: { pplns: { miners: number; blocks_24h: object } } }>('/pool');
  expect(pool.services.pplns.miners).toBe(121);
  expect(pool.services.pplns.blocks_24h).toMatchObject({ found: 7, paid: 7 });
  const miner = await json(`/miners/${address}`);
  expect(miner).toMatchObject({ workers: 1, blocks_found: 7 });
  const { workers } = await json<{ workers: { name: string }[] }>(`/miners/${address}/workers`);
  expect(workers[0]?.name).toBe(NASTY);
  const chart = await json<{ hash_rate: number[][] }>(`/miners/${address}/chart?range=day`);
  expect(chart.hash_rate).toHaveLength(1);
  const same = await json(`/miners/${address}/workers/pplns/${encodeURIComponent(NASTY)}/chart`);
  expect(same).toEqual(chart);
  expect(await json(`/charts/pool?range=week`)).toMatchObject({ step_millis: 3_600_000 });
  expect((await json<{ payments: [] }>('/payments')).payments).toEqual([]);
});

test('pages join without gap or repetition', async () => {
  for (const [path, name, id, total] of [
    ['/blocks?limit=3', 'blocks', 'block_id', 7],
    ['/miners?limit=50', 'miners', 'address', 121],
    ['/slices/pplns?limit=1', 'slices', 'slice', 3],
  ] as const) {
    const seen: unknown[] = [];
    let cursor = '';
    do {
      const page = await json<Record<string, unknown>>(`${path}${cursor === '' ? '' : `&cursor=${cursor}`}`);
      seen.push(...(page[name] as Record<string, unknown>[]).map((row) => row[id]));
      cursor = (page.next_cursor as string | null) ?? '';
    } while (cursor !== '');
    expect(seen).toHaveLength(total);
    expect(new Set(seen).size).toBe(total);
  }
});

test('a proof downloaded over the API verifies; with one byte changed it does not', async () => {
  const response = await get(`/api/v1/proofs/pplns/1/${address}`);
  expect(response.headers.get('cache-control')).toContain('immutable');
  const text = await response.text();
  const verdict = checkPoolProof(JSON.parse(text) as PoolProof);
  expect(verdict).toMatchObject({ valid: true });
  const { credits } = await json<{ credits: { amount_atoms: string }[] }>(`/miners/${address}/credits`);
  expect(verdict.valid && String(verdict.credit)).toBe(credits[0]?.amount_atoms);
  for (const at of [20, 200, Math.floor(text.length / 2), text.length - 40]) {
    const digit = [...text.slice(at)].findIndex((character) => /\d/.test(character)) + at;
    const changed = text.slice(0, digit) + ((Number(text[digit]) + 1) % 10) + text.slice(digit + 1);
    expect(checkPoolProof(JSON.parse(changed) as PoolProof)).toMatchObject({ valid: false });
  }
  expect(checkPoolList(await json<PoolList & Record<string, never>>('/proofs/pplns/1'))).toMatchObject({ valid: true });
  expect((await get('/api/v1/proofs/pplns/77')).status).toBe(404);
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
    ['/slices/odd', 404],
    ['/operator/sheet', 401],
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

test('the operator, and only with the token, sees and changes things', async () => {
  const headers = { authorization: `Bearer ${token}` };
  const typed = { ...headers, 'content-type': 'application/json' };
  const call = (path: string, method = 'GET', body?: object) =>
    json(
      `/operator${path}`,
      body === undefined ? { method, headers } : { method, headers: typed, body: JSON.stringify(body) },
    );
  expect((await get('/api/v1/operator/config', { headers: { authorization: `Bearer ${token}x` } })).status).toBe(401);
  expect(await call('/config')).toEqual({ fee: 1 });
  expect(await call('/sheet')).toMatchObject({ rewards: '7000000', gap: '0' });
  await call('/bans', 'POST', { address: '10.1.2.3', seconds: 60 });
  expect((await call('/bans')) as object).toMatchObject({ bans: [{ key: '10.1.2.3' }] });
  expect(await call('/bans/10.1.2.3', 'DELETE')).toEqual({ lifted: true });
  await call('/payouts/pause', 'POST', { paused: true });
  expect(await call('/payouts')).toMatchObject({ paused: true, payouts: [] });
  const { log } = (await call('/log')) as unknown as { log: { action: string }[] };
  expect(log.map((row) => row.action)).toEqual(['payouts_pause', 'unban', 'ban']);
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
    { sql: books.sql, log: quietLog, now: Date.now },
  );
  const live = await get('/api/v1/events');
  const reader = live.body!.getReader();
  let heard = '';
  const reading = (async () => {
    for (;;) {
      const { done, value } = await reader.read();
      if (done || heard.includes('event: block_found')) return;
      heard += Buffer.from(value).toString();
    }
  })();
  await until(async () => (await books.sql`select 1 from webhooks`).length === 1);
  await books.take([block(50)]);
  await until(() => received.length === 1 && heard.includes('event: block_found'));
  await reader.cancel();
  await reading;
  const [{ body, signature, event } = { body: '', signature: '', event: '' }] = received;
  expect(event).toBe('block_found');
  const [, at, mac] = /^t=(\d+),v1=([0-9a-f]{64})$/.exec(signature) ?? [];
  expect(mac).toBe(createHmac('sha256', 'secret').update(`${at}.${body}`).digest('hex'));
  expect(JSON.parse(body).data).toMatchObject({ finder: address, worker: NASTY });
  await sender.close();
  // Another sender goes on where the first stopped: nothing is told twice.
  const next = new WebhookSender(
    { urls: [url], secret: 'secret', pollMillis: 20 },
    { sql: books.sql, log: quietLog, now: Date.now },
  );
  await books.take([block(51)]);
  await until(() => received.length === 2);
  await next.close();
  await new Promise((resolve) => receiver.close(resolve));
});

async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  for (const end = Date.now() + 20_000; Date.now() < end; await sleep(20)) if (await holds()) return;
  throw new Error('it did not happen in time');
}
