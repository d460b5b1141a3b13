/** Authentication; Errors and Limits of the public HTTP API. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { ask, documentAt, get, HEX_96, post, Socket } from './client.ts';
import { type Fact, factsOf, needs } from './fact.ts';

const HEADERS = [
  'x-svc-envelope-version',
  'x-svc-node-identity',
  'x-svc-request-nonce',
  'x-svc-tip-height',
  'x-svc-signature',
];
const signedBy = (url: string, nonce: string) => get(url, { 'x-svc-request-nonce': nonce });

export const AUTHENTICATION: readonly Fact[] = [
  ...factsOf('Authentication: signed answers', {
    'an answer to a request with a nonce has the five headers, on every route': async ({ api }) => {
      for (const path of ['/v1/chain/head', '/v1/economics/supply', '/', '/health', `/v1/blocks/${'0'.repeat(96)}`]) {
        const nonce = randomBytes(32).toString('hex');
        const answer = await signedBy(`${api}${path}`, nonce);
        for (const name of HEADERS) assert.ok(answer.header(name) !== null, `${path}: ${name}`);
        assert.equal(answer.header('x-svc-envelope-version'), '1');
        assert.equal(answer.header('x-svc-request-nonce'), nonce);
        // ML-DSA-65: 3,309 bytes.
        assert.match(answer.header('x-svc-signature') ?? '', /^[0-9a-f]{6618}$/);
        assert.match(answer.header('x-svc-tip-height') ?? '', /^\d+$/);
      }
    },
    'the identity of the answers is the one that `GET /v1/node/identity` publishes, with its key of 1,952 bytes':
      async ({ api }) => {
        const answer = await signedBy(`${api}/v1/node/identity`, '00'.repeat(32));
        const own = answer.header('x-svc-node-identity') ?? '';
        assert.match(own, HEX_96);
        assert.ok(Object.values(answer.json).includes(own));
        assert.ok(Object.values(answer.json).some((value) => /^[0-9a-f]{3904}$/.test(String(value))));
      },
    '`x-svc-tip-height` is the finalized height: not below that of the signed document, not above that of the next':
      async ({ api }) => {
        const answer = await signedBy(`${api}/v1/chain/head`, '33'.repeat(32));
        const tip = Number(answer.header('x-svc-tip-height'));
        const next = Number((await documentAt(`${api}/v1/chain/head`)).finalized_height);
        assert.ok(Number(answer.json.finalized_height) <= tip && tip <= next, `${tip}, then ${next}`);
      },
    'an answer to POST, and a refusal, are signed too': async ({ api }) => {
      for (const body of [{ addresses: [] }, 'no JSON']) {
        const answer = await post(`${api}/v1/address/balances`, body, { 'x-svc-request-nonce': '44'.repeat(32) });
        for (const name of HEADERS) assert.ok(answer.header(name) !== null, `${answer.status}: ${name}`);
      }
    },
    'nonces differ, signatures differ': async ({ api }) => {
      const [a, b] = [
        await signedBy(`${api}/v1/node/identity`, '11'.repeat(32)),
        await signedBy(`${api}/v1/node/identity`, '22'.repeat(32)),
      ];
      assert.notEqual(a.header('x-svc-signature'), b.header('x-svc-signature'));
    },
    '64 hex characters of either case are a nonce, which comes back as sent': async ({ api }) => {
      const nonce = 'Ab'.repeat(32);
      const answer = await signedBy(`${api}/v1/chain/head`, nonce);
      assert.deepEqual([answer.status, answer.header('x-svc-request-nonce')], [200, nonce]);
    },
    'without a nonce nothing is signed': async ({ api }) => {
      const answer = await get(`${api}/v1/chain/head`);
      for (const name of HEADERS) assert.equal(answer.header(name), null, name);
    },
    'a nonce of another form is refused': async ({ api }) => {
      for (const nonce of ['00', 'zz'.repeat(32), '00'.repeat(33)])
        assert.equal((await signedBy(`${api}/v1/chain/head`, nonce)).status, 400, nonce);
    },
  }),
  ...factsOf('Authentication: who may ask', {
    'a web page of an origin that was not admitted is refused, over HTTP and over a socket': async ({ api }) => {
      const origin = 'https://stranger.example';
      const answer = await get(`${api}/v1/chain/head`, { origin });
      assert.ok(answer.status === 403 || answer.header('access-control-allow-origin') === null);
      await assert.rejects(Socket.open(`${api}/v1/ws`, ['svc.node-api.v1'], { origin }));
    },
    'a preflight of an origin that was not admitted admits nothing': async ({ api }) => {
      const answer = await ask(`${api}/v1/transactions`, {
        method: 'OPTIONS',
        headers: { origin: 'https://stranger.example', 'access-control-request-method': 'POST' },
      });
      assert.equal(answer.header('access-control-allow-origin'), null);
    },
    'the wallet daemon: `GET /health` needs no token, every call does': async ({ wallet }) => {
      const url = needs(wallet, '--wallet');
      assert.deepEqual([(await get(`${url}/health`)).status, (await get(`${url}/health`)).text.trim()], [200, 'ok']);
      const call = { jsonrpc: '2.0', id: 1, method: 'status', params: {} };
      assert.equal((await post(`${url}/v1/rpc`, call)).status, 401);
      assert.equal((await post(`${url}/v1/rpc`, call, { authorization: 'Bearer wrong' })).status, 401);
    },
    'a metrics listener answers `GET /metrics` only, without authentication': async ({ nodeMetrics }) => {
      const url = needs(nodeMetrics, '--node-metrics');
      assert.equal((await get(`${url}/metrics`)).status, 200);
      assert.equal((await get(`${url}/`)).status, 404);
      assert.equal((await post(`${url}/metrics`, {})).status, 405);
    },
  }),
];

export const LIMITS: readonly Fact[] = factsOf('Errors and limits: HTTP', {
  'a body of 128 KiB is read, a longer one is refused': async ({ api }) => {
    const body = (length: number) => JSON.stringify({ addresses: ['x'] }).padEnd(length, ' ');
    assert.equal((await post(`${api}/v1/address/balances`, body(131_072))).status, 400);
    assert.equal((await post(`${api}/v1/address/balances`, body(131_073))).status, 413);
  },
  'an unknown route, block and transaction are 404': async ({ api }) => {
    for (const path of ['/v1/nothing', `/v1/blocks/${'0'.repeat(96)}`, `/v1/transactions/${'0'.repeat(96)}/status`])
      assert.equal((await get(`${api}${path}`)).status, 404, path);
  },
  'another method is refused': async ({ api }) => {
    assert.equal((await post(`${api}/v1/chain/head`, {})).status, 405);
    assert.equal((await ask(`${api}/v1/chain/head`, { method: 'DELETE' })).status, 405);
  },
  'an answer of an error is a document too': async ({ api }) => {
    const answer = await get(`${api}/v1/nothing`);
    assert.equal(answer.json.api_version, 1);
  },
});
