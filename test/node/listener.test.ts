/** The mining listener over real sockets (docs/protocol/mining.md): its miner of a few lines, its refusals, its events. */
import { readFileSync } from 'node:fs';
import { request as httpRequest } from 'node:http';
import { networkInterfaces } from 'node:os';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { chainRates, nodeSync } from '../../node/api/chain-routes.ts';
import { newIdentity, type SigningPlace } from '../../node/api/identity.ts';
import { CutFeed, CutReader } from '../../node/events.ts';
import { developmentKey } from '../../node/genesis/development.ts';
import { listenForMining, type MiningListener } from '../../node/mining/listener.ts';
import { formatAddress } from '../../protocol/address.ts';
import { fromHex, toHex } from '../../protocol/bytes.ts';
import { datasetSeed } from '../../protocol/crypto/pow.ts';
import { bodyRewardRoot, decodeBody, encodeBody, transactionsRoot } from '../../protocol/ledger/body.ts';
import { decodeHeader } from '../../protocol/ledger/header.ts';
import { isSameMachine } from '../../runtime/clients/same-machine.ts';
import { powHash } from '../pow-hash.ts';
import { Bed, silentLog } from './bed.ts';

const payout = formatAddress(developmentKey('alice').address, 'development');
const realHash = async (epoch: number, header: Uint8Array) => powHash(epoch, header);

const identity = newIdentity();

let bed: Bed;
let feed: CutFeed;
let listener: MiningListener;
let base: string;

beforeEach(async () => {
  bed = await Bed.open({
    genesis: { initialWork: 8n },
    dependencies: { verifier: { prepare: async () => undefined, hash: realHash } },
  });
  feed = new CutFeed({}, { node: bed.node });
  listener = await listenForMining(
    { bind: { host: '0.0.0.0', port: 0 } },
    {
      node: bed.node,
      log: silentLog,
      syncDocument: () => nodeSync(bed.node),
      ratesDocument: () => chainRates(bed.node),
      identity,
      follow: (socket, afterHeight) => void new CutReader(feed, socket, afterHeight),
    },
  );
  base = `http://127.0.0.1:${listener.address.port}`;
});
afterEach(async () => {
  feed.close();
  await listener.close();
  await bed.close();
});

const post = async (path: string, body: string, headers: Record<string, string> = {}) => {
  const answer = await fetch(base + path, { method: 'POST', body, headers });
  return { status: answer.status, body: (await answer.json()) as Record<string, never> & { error?: { code: string } } };
};

test('the miner of the docs finds a block with the real hash and is paid', async () => {
  const page = readFileSync(new URL('../../docs/protocol/mining.md', import.meta.url), 'utf8');
  const code = /```js\n([\s\S]*?)```/.exec(page)?.[1]?.replace('http://127.0.0.1:28702', base) ?? '';
  const mineOne = new Function(`${code}\nreturn mineOne;`)() as (
    payout: string,
    hash: typeof realHash,
  ) => Promise<{ status: string; block_id: string }>;
  const found = await mineOne(payout, realHash);
  expect(found.status).toBe('accepted');
  await bed.seal();
  const paying = await bed.seal(95);
  expect(toHex(paying.rewards[0]?.blockId ?? new Uint8Array())).toBe(found.block_id);
  const block = bed.node.chain.block(fromHex(found.block_id));
  expect(block?.reward).toMatchObject({ state: 'paid', height: 96 });
  const outpoint = paying.rewards[0]?.outpoint;
  expect(outpoint && bed.node.chain.output(outpoint)).toMatchObject({
    amount: paying.rewards[0]?.amount,
    source: 'work_reward',
  });
});

test('a template says what a bridge needs, and the same draw for five seconds', async () => {
  for (let i = 0; i < 12; i++)
    await bed.pay([bed.treasury(i)], [{ address: developmentKey('bob').address, amount: 1n }]);
  const ask = async (draw: number) =>
    (await post('/v1/mining/templates', JSON.stringify({ payout, max_transactions: 5, draw })))
      .body as unknown as Record<string, string>;
  const first = await ask(0);
  expect(first).toMatchObject({
    api_version: 1,
    network: 'development',
    chain_id: toHex(bed.node.chain.chainId),
    anchor: {
      height: 0,
      cut_id: toHex(bed.node.chain.head().cutId),
      state_root: toHex(bed.node.chain.head().stateRoot),
    },
    registration_window_end: 96,
    payout,
    draw: 0,
    transaction_count: 5,
    pow: { epoch: 0, seed: toHex(datasetSeed(4, 0)), epoch_length: 1_036_800 },
    valid_millis: 5_000,
  });
  bed.now += 4_999;
  expect((await ask(0)).transactions_root).toBe(first.transactions_root);
  const others = [1, 2, 3, 4].map(ask);
  expect((await Promise.all(others)).some((other) => other.transactions_root !== first.transactions_root)).toBe(true);
  bed.now += 1;
  const later = [await ask(0)];
  for (let i = 0; i < 4; i++) {
    bed.now += 5_000;
    later.push(await ask(0));
  }
  expect(later.some((other) => other.transactions_root !== first.transactions_root)).toBe(true);
});

test('bad requests are refused with their code', async () => {
  const good = { payout, max_transactions: 10 };
  const template = (fields: object) => post('/v1/mining/templates', JSON.stringify(fields));
  const cases: [Promise<{ status: number; body: { error?: { code: string } } }>, number, string][] = [
    [template({ ...good, max_transactions: -1 }), 400, 'template_limit'],
    [template({ ...good, max_transactions: 1e300 }), 400, 'template_limit'],
    [template({ ...good, max_transactions: 1.5 }), 400, 'template_limit'],
    [template({ ...good, max_transactions: '7' }), 400, 'template_limit'],
    [template({ ...good, draw: 2 ** 40 }), 400, 'template_limit'],
    [template({ ...good, payout: payout.toUpperCase() }), 400, 'payout_invalid'],
    [template({ ...good, payout: formatAddress(developmentKey('alice').address, 'mainnet') }), 400, 'payout_invalid'],
    [template({ ...good, extranonce: 'ff' }), 400, 'payout_invalid'],
    [template({ ...good, extranonce: '00'.repeat(41) }), 400, 'request_malformed'],
    [template({ ...good, max_transaction: 3 }), 400, 'request_malformed'],
    [template({ ...good, anchors: 'oldest' }), 400, 'request_malformed'],
    [template({ payout }), 400, 'request_malformed'],
    [template([]), 400, 'request_malformed'],
    [post('/v1/mining/templates', '{'), 400, 'request_malformed'],
    [post('/v1/mining/candidates', '{"header_hex":"00","body_hex":"zz"}'), 400, 'request_malformed'],
    [post('/v1/mining/candidates', '{"header_hex":"AB","body_hex":"00"}'), 400, 'header_malformed'],
    [post('/v1/mining/candidates', '{"header_hex":"00","body_hex":"00"}'), 400, 'header_malformed'],
    [post('/v1/mining/candidates', `"${'0'.repeat(4 * 1024 * 1024)}"`), 413, 'request_too_large'],
    [post('/v1/nothing', '{}'), 404, 'route_unknown'],
    [post('/v1/node/sync', '{}'), 405, 'method_not_allowed'],
    [post('/v1/mining/templates', JSON.stringify(good), { origin: 'http://localhost' }), 403, 'origin_refused'],
  ];
  for (const [answer, status, code] of cases) {
    const { status: got, body } = await answer;
    expect([got, body.error?.code]).toEqual([status, code]);
  }
});

/** A block that meets its target, and was not submitted. */
async function findCandidate(): Promise<string> {
  const { body: answer } = await post('/v1/mining/templates', JSON.stringify({ payout, max_transactions: 0 }));
  const template = answer as unknown as { header_hex: string; body_hex: string; target: string };
  const header = Buffer.from(template.header_hex, 'hex');
  const target = BigInt(`0x${template.target}`);
  for (let nonce = 0n; ; nonce++) {
    header.writeBigUInt64LE(nonce, 304);
    if (BigInt(`0x${toHex(await realHash(0, header))}`) <= target) break;
  }
  return JSON.stringify({ header_hex: header.toString('hex'), body_hex: template.body_hex });
}

test('a candidate whose answer could not be signed takes no effect: bad nonce, no place among the signatures', async () => {
  const candidate = await findCandidate();
  const submit = (nonce?: string) =>
    post('/v1/mining/candidates', candidate, nonce === undefined ? {} : { 'x-svc-request-nonce': nonce });
  expect((await submit('zz')).status).toBe(400);
  const places: SigningPlace[] = [];
  for (let place = identity.place(); place !== undefined; place = identity.place()) places.push(place);
  const busy = await submit('AB'.repeat(32));
  expect(busy).toMatchObject({ status: 503, body: { error: { code: 'too_busy' }, retry_after_millis: 1_000 } });
  for (const place of places) place.leave();
  expect((await submit('AB'.repeat(32))).body).toMatchObject({ status: 'accepted' });
});

test('a node that has stopped answers 503, with the time to wait', async () => {
  await bed.node.close();
  const answer = await fetch(`${base}/health`);
  expect(answer.status).toBe(503);
  expect(answer.headers.get('retry-after')).toBe('1');
  expect(await answer.json()).toMatchObject({ error: { code: 'node_stopped' }, retry_after_millis: 1_000 });
});

test('a late block is answered with 409, a replay with known', async () => {
  const candidate = await findCandidate();
  expect((await post('/v1/mining/candidates', candidate)).body).toMatchObject({ status: 'accepted' });
  expect((await post('/v1/mining/candidates', candidate)).body).toMatchObject({ status: 'known' });
  await bed.seal(96);
  const { header_hex, body_hex } = JSON.parse(candidate) as { header_hex: string; body_hex: string };
  const again = `${header_hex.slice(0, 608)}${'00'.repeat(8)}`;
  const late = await post('/v1/mining/candidates', JSON.stringify({ header_hex: again, body_hex }));
  expect([late.status, late.body.error?.code]).toEqual([409, 'block_too_late']);
});

test('templates asked for at the same time each carry the body that their header names', async () => {
  for (let i = 0; i < 40; i++)
    expect(await bed.pay([bed.treasury(i)], [{ address: developmentKey('bob').address, amount: 1n }])).toMatchObject({
      status: 'accepted',
    });
  const ask = async (i: number) => {
    // Some share a draw, some hold a few transactions only.
    const request = { payout, max_transactions: i % 3 === 0 ? 3 : 100, draw: i % 4 };
    const { body: answer } = await post('/v1/mining/templates', JSON.stringify(request));
    return answer as unknown as { header_hex: string; body_hex: string; transaction_count: number };
  };
  for (let round = 0; round < 2; round++)
    for (const answer of await Promise.all(Array.from({ length: 8 }, (_, i) => ask(i)))) {
      const header = decodeHeader(fromHex(answer.header_hex));
      const body = decodeBody(fromHex(answer.body_hex));
      expect([3, 40]).toContain(answer.transaction_count);
      expect(body.transactions).toHaveLength(answer.transaction_count);
      expect(transactionsRoot(body)).toEqual(header.transactionsRoot);
      expect(bodyRewardRoot(body)).toEqual(header.rewardRoot);
      expect(toHex(encodeBody(body))).toBe(answer.body_hex);
    }
});

test('events: a checkpoint, then every cut, resumable; binary frames and other protocols end it', async () => {
  await bed.seal(3);
  const socket = new WebSocket(`${base.replace('http', 'ws')}/v1/events?after_height=1`, 'svc.node-events.v1');
  const frames: { type: string; data: { cut?: { height: number } } }[] = [];
  const enough = new Promise<void>((resolve) => {
    socket.on('message', (data) => {
      frames.push(JSON.parse(String(data)));
      if (frames.length === 3) void bed.seal();
      if (frames.length === 4) resolve();
    });
  });
  await enough;
  expect(frames.map(({ type, data }) => [type, data.cut?.height])).toEqual([
    ['checkpoint', 3],
    ['cut_finalized', 2],
    ['cut_finalized', 3],
    ['cut_finalized', 4],
  ]);
  const closed = new Promise((resolve) => socket.on('close', resolve));
  socket.send(Buffer.of(1));
  expect(await closed).toBe(1003);
  const refused = new WebSocket(`${base.replace('http', 'ws')}/v1/events`, 'another.v1');
  const status = await new Promise((resolve) =>
    refused.on('unexpected-response', (_request, response) => resolve(response.statusCode)),
  );
  expect(status).toBe(400);
  const page = new WebSocket(`${base.replace('http', 'ws')}/v1/events`, 'svc.node-events.v1', {
    origin: 'http://localhost',
  });
  expect(
    await new Promise((resolve) =>
      page.on('unexpected-response', (_request, response) => resolve(response.statusCode)),
    ),
  ).toBe(403);
});

test('health, sync and rates; a slow sender does not hold a request open for ever', async () => {
  expect(await (await fetch(`${base}/health`)).text()).toBe('ok');
  expect(await (await fetch(`${base}/v1/node/sync`)).json()).toMatchObject({ synced: true, finalized_height: 0 });
  expect(await (await fetch(`${base}/v1/chain/rates`)).json()).toMatchObject({ block_work: '8' });
  const aborted = httpRequest(`${base}/v1/mining/templates`, { method: 'POST', headers: { 'content-length': 100 } });
  aborted.on('error', () => undefined);
  aborted.write('{');
  aborted.destroy();
  expect(await (await fetch(`${base}/health`)).text()).toBe('ok');
});

test('over sockets: a peer that is neither loopback nor at the address it called is refused, whatever it asks', async () => {
  const { port } = listener.address;
  const ask = (host: string, localAddress: string, method: string, path: string) =>
    new Promise<{ status: number | undefined; text: string }>((resolve, reject) => {
      const asked = httpRequest({ host, port, localAddress, method, path }, (answer) => {
        let text = '';
        answer.on('data', (part) => {
          text += part;
        });
        answer.on('end', () => resolve({ status: answer.statusCode, text }));
      });
      asked.on('error', reject);
      asked.end();
    });
  const outside = Object.values(networkInterfaces())
    .flatMap((addresses) => addresses ?? [])
    .filter(({ family, internal }) => family === 'IPv4' && !internal);
  // Seen from the listener, this machine under its own outside address on a loopback connection is a stranger.
  for (const { address } of outside) {
    for (const [method, path] of [
      ['GET', '/v1/node/sync'],
      ['POST', '/v1/mining/templates'],
      ['POST', '/v1/mining/candidates'],
      ['GET', '/nowhere'],
    ] as const) {
      const refused = await ask('127.0.0.1', address, method, path);
      expect([refused.status, JSON.parse(refused.text).error.code]).toEqual([403, 'peer_refused']);
    }
    expect((await ask(address, address, 'GET', '/health')).status).toBe(200);
  }
  expect((await ask('127.0.0.1', '127.0.0.9', 'GET', '/health')).status).toBe(200);
});

test('the same machine: loopback, or the address that was called', () => {
  expect(isSameMachine('127.0.0.1', '127.0.0.1')).toBe(true);
  expect(isSameMachine('::ffff:127.3.2.1', '::ffff:127.0.0.1')).toBe(true);
  expect(isSameMachine('::1', '::1')).toBe(true);
  expect(isSameMachine('10.0.0.5', '10.0.0.5')).toBe(true);
  expect(isSameMachine('10.0.0.6', '10.0.0.5')).toBe(false);
  expect(isSameMachine('::ffff:10.0.0.6', '::ffff:10.0.0.5')).toBe(false);
  expect(isSameMachine('1270.0.0.1', '10.0.0.5')).toBe(false);
  expect(isSameMachine(undefined, undefined)).toBe(false);
});
