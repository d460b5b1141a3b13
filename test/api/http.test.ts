/** The HTTP side: signed answers, browsers, limits, readiness, and what is not a request at all. */
import { connect } from 'node:net';
import { sha384 } from '@noble/hashes/sha2.js';
import { ml_dsa65 } from '@noble/post-quantum/ml-dsa.js';
import { expect, test } from 'vitest';
import { NODE_LIMITS, PUBLIC_LIMITS } from '../../node/api/api-limits.ts';
import type { SigningPlace } from '../../node/api/identity.ts';
import { developmentKey } from '../../node/genesis/development.ts';
import { createApiClient } from '../../protocol/api/client.ts';
import { verifySignedAnswer } from '../../protocol/api/signed-answer.ts';
import { concat, fromHex, toHex, utf8 } from '../../protocol/bytes.ts';
import { apiClientDependencies } from '../../runtime/node-client/api-client.ts';
import { ApiBed, addressOf, identity, treasury } from './api-bed.ts';

/** Sends bytes as they are; gives back everything that came until the other side closed. */
function raw(port: number, parts: (string | Uint8Array)[], options: { end?: boolean } = {}) {
  return new Promise<string>((resolve) => {
    const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
    let text = '';
    const done = () => {
      socket.destroy();
      resolve(text);
    };
    socket.on('data', (data: Buffer) => {
      text += data.toString('latin1');
    });
    socket.on('end', done);
    socket.on('error', done);
    for (const part of parts) socket.write(part);
    if (options.end === true) socket.end();
  });
}

test('a signed answer is checked by a few lines that share nothing with the node', async () => {
  const bed = await ApiBed.forTest();
  await bed.bed.seal(3);
  const nonce = 'ab'.repeat(32);
  const path = '/v1/address/balances?';
  const body = JSON.stringify({ addresses: [treasury()] });
  const answer = await bed.post(path, body, { 'x-svc-request-nonce': nonce });
  const bytes = new Uint8Array(await answer.arrayBuffer());
  const key = fromHex((await (await bed.get('/v1/node/identity')).json()).public_key);

  const little = (value: number, size: number) => Uint8Array.from({ length: size }, (_, i) => (value / 256 ** i) & 255);
  const sized = (part: Uint8Array) => concat(little(part.length, 4), part);
  const message = sha384(
    concat(
      utf8('SVC_SERVICE_ANSWER_V1\0'),
      Uint8Array.of(1, 4),
      utf8('POST'),
      sized(utf8(path)),
      sized(utf8(body)),
      little(answer.status, 2),
      sized(bytes),
      fromHex(nonce),
      bed.bed.node.chain.chainId,
      little(Number(answer.headers.get('x-svc-tip-height')), 8),
    ),
  );
  const signature = fromHex(answer.headers.get('x-svc-signature') as string);
  expect(ml_dsa65.verify(signature, message, key)).toBe(true);
  for (let at = 0; at < message.length; at += 7)
    expect(
      ml_dsa65.verify(
        signature,
        message.map((b, i) => (i === at ? b ^ 1 : b)),
        key,
      ),
    ).toBe(false);
  expect(toHex(sha384(concat(utf8('SVC_NODE_IDENTITY_V1\0'), key)))).toBe(answer.headers.get('x-svc-node-identity'));
  expect(answer.headers.get('x-svc-envelope-version')).toBe('1');
  expect(answer.headers.get('x-svc-request-nonce')).toBe(nonce);
  expect(answer.headers.get('x-svc-tip-height')).toBe('3');
});

test('nothing is signed without a nonce, refusals are signed with one, and a bad nonce is refused', async () => {
  const bed = await ApiBed.forTest();
  expect((await bed.get('/v1/chain/head')).headers.get('x-svc-signature')).toBeNull();
  const refused = await bed.get(`/v1/blocks/${'0'.repeat(96)}`, { 'x-svc-request-nonce': '00'.repeat(32) });
  expect(refused.status).toBe(404);
  expect(refused.headers.get('x-svc-signature')).toHaveLength(6618);
  for (const nonce of ['', 'zz', '00'.repeat(31), 'ag'.repeat(32), '00'.repeat(33)]) {
    const answer = await bed.get('/v1/chain/head', { 'x-svc-request-nonce': nonce });
    expect(answer.status).toBe(400);
    expect((await answer.json()).error.field).toBe('x-svc-request-nonce');
  }
});

/** A signed payment that nobody has submitted yet. */
const unsentPayment = (bed: ApiBed): string =>
  toHex(bed.bed.payment([bed.bed.treasury(0)], [{ address: developmentKey('alice').address, amount: 5n }]));

test('a submission whose answer could not be signed takes no effect: bad nonce, no place among the signatures', async () => {
  const bed = await ApiBed.forTest();
  const submission = { api_version: 1, wire_hex: unsentPayment(bed) };
  const submit = (nonce: string) => bed.post('/v1/transactions', submission, { 'x-svc-request-nonce': nonce });
  const waiting = async () => (await (await bed.get('/v1/mempool')).json()).transactions;
  expect((await submit('zz')).status).toBe(400);
  expect(await waiting()).toBe(0);
  const places: SigningPlace[] = [];
  for (let place = identity.place('127.0.0.1'); place !== undefined; place = identity.place('127.0.0.1'))
    places.push(place);
  const busy = await submit('00'.repeat(32));
  expect([busy.status, (await busy.json()).retry_after_millis]).toEqual([503, 1_000]);
  expect(await waiting()).toBe(0);
  for (const place of places) place.leave();
  expect((await submit('00'.repeat(32))).headers.get('x-svc-signature')).toHaveLength(6618);
  expect(await waiting()).toBe(1);
});

test.each(['/v1/chain/head', '/', '/health'])(
  '%s is signed for a nonce in either case, which comes back as sent',
  async (target) => {
    const bed = await ApiBed.forTest();
    const { public_key: publicKey } = await (await bed.get('/v1/node/identity')).json();
    for (const nonce of ['AB'.repeat(32), 'aB'.repeat(32), 'ab'.repeat(32)]) {
      const answer = await bed.get(target, { 'x-svc-request-nonce': nonce });
      expect(answer.headers.get('x-svc-request-nonce')).toBe(nonce);
      const verdict = verifySignedAnswer(
        {
          method: 'GET',
          target,
          requestBody: new Uint8Array(0),
          status: 200,
          answerBody: new Uint8Array(await answer.arrayBuffer()),
          nonce: fromHex(nonce.toLowerCase()),
          chainId: bed.bed.node.chain.chainId,
          header: (name) => answer.headers.get(name),
          publicKey: fromHex(publicKey),
          pinnedIdentity: identity.identity,
        },
        (signature, message, key) => ml_dsa65.verify(signature, message, key),
      );
      expect(verdict).toEqual({ ok: true, finalizedHeight: 0 });
    }
    expect((await bed.get(target)).headers.get('x-svc-signature')).toBeNull();
  },
);

test('a pinned client takes proven answers only', async () => {
  const bed = await ApiBed.forTest();
  const pin = { identity: toHex(identity.identity), chainId: toHex(bed.bed.node.chain.chainId) };
  const pinned = createApiClient({ baseUrl: bed.base, pin }, apiClientDependencies());
  expect((await pinned.chainHead()).finalized_height).toBe(0);
  expect((await pinned.addressBalances({ addresses: [treasury()] })).balances).toHaveLength(1);
  const other = { ...pin, chainId: '00'.repeat(48) };
  const elsewhere = createApiClient({ baseUrl: bed.base, pin: other }, apiClientDependencies());
  await expect(elsewhere.chainHead()).rejects.toMatchObject({ code: 'client_answer_unproven' });
  const stranger = createApiClient(
    { baseUrl: bed.base, pin: { ...pin, identity: '00'.repeat(48) } },
    apiClientDependencies(),
  );
  await expect(stranger.chainHead()).rejects.toMatchObject({ code: 'client_answer_unproven' });
});

test('only admitted browser origins may ask, over HTTP and over sockets', async () => {
  const origin = 'https://wallet.example';
  const bed = await ApiBed.forTest({ api: { browserOrigins: [origin] } });
  const good = await bed.get('/v1/chain/head', { origin });
  expect(good.headers.get('access-control-allow-origin')).toBe(origin);
  expect(good.headers.get('vary')).toBe('origin');
  const bad = await bed.get('/v1/chain/head', { origin: 'https://evil.example' });
  expect(bad.status).toBe(403);
  expect(bad.headers.get('access-control-allow-origin')).toBeNull();
  const preflight = await fetch(`${bed.base}/v1/transactions`, {
    method: 'OPTIONS',
    headers: { origin, 'access-control-request-method': 'POST' },
  });
  expect(preflight.status).toBe(204);
  expect(preflight.headers.get('access-control-allow-headers')).toContain('content-type');
  expect((await bed.get('/v1/chain/head')).headers.get('access-control-allow-origin')).toBeNull();
  const admitted = bed.socket('/v1/ws', 'svc.node-api.v1', { origin });
  await admitted.opened();
  const refused = await bed.socket('/v1/ws', 'svc.node-api.v1', { origin: 'null' }).refused;
  expect(refused.status).toBe(403);
});

test('a page whose name leads here is no program of this machine; a public service has any name', async () => {
  const own = await ApiBed.forTest({ api: { hosts: ['node.example'] } });
  const from = (bed: ApiBed, host: string) =>
    raw(bed.api.address.port, [`GET /v1/chain/head HTTP/1.1\r\nhost: ${host}\r\nconnection: close\r\n\r\n`]);
  expect(await from(own, 'evil.example')).toMatch(/^HTTP\/1\.1 421 .*"code":"host_refused"/s);
  for (const host of ['node.example', '127.0.0.1:28701', 'localhost', 'node'])
    expect(await from(own, host)).toMatch(/^HTTP\/1\.1 200/);
  const service = await ApiBed.forTest({ api: { public: true } });
  expect(await from(service, 'api.example')).toMatch(/^HTTP\/1\.1 200/);
});

test('one client behind a proxy may not hold all sockets', async () => {
  const limits = { ...NODE_LIMITS, connectionsPerClient: 2 };
  const bed = await ApiBed.forTest({ api: { limits, trustedProxies: ['127.0.0.1'] } });
  const open = (client: string) => bed.socket('/v1/ws', 'svc.node-api.v1', { 'x-forwarded-for': client });
  await Promise.all([open('192.0.2.1').opened(), open('192.0.2.1').opened()]);
  expect((await open('192.0.2.1').refused).status).toBe(503);
  await open('192.0.2.2').opened();
});

test('GET / is a list for programs and a page for people', async () => {
  const bed = await ApiBed.forTest();
  const list = await (await bed.get('/')).json();
  expect(list.routes.map(({ path }: { path: string }) => path)).toContain('/v1/address/{address}/balance');
  expect(list.sockets).toHaveLength(3);
  const page = await bed.get('/', { accept: 'text/html,application/xhtml+xml' });
  expect(page.headers.get('content-type')).toContain('text/html');
  expect(page.headers.get('content-security-policy')).toContain("default-src 'none'");
  expect(await page.text()).toContain('<a href="/v1/chain/head">');
  const health = await bed.get('/health');
  expect([health.status, await health.text()]).toEqual([200, 'ok']);
});

test('503 while the node is not ready, with the time to wait', async () => {
  const bed = await ApiBed.forTest({ ready: false });
  const answer = await bed.get('/v1/chain/head');
  expect(answer.status).toBe(503);
  expect(await answer.json()).toEqual({
    api_version: 1,
    error: { code: 'not_ready', message: 'the node is not ready to answer yet' },
    retry_after_millis: 1_000,
  });
  expect(answer.headers.get('retry-after')).toBe('1');
  expect((await bed.get('/health')).status).toBe(503);
  expect((await bed.get('/')).status).toBe(200);
  bed.api.serve(bed.bed.node);
  expect((await bed.get('/v1/chain/head')).status).toBe(200);
});

test('a node without its index says not ready instead of lying', async () => {
  const bed = await ApiBed.forTest({ bed: { dependencies: { indexers: [] } } });
  const answer = await bed.get(`/v1/address/${treasury()}/balance`);
  expect(answer.status).toBe(503);
  expect((await bed.get('/v1/chain/head')).status).toBe(200);
});

test('the allowance of a client: 429, the wait, and the block of those who go on', async () => {
  const rate = { perSecond: 10, burst: 20, strikes: 5, blockMillis: 30_000, maxClients: 10 };
  const bed = await ApiBed.forTest({ api: { limits: { ...NODE_LIMITS, rate } } });
  const ask = () => bed.get('/v1/chain/head');
  for (let i = 0; i < 20; i++) expect((await ask()).status).toBe(200);
  const over = await ask();
  expect(over.status).toBe(429);
  expect(await over.json()).toMatchObject({ error: { code: 'too_many_requests' }, retry_after_millis: 100 });
  bed.bed.now += 100;
  expect((await ask()).status).toBe(200);
  for (let i = 0; i < 4; i++) expect((await ask()).status).toBe(429);
  expect(await (await ask()).json()).toMatchObject({ error: { code: 'client_blocked' }, retry_after_millis: 30_000 });
  bed.bed.now += 10_000;
  expect((await ask()).status).toBe(429);
  expect((await bed.socket('/v1/ws', 'svc.node-api.v1').refused).status).toBe(429);
  bed.bed.now += 20_000;
  expect((await ask()).status).toBe(200);
});

test('a costly read takes more of the allowance, and a listed proxy speaks for its clients', async () => {
  const bed = await ApiBed.forTest({ api: { public: true, trustedProxies: ['127.0.0.0/8'] } });
  const from = (client: string) => ({ 'x-forwarded-for': `spoofed, ${client}` });
  const ids = { transaction_ids: ['0'.repeat(96)] };
  let answered = 0;
  while ((await bed.post('/v1/transactions/status', ids, from('192.0.2.7'))).status === 200) answered++;
  expect(answered).toBe(Math.floor(PUBLIC_LIMITS.rate.burst / 16));
  expect((await bed.get('/v1/chain/rates', from('192.0.2.8'))).status).toBe(200);
  expect((await bed.get('/v1/chain/head', { 'x-forwarded-for': 'not an address' })).status).toBe(200);
  // One /64 is one client.
  for (let i = 0; i < answered; i++) await bed.post('/v1/transactions/status', ids, from(`2001:db8:1:2::${i + 1}`));
  expect((await bed.post('/v1/transactions/status', ids, from('2001:db8:1:2:ffff::1'))).status).toBe(429);
  expect((await bed.post('/v1/transactions/status', ids, from('2001:db8:1:3::1'))).status).toBe(200);
});

test('what is not a request is answered once and ended', async () => {
  const bed = await ApiBed.forTest();
  const { port } = bed.api.address;
  expect(await raw(port, ['nonsense\r\n\r\n'])).toMatch(/^HTTP\/1\.1 400 .*"code":"bad_request"/s);
  expect(await raw(port, [`GET / HTTP/1.1\r\nhost: x\r\nx: ${'a'.repeat(20_000)}\r\n\r\n`])).toMatch(
    /^HTTP\/1\.1 431 .*"code":"headers_too_large"/s,
  );
  expect(await raw(port, [`GET /v1/${'a'.repeat(3_000)} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n`])).toMatch(
    /^HTTP\/1\.1 414 .*"code":"target_too_long"/s,
  );
  expect(await raw(port, [Buffer.from([0x16, 3, 1, 2, 0, 1, 0])])).toMatch(/^HTTP\/1\.1 400/);
});

test('pipelined requests are answered in order, and a half-closed connection gets its answers', async () => {
  const bed = await ApiBed.forTest();
  const one = (path: string) => `GET ${path} HTTP/1.1\r\nhost: x\r\n\r\n`;
  const text = await raw(
    bed.api.address.port,
    [one('/v1/chain/head') + one('/v1/nothing') + one(`/v1/address/${treasury()}/history`) + one('/health')],
    { end: true },
  );
  expect(text.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 200', 'HTTP/1.1 404', 'HTTP/1.1 200', 'HTTP/1.1 200']);
  expect(text.endsWith('ok')).toBe(true);
});

test('a body that is too large is refused before it is read, with and without its length', async () => {
  const bed = await ApiBed.forTest();
  const { port } = bed.api.address;
  const head = 'POST /v1/transactions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n';
  const declared = await raw(port, [`${head}content-length: 10000000\r\n\r\n`, 'x'.repeat(1000)]);
  expect(declared).toMatch(/^HTTP\/1\.1 413 .*"code":"body_too_large"/s);
  const chunk = `8000\r\n${'x'.repeat(0x8000)}\r\n`;
  const chunked = await raw(port, [`${head}transfer-encoding: chunked\r\n\r\n`, chunk, chunk, chunk, chunk, chunk]);
  expect(chunked).toMatch(/^HTTP\/1\.1 413 .*"code":"body_too_large"/s);
  const exact = JSON.stringify({ api_version: 1, wire_hex: 'a'.repeat(128 * 1024 - 33) });
  expect(exact.length).toBeLessThanOrEqual(128 * 1024);
  expect((await bed.post('/v1/transactions', exact)).status).toBe(400);
});

test('media types, methods and sockets opened as pages', async () => {
  const bed = await ApiBed.forTest();
  const text = await fetch(`${bed.base}/v1/address/balances`, { method: 'POST', body: '{}' });
  expect([text.status, (await text.json()).error.code]).toEqual([415, 'media_type_unsupported']);
  const wrong = await bed.get('/v1/address/balances');
  expect([wrong.status, wrong.headers.get('allow')]).toEqual([405, 'POST']);
  const put = await fetch(`${bed.base}/v1/cuts`, { method: 'PUT', body: 'x' });
  expect([put.status, put.headers.get('allow')]).toEqual([405, 'GET']);
  for (const path of ['/v1/events', '/v1/ws?x=1', `/v1/transactions/${'0'.repeat(96)}/status/stream`])
    expect((await bed.get(path)).status).toBe(426);
  const head = await fetch(`${bed.base}/v1/chain/head`, { method: 'HEAD' });
  expect([head.status, await head.text()]).toEqual([200, '']);
});

test('a connection beyond the limit of one client is closed, others are not touched', async () => {
  const bed = await ApiBed.forTest({ api: { limits: { ...NODE_LIMITS, connectionsPerClient: 3 } } });
  const sockets = Array.from({ length: 5 }, () => connect(bed.api.address.port, '127.0.0.1'));
  let ended = 0;
  for (const socket of sockets)
    socket
      .resume()
      .on('error', () => undefined)
      .on('close', () => ended++);
  await expect.poll(() => ended).toBe(2);
  await new Promise((resolve) => setTimeout(resolve, 100));
  expect(ended).toBe(2);
  for (const socket of sockets) socket.destroy();
  expect(addressOf('x')).toMatch(/^dsvc1/);
});
