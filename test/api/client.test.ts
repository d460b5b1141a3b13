/** The client's rules of repetition, against servers that answer, refuse, or go silent on purpose. */
import { expect, test } from 'vitest';
import { type ClientDependencies, createApiClient } from '../../protocol/api/client.ts';
import type { Fetch } from '../../protocol/api/client-calls.ts';
import { toHex, utf8 } from '../../protocol/bytes.ts';
import { encodeTransaction, transactionId } from '../../protocol/transactions/transaction.ts';

type Scripted = { status: number; body: unknown } | 'lost';

function scripted(answers: Scripted[]) {
  const asked: string[] = [];
  const waits: number[] = [];
  const fetch: Fetch = async (url, init) => {
    asked.push(`${init.method} ${new URL(url).pathname}`);
    const answer = answers.shift();
    if (answer === undefined || answer === 'lost') throw new Error('socket hang up');
    const bytes = utf8(JSON.stringify(answer.body));
    return { status: answer.status, headers: { get: () => null }, arrayBuffer: async () => bytes.buffer };
  };
  const dependencies: ClientDependencies = {
    fetch,
    sleep: async (millis) => {
      waits.push(millis);
    },
    deadline: () => new AbortController().signal,
    random: () => 1,
  };
  return { client: createApiClient({ baseUrl: 'http://node/' }, dependencies), asked, waits };
}

const sync = {
  api_version: 1,
  synced: true,
  finalized_height: 7,
  best_peer_height: null,
  behind_by: 0,
  peers: 0,
};
const busy = (status: number, wait: number): Scripted => ({
  status,
  body: { api_version: 1, error: { code: 'too_many_requests', message: 'later' }, retry_after_millis: wait },
});
const body = {
  chainId: new Uint8Array(48),
  validFromHeight: 0,
  validUntilHeight: 10,
  inputs: [{ transactionId: new Uint8Array(48), outputIndex: 0 }],
  outputs: [],
  payload: new Uint8Array(0),
};
const wire = encodeTransaction({ body, witnesses: [{ profile: 'referenced', signature: new Uint8Array(3309) }] });
const name = toHex(transactionId(body));
const accepted = {
  status: 200,
  body: { api_version: 1, transaction_id: name, status: 'accepted', lifecycle: 'processing' },
};
const status = {
  api_version: 1,
  transaction_id: name,
  lifecycle: 'processing',
  observed_work: null,
  registered_cut: null,
  finalized_cut: null,
  failure: null,
};

test('a read waits as long as the server says after 429 and 503, and comes again after a lost answer', async () => {
  const { client, asked, waits } = scripted([busy(429, 120), busy(503, 80), 'lost', { status: 200, body: sync }]);
  expect((await client.nodeSync()).finalized_height).toBe(7);
  expect(asked).toHaveLength(4);
  expect(waits.slice(0, 2)).toEqual([120, 80]);
});

test('a read gives up after its attempts', async () => {
  const { client, asked } = scripted([]);
  await expect(client.nodeSync()).rejects.toMatchObject({ code: 'client_unreachable' });
  expect(asked).toHaveLength(5);
});

test('a wait beyond the limit is not slept through', async () => {
  const { client, asked } = scripted([busy(429, 3_600_000)]);
  await expect(client.nodeSync()).rejects.toMatchObject({ code: 'too_many_requests', status: 429 });
  expect(asked).toHaveLength(1);
});

test('a submission is repeated after 429 and 503', async () => {
  const { client, asked } = scripted([busy(429, 1), busy(503, 1), accepted]);
  expect((await client.submitTransaction(wire)).status).toBe('accepted');
  expect(asked).toHaveLength(3);
});

test.each<[string, Scripted]>([
  ['a lost answer', 'lost'],
  ['a gateway error', { status: 502, body: 'bad gateway' }],
  ['an unreadable answer', { status: 200, body: { ok: true } }],
])('a submission is sent once when it ends in %s, and its status is asked for', async (_, answer) => {
  const { client, asked } = scripted([answer, { status: 200, body: status }]);
  expect(await client.submitTransaction(wire)).toMatchObject({ status: 'known', transaction_id: name });
  expect(asked).toEqual(['POST /v1/transactions', `GET /v1/transactions/${name}/status`]);
});

test('the outcome stays unknown when the server has not seen the transaction', async () => {
  const unknown = { status: 404, body: { api_version: 1, error: { code: 'transaction_unknown', message: 'no' } } };
  const { client, asked } = scripted(['lost', unknown]);
  await expect(client.submitTransaction(wire)).rejects.toMatchObject({ code: 'client_outcome_unknown' });
  expect(asked).toHaveLength(2);
});

test('a refusal keeps its code and fields', async () => {
  const refused = {
    status: 422,
    body: { api_version: 1, error: { code: 'fee_below_minimum', message: 'too low', failure: 'invalid', minimum: 5 } },
  };
  const { client, asked } = scripted([refused]);
  await expect(client.submitTransaction(wire)).rejects.toMatchObject({ code: 'fee_below_minimum', status: 422 });
  expect(asked).toHaveLength(1);
});

test('fields that no route takes are refused before anything is sent', async () => {
  const { client, asked } = scripted([]);
  const call = client.nodeSync as (input: unknown) => Promise<unknown>;
  await expect(call({ nonsense: 1 })).rejects.toMatchObject({ code: 'client_bad_input' });
  await expect(client.addressBalances({ addresses: [] })).rejects.toMatchObject({ code: 'client_bad_input' });
  expect(asked).toHaveLength(0);
});
