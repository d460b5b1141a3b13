/**
 * The specification's tables, row by row: endpoints, page sizes, sockets, frames, topics, events, errors, limits, authentication. Each row of the
 * node's public API has a check here that runs against a real node; rows of other programs are named with
 * where they belong. docs/conformance.md is made from this list.
 */
import { existsSync, readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { NODE_LIMITS, PUBLIC_LIMITS } from '../../node/api/api-limits.ts';
import { developmentKey } from '../../node/development.ts';
import { REPLAY_MILLIS, RESYNC_REASONS, TOPIC_EVENTS } from '../../protocol/api/frames.ts';
import { MAX_REQUEST_BODY, ROUTES, type RouteName, type RouteSpec, SOCKETS } from '../../protocol/api/routes.ts';
import { check } from '../../protocol/api/schema.ts';
import { toHex } from '../../protocol/bytes.ts';
import { REGISTRATION_WINDOW } from '../../protocol/network.ts';
import { MAX_TAG } from '../../protocol/tag.ts';
import { MAX_INPUTS } from '../../protocol/transaction.ts';
import { ApiBed, treasury } from './api-bed.ts';
import { MODULE_ROWS } from './module-rows.ts';

type Check = (bed: ApiBed) => Promise<void> | void;
type Row =
  | { readonly table: string; readonly row: string; readonly check: Check; readonly note?: string }
  /** `elsewhere`: another program's row. */
  | { readonly table: string; readonly row: string; readonly state: 'elsewhere' | 'not yet'; readonly note: string };

let bed: ApiBed;
let transaction = '';
let block = '';
beforeAll(async () => {
  bed = await ApiBed.open();
  transaction = await bed.pay(0, 'alice', 5_000n);
  block = toHex(await bed.bed.mine(developmentKey('miner').address));
  await bed.bed.seal(100);
});
afterAll(() => bed.close());

const INPUT: Partial<Record<string, () => unknown>> = {
  address: treasury,
  height: () => 1,
  id: () => transaction,
  addresses: () => [treasury()],
  transaction_ids: () => [transaction],
  outpoints: () => [{ transaction_id: transaction, output_index: 0 }],
  after_height: () => 0,
  amount: () => '100000000',
  api_version: () => 1,
};

/** Calls the route as the table writes it and checks the answer against its schema. */
async function answers(name: RouteName, extra: Record<string, unknown> = {}): Promise<Record<string, unknown>> {
  const route: RouteSpec = ROUTES[name];
  const value = (field: string): unknown => extra[field] ?? INPUT[field]?.();
  const path = route.path.replace(/\{(\w+)\}/g, (_, field: string) => String(value(field)));
  const query = (route.query.required ?? []).map((field) => `${field}=${value(field)}`).join('&');
  const body = Object.fromEntries((route.body?.required ?? []).map((field) => [field, value(field)]));
  const target = query === '' ? path : `${path}?${query}`;
  const answer = route.method === 'GET' ? await bed.get(target) : await bed.post(target, body);
  const document = await answer.json();
  expect(answer.status, JSON.stringify(document)).toBe(200);
  expect(check(route.answer, document)).toBeUndefined();
  expect(document.api_version).toBe(1);
  return document;
}
const route = (row: string, ...names: RouteName[]): Row => ({
  table: 'Endpoints: public HTTP API',
  row,
  check: async () => {
    for (const name of names) {
      const [method] = row.replaceAll('`', '').split(' ');
      expect(ROUTES[name].method).toBe(method);
      expect(row).toContain(`\`${ROUTES[name].path}\``);
      await answers(name);
    }
  },
});
/** Shown by a test of its own. */
const shownBy = (table: string, row: string, file: string): Row => ({
  table,
  row,
  note: file,
  check: async () => expect(existsSync(new URL(`../../${file}`, import.meta.url))).toBe(true),
});
const pages = (row: string, name: RouteName, standard: number, maximum: number): Row => ({
  table: 'Endpoints: page sizes',
  row,
  check: async () => {
    const limit = ROUTES[name].query.properties?.limit;
    expect([limit?.default, limit?.maximum]).toEqual([standard, maximum]);
    const path = ROUTES[name].path.replace('{address}', treasury()).replace('{height}', '1');
    expect((await bed.get(`${path}?limit=${maximum}`)).status).toBe(200);
    expect((await bed.get(`${path}?limit=${maximum + 1}`)).status).toBe(400);
    expect((await bed.get(`${path}?limit=0`)).status).toBe(400);
  },
});
const batch = (row: string, names: RouteName[], field: string, maximum: number): Row => ({
  table: 'Limits',
  row,
  check: async () => {
    for (const name of names) {
      const entries = INPUT[field]?.() as unknown[] | undefined;
      const entry = entries?.[0];
      const body = (count: number) => ({
        ...(name === 'addressChanges' ? { after_height: 0 } : {}),
        [field]: Array(count).fill(entry),
      });
      expect((await bed.post(ROUTES[name].path, body(maximum))).status, name).toBe(200);
      expect((await bed.post(ROUTES[name].path, body(maximum + 1))).status, name).toBe(400);
    }
  },
});
const socket = (row: string, name: keyof typeof SOCKETS): Row => ({
  table: 'Endpoints: WebSockets',
  row,
  check: async () => {
    const { path, subprotocol } = SOCKETS[name];
    expect(row).toContain(`\`${path}\``);
    expect(row).toContain(`\`${subprotocol}\``);
    const opened = bed.socket(path.replace('{id}', transaction), subprotocol);
    await opened.opened();
    expect(opened.ws.protocol).toBe(subprotocol);
    opened.ws.close();
  },
});
const tested = (table: string, row: string, where: string, checkRow: Check): Row => ({
  table,
  row,
  check: checkRow,
  note: where,
});
/** A row that a test of another file is called after: `title: row`, or one of several rows there. */
const named = (table: string, title: string, row: string, where: string): Row =>
  tested(table, title === table ? row : `${title}: ${row}`, where, () => {
    const text = readFileSync(new URL(`../../${where}`, import.meta.url), 'utf8');
    const titles = text.matchAll(/^test\(\s*(['"])(.*?)\1,/gm);
    const called = [...titles].map(([, , name = '']) => name).filter((name) => name.startsWith(`${title}: `));
    expect(called.filter((name) => name.includes(row))).not.toEqual([]);
  });
const elsewhere = (table: string, row: string, note: string): Row => ({ table, row, state: 'elsewhere', note });
const notYet = (table: string, row: string, note: string): Row => ({ table, row, state: 'not yet', note });
const columns = (row: string, field: keyof typeof NODE_LIMITS.socket, node: number, service: number): Row =>
  tested('Limits: sockets, node and public', row, 'test/api/live.test.ts', () => {
    expect([NODE_LIMITS.socket[field], PUBLIC_LIMITS.socket[field]]).toEqual([node, service]);
  });
const topic = (name: keyof typeof TOPIC_EVENTS, events: string[]): Row =>
  tested('Events: topics of /v1/ws', `\`${name}\``, 'test/api/live.test.ts', () => {
    expect(TOPIC_EVENTS[name]).toEqual(events);
  });

const ROWS: readonly Row[] = [
  {
    table: 'Endpoints: public HTTP API',
    row: 'GET `/`',
    check: async () => {
      const list = await (await bed.get('/')).json();
      for (const name of Object.keys(ROUTES) as RouteName[])
        expect(list.routes.map((entry: { path: string }) => entry.path)).toContain(ROUTES[name].path);
    },
  },
  {
    table: 'Endpoints: public HTTP API',
    row: 'GET `/health`',
    check: async () => {
      expect(await (await bed.get('/health')).text()).toBe('ok');
    },
  },
  route('GET `/v1/address/{address}/balance`', 'addressBalance'),
  route('GET `/v1/address/{address}/utxos`', 'addressUtxos'),
  route('GET `/v1/address/{address}/history`', 'addressHistory'),
  route('GET `/v1/cuts`', 'cuts'),
  route('GET `/v1/cuts/{height}/transactions`', 'cutTransactions'),
  route('GET `/v1/cuts/{height}/changes`', 'cutChanges'),
  route('GET `/v1/transactions/recent`, `/v1/blocks/recent`', 'recentTransactions', 'recentBlocks'),
  route(
    'POST `/v1/address/balances`, `/v1/address/utxos`, `/v1/address/changes`',
    'addressBalances',
    'addressesUtxos',
    'addressChanges',
  ),
  route(
    'POST `/v1/mempool/pending`, `/v1/staking/positions`, `/v1/keys/registered`',
    'mempoolPending',
    'stakingPositions',
    'registeredKeys',
  ),
  route('POST `/v1/transactions/status`', 'transactionStatuses'),
  route('POST `/v1/proofs/utxos`', 'utxoProofs'),
  {
    table: 'Endpoints: public HTTP API',
    row: 'POST `/v1/transactions`',
    check: async () => {
      const wire = bed.bed.payment([bed.bed.treasury(5)], [{ address: developmentKey('alice').address, amount: 7n }]);
      expect(await answers('submitTransaction', { wire_hex: toHex(wire) })).toMatchObject({ status: 'accepted' });
      expect(await answers('submitTransaction', { wire_hex: toHex(wire) })).toMatchObject({ status: 'known' });
    },
  },
  route('GET `/v1/transactions/manifest`', 'manifest'),
  route('GET `/v1/transactions/{id}/status`', 'transactionStatus'),
  {
    table: 'Endpoints: public HTTP API',
    row: 'GET `/v1/blocks/{id}`',
    check: async () => {
      expect(await answers('block', { id: block })).toMatchObject({ reward: { state: 'paid' } });
    },
  },
  route('GET `/v1/chain/head`', 'chainHead'),
  route('GET `/v1/chain/rates`', 'chainRates'),
  route('GET `/v1/mempool`', 'mempool'),
  route('GET `/v1/node/identity`', 'nodeIdentity'),
  route('GET `/v1/node/sync`', 'nodeSync'),
  route('GET `/v1/node/status`', 'nodeStatus'),
  route('GET `/v1/economics/supply`', 'supply'),
  route('GET `/v1/economics/emission`', 'emission'),
  route('GET `/v1/economics/estimate/staking`', 'stakingEstimate'),

  pages('`/v1/cuts`: 20, at most 100', 'cuts', 20, 100),
  pages('`/v1/address/{address}/utxos`: not given (100 here), at most 512', 'addressUtxos', 100, 512),
  pages('`/v1/address/{address}/history`: 100, at most 256', 'addressHistory', 100, 256),
  pages('`/v1/cuts/{height}/transactions`: not given (20 here), at most 64', 'cutTransactions', 20, 64),
  pages('`/v1/cuts/{height}/changes`: 1,024, at most 4,096', 'cutChanges', 1024, 4096),
  pages('`/v1/transactions/recent`: 50, at most 500', 'recentTransactions', 50, 500),
  pages('`/v1/blocks/recent`: 50, at most 500', 'recentBlocks', 50, 500),

  socket('`/v1/events`, `svc.node-events.v1`', 'events'),
  socket('`/v1/ws`, `svc.node-api.v1`', 'live'),
  socket('`/v1/transactions/{id}/status/stream`, `svc.transaction-status.v1`', 'transactionStatus'),
  tested(
    'Endpoints: WebSockets',
    'binary frames end the connection',
    'test/api/events.test.ts, test/api/live.test.ts',
    async () => {
      const opened = bed.socket('/v1/ws', 'svc.node-api.v1');
      await opened.opened();
      opened.ws.send(Buffer.of(1));
      expect((await opened.closed).code).toBe(1003);
    },
  ),

  tested(
    'Events: /v1/events',
    'checkpoint, then one `cut_finalized` per height',
    'test/api/events.test.ts',
    async () => {
      const opened = bed.socket('/v1/events?after_height=95', 'svc.node-events.v1');
      expect((await opened.next()).type).toBe('checkpoint');
      const frame = await opened.next();
      expect(frame).toMatchObject({
        type: 'cut_finalized',
        data: {
          api_version: 1,
          cut: { height: 96 },
          registered_work: 0,
          executed_work: 0,
          stake_rewards: '0',
          stake_payouts: [],
        },
      });
      expect(frame.data.rewards).toMatchObject([{ block_id: block, output_index: 0 }]);
    },
  ),
  tested('Events: /v1/events', '`after_height` replays one hour', 'test/api/events.test.ts', () => {
    expect(REPLAY_MILLIS).toBe(3_600_000);
  }),
  tested(
    'Events: /v1/events',
    '`resync_required` with `history_unavailable`, then closed',
    'test/api/events.test.ts',
    async () => {
      const opened = bed.socket('/v1/events?after_height=99999', 'svc.node-events.v1');
      expect(await opened.next()).toEqual({ type: 'resync_required', data: { reason: 'history_unavailable' } });
      await opened.closed;
    },
  ),

  ...(['subscribe', 'request', 'unsubscribe', 'ping'] as const).map((type) =>
    tested('Events: client frames of /v1/ws', `\`${type}\``, 'test/api/live.test.ts', async () => {
      const opened = bed.socket('/v1/ws', 'svc.node-api.v1');
      await opened.opened();
      const subscribed = async () => {
        opened.send('subscribe', { id: 'a', topic: 'cuts' });
        return (await opened.next()).data.subscription;
      };
      if (type === 'subscribe') expect(await subscribed()).toBe(1);
      else if (type === 'unsubscribe') {
        const subscription = await subscribed();
        opened.send(type, { id: 'b', subscription });
        expect(await opened.next()).toEqual({ type: 'unsubscribed', data: { id: 'b', subscription } });
      } else if (type === 'request') {
        opened.send(type, { id: 'c', path: '/v1/mempool' });
        expect(await opened.next()).toMatchObject({ type: 'response', data: { id: 'c', status: 200 } });
      } else {
        opened.send(type, { id: 'd' });
        expect(await opened.next()).toEqual({ type: 'pong', data: { id: 'd' } });
      }
      opened.ws.close();
    }),
  ),

  topic('cuts', ['cut_finalized']),
  topic('blocks', ['block_accepted']),
  topic('mempool', ['mempool']),
  topic('rates', ['rates']),
  topic('sync', ['sync']),
  topic('transaction', ['transaction_status']),
  topic('addresses', ['address_changed', 'mempool_tx_seen', 'mempool_tx_removed']),
  topic('mempool_transactions', ['mempool_transaction', 'mempool_transaction_removed']),

  tested('Events: reasons of resync_required', '`stream_lagged`', 'test/api/live.test.ts', () => {
    expect(RESYNC_REASONS).toContain('stream_lagged');
  }),
  tested(
    'Events: reasons of resync_required',
    '`stream_restarted`',
    'test/api/live.test.ts, test/api/events.test.ts',
    () => {
      expect(RESYNC_REASONS).toContain('stream_restarted');
    },
  ),
  tested('Events: reasons of resync_required', '`history_unavailable`', 'test/api/events.test.ts', () => {
    expect(RESYNC_REASONS).toContain('history_unavailable');
  }),
  tested('Events: status stream', 'snapshot, updates, end at the final status', 'test/api/live.test.ts', async () => {
    const opened = bed.socket(`/v1/transactions/${transaction}/status/stream`, 'svc.transaction-status.v1');
    expect(await opened.next()).toMatchObject({ type: 'snapshot', data: { lifecycle: 'finalized' } });
    expect((await opened.closed).code).toBe(1000);
  }),
  elsewhere('Events: mining listener', '`GET /v1/events`', 'the mining listener speaks the same frames; test/node'),
  elsewhere(
    'Methods of the wallet daemon',
    'groups Wallet, Addresses, Incoming, Outgoing, Ownership, Events',
    'the wallet daemon; test/wallet/rpc/specification.test.ts',
  ),
  ...['validators', 'positions', 'stake', 'unstake', 'withdraw'].map((name) =>
    named('Methods of the wallet daemon', 'Staking', `\`${name}\``, 'test/wallet/staking/rows.test.ts'),
  ),
  ...(
    [
      ['`svcd run --metrics-bind`', 'test/node/metrics-bind.slow.test.ts'],
      ['`svcd validator-endpoint`', 'test/consensus/overlay-key.test.ts'],
      ['`validator-register`', 'test/wallet/staking/operator-rows.slow.test.ts'],
      ['`positions`, `validators`', 'test/wallet/staking/operator-rows.slow.test.ts'],
      ['`validator-key-export`', 'test/wallet/staking/key-files.slow.test.ts'],
      ['`validator-heartbeat-fee-key-export`', 'test/wallet/staking/key-files.slow.test.ts'],
      ['`validator-heartbeat`', 'test/wallet/staking/operator-changes.slow.test.ts'],
      ['`reward-address`', 'test/wallet/staking/operator-rows.slow.test.ts'],
      ['`validator-rotate`', 'test/wallet/staking/operator-changes.slow.test.ts'],
      ['`validator-endpoint`', 'test/wallet/staking/operator-changes.slow.test.ts'],
      ['`validator-commission`', 'test/wallet/staking/operator-changes.slow.test.ts'],
      ['`validator-exit`', 'test/wallet/staking/operator-changes.slow.test.ts'],
    ] as const
  ).map(([row, where]) => named('Operator commands', 'Operator commands', row, where)),
  shownBy('Operator commands', 'all of them, as docs/validator.md has them', 'test/stack/validator-page.slow.test.ts'),
  elsewhere('Events: wallet daemon', 'every row', 'the wallet daemon; test/wallet'),

  tested('Errors: HTTP', '429', 'test/api/http.test.ts', () => {
    expect(PUBLIC_LIMITS.rate.perSecond).toBeGreaterThan(0);
  }),
  tested('Errors: HTTP', '503', 'test/api/http.test.ts', async () => {
    bed.api.serve(undefined);
    const answer = await bed.get('/v1/chain/head');
    bed.api.serve(bed.bed.node);
    expect([answer.status, (await answer.json()).retry_after_millis]).toEqual([503, 1_000]);
  }),
  elsewhere('Errors: HTTP', '409 of `POST /v1/mining/candidates`', 'the mining listener; test/node/candidates.test.ts'),
  tested(
    'Errors: HTTP',
    'a submission is never repeated after a lost answer',
    'test/api/client.test.ts',
    () => undefined,
  ),
  elsewhere('Errors: wallet daemon JSON-RPC codes', 'every row', 'the wallet daemon; test/wallet'),

  tested('Limits', 'HTTP request body: 128 KiB', 'test/api/http.test.ts', () => {
    expect(MAX_REQUEST_BODY).toBe(131_072);
  }),
  batch(
    'Batch: 64 addresses',
    ['addressBalances', 'addressesUtxos', 'addressChanges', 'mempoolPending', 'stakingPositions', 'registeredKeys'],
    'addresses',
    64,
  ),
  batch('Batch: 1,024 transaction IDs', ['transactionStatuses'], 'transaction_ids', 1024),
  batch('Batch: 8 outpoints', ['utxoProofs'], 'outpoints', 8),
  tested('Limits', 'Outputs spent per transaction: 8', 'test/protocol', async () => {
    expect(MAX_INPUTS).toBe(8);
    expect(await answers('manifest')).toMatchObject({ max_inputs: 8 });
  }),
  elsewhere('Limits', '`send_many` recipients, amount precision, port 28703', 'the wallet daemon; test/wallet'),
  tested('Limits', 'Miner tag: 20 characters', 'test/protocol', () => {
    expect(MAX_TAG).toBe(20);
  }),
  elsewhere('Limits', 'Template transactions kept: 5 seconds', 'the mining listener; test/node'),
  tested('Limits', 'WebSocket replay window: 1 hour', 'test/api/events.test.ts', () => {
    expect(REPLAY_MILLIS).toBe(3_600_000);
  }),
  tested('Limits', 'Request path in a `request` frame: 1 KiB', 'test/api/live.test.ts', async () => {
    const opened = bed.socket('/v1/ws', 'svc.node-api.v1');
    await opened.opened();
    opened.send('request', { id: 1, path: `/v1/${'a'.repeat(1020)}` });
    expect((await opened.next()).type).toBe('response');
    opened.send('request', { id: 1, path: `/v1/${'a'.repeat(1021)}` });
    expect((await opened.next()).type).toBe('error');
    opened.ws.close();
  }),
  tested('Limits', 'Registration window of an anchor: 96 cuts', 'test/node', async () => {
    expect(REGISTRATION_WINDOW).toBe(96);
    expect(await answers('block', { id: block })).toMatchObject({
      registration_window_end: 96,
      reward: { paid_height: 96 },
    });
  }),
  tested('Limits', 'Attendance needed to earn: 9 of 12 windows', 'test/node/interval.slow.test.ts', () => undefined),
  elsewhere(
    'Limits',
    'Validator routes, minimum self-bond, commission, unbonding, commission delay',
    'test/consensus/overlay-key.test.ts, test/wallet/staking, test/staking/model.test.ts',
  ),
  named('Limits', 'Limits', '`Committee size`', 'test/staking/committee.test.ts'),

  columns('Subscriptions: 64, 64', 'subscriptions', 64, 64),
  columns('Watched addresses: 512, 512', 'watchedAddresses', 512, 512),
  columns('Frame sent by client: 64 KiB, 16 KiB', 'frameBytes', 65_536, 16_384),
  columns('Answer to a request: 256 KiB, 1 MiB', 'answerBytes', 262_144, 1_048_576),
  columns('Frames per second: 100, 10', 'framesPerSecond', 100, 10),
  columns('Requests in flight: 8, 4', 'requestsInFlight', 8, 4),

  tested('Authentication', '1. no key and no account', 'test/api/routes.test.ts', () => undefined),
  tested('Authentication', '7. signed answers', 'test/api/http.test.ts, test/api/signed-answer.test.ts', async () => {
    const answer = await bed.get('/v1/chain/head', { 'x-svc-request-nonce': '11'.repeat(32) });
    for (const name of ['envelope-version', 'node-identity', 'request-nonce', 'tip-height', 'signature'])
      expect(answer.headers.get(`x-svc-${name}`), name).not.toBeNull();
  }),
  tested('Authentication', '8. browser origins', 'test/api/http.test.ts', async () => {
    expect((await bed.get('/v1/chain/head', { origin: 'https://example.org' })).status).toBe(403);
  }),
  elsewhere('Authentication', '2, 3. wallet daemon; 4. mining listener; 5. metrics; 6. stratum', 'those programs'),
  elsewhere(
    'Authentication',
    '9. validator keys in encrypted files',
    'test/consensus/validator-config.test.ts, test/wallet/staking/key-files.slow.test.ts',
  ),

  ...(
    [
      ['Address balance document', 'addressBalance'],
      ['Address history document', 'addressHistory'],
      ['Transaction status document', 'transactionStatus'],
      ['Supply document', 'supply'],
      ['Node sync document', 'nodeSync'],
    ] as const
  ).map(([row, name]) => tested('Resources', row, 'test/api/routes.test.ts', async () => void (await answers(name)))),
  tested('Resources', 'Block document: `reward.state` and the amounts', 'test/api/routes.test.ts', async () => {
    const { reward } = (await answers('block', { id: block })) as { reward: Record<string, string> };
    expect(BigInt(reward.amount as string)).toBe(
      BigInt(reward.work_amount as string) + BigInt(reward.fee_amount as string),
    );
  }),
  tested('Resources', 'Node status: `update_required`, `update_announced`', 'test/api/routes.test.ts', async () => {
    expect(await answers('nodeStatus')).toMatchObject({ update_required: false, update_announced: false });
  }),
  tested(
    'Resources',
    'Node sync: `best_peer_height`, `behind_by`, `peers`',
    'test/network/sync.test.ts; null and 0 for a node without peers',
    async () => {
      expect(existsSync(new URL('../network/sync.test.ts', import.meta.url))).toBe(true);
      expect(await answers('nodeSync')).toMatchObject({ best_peer_height: null, peers: 0 });
    },
  ),
  shownBy(
    'Resources',
    'History `source` of withdrawn stake; positions of kind `delegation`; state `unbonding`',
    'test/staking/node.test.ts',
  ),
  shownBy('Validator liveness', 'live, lapsed, jailed, eligible, exit; heartbeats', 'test/staking/story.test.ts'),
  tested(
    'Documents beyond the specification',
    '`GET /v1/staking/validators`',
    'test/api/routes.test.ts',
    async () => void (await answers('stakingValidators')),
  ),
  tested(
    'Documents beyond the specification',
    '`GET /v1/staking/validators/{id}`',
    'test/api/routes.test.ts',
    async () => {
      const [first] = (await bed.client.stakingValidators({})).validators;
      await answers('stakingValidator', { id: first?.validator_id });
    },
  ),
  tested(
    'Documents beyond the specification',
    '`GET /v1/cuts/{height}/rewards`',
    'test/api/routes.test.ts',
    async () => void (await answers('cutRewards', { height: 1 })),
  ),
  tested('Documents beyond the specification', '`POST /v1/proofs/staking`', 'test/api/routes.test.ts', async () => {
    const [first] = (await bed.client.stakingValidators({})).validators;
    await answers('stakingProofs', { position_ids: [], validator_ids: [first?.validator_id] });
  }),
  ...MODULE_ROWS.shown.map(([row, file]) => shownBy(MODULE_ROWS.table, row, file)),
  ...MODULE_ROWS.missing.map(([row, why]) => notYet(MODULE_ROWS.table, row, why)),
];

const state = (row: Row): string => ('check' in row ? 'kept' : row.state);

describe.each([...new Set(ROWS.map(({ table }) => table))])('%s', (table) => {
  const rows = ROWS.filter((row) => row.table === table);
  test.each(rows.map((row) => [row.row, row] as const))('%s', async (_, row) => {
    if ('check' in row) await row.check(bed);
    else expect(row.note.length).toBeGreaterThan(10);
  });
});

test('docs/conformance.md is made from these rows', async () => {
  const lines = [
    '# Conformance of the public API and the protocol module',
    '',
    "Made by test/api/conformance.test.ts from the specification's tables; the rows marked kept are checked by every run of the tests.",
    'Elsewhere: a row of another program. Not yet: the note says why.',
  ];
  for (const table of new Set(ROWS.map((row) => row.table))) {
    lines.push('', `## ${table}`, '', '| row | state | test, or why |', '|---|---|---|');
    for (const row of ROWS.filter((entry) => entry.table === table)) {
      const where = row.note ?? 'test/api/conformance.test.ts';
      lines.push(`| ${row.row.replaceAll('|', '\\|')} | ${state(row)} | ${where} |`);
    }
  }
  await expect(`${lines.join('\n')}\n`).toMatchFileSnapshot('../../docs/conformance.md');
});
