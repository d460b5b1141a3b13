/** Facts found at a second reading of the specification: what its words say of edges, orders and sameness. */
import assert from 'node:assert/strict';
import { ask, documentAt, get, HEX_96, post, Socket, until, withSocket } from './client.ts';
import { type Fact, factsOf, needs, type Target } from './fact.ts';
import { bearer, codeOf, type Fields, newAddress, paidOnce, requestId, result, settled } from './json-rpc.ts';
import { batchBody, foreignTo } from './unshown.ts';

const EVENTS = 'svc.node-events.v1';
const LIVE = 'svc.node-api.v1';
const DIGITS = /^\d+$/;

const entriesOf = (document: Fields): Fields[] => Object.values(document).find(Array.isArray) as Fields[];
const statusOf = async (url: string): Promise<number> => (await get(url)).status;
const headOf = async ({ api }: Target): Promise<number> =>
  Number((await documentAt(`${api}/v1/node/sync`)).finalized_height);
const live = <T>({ api }: Target, use: (socket: Socket) => Promise<T>) => withSocket(`${api}/v1/ws`, [LIVE], use);
const cutOf = (frame: { readonly data: Fields }) => frame.data.cut as { height: number; cut_id: string };

/** The frame that answers this id; notifications are passed over. */
async function answerTo(socket: Socket, type: string, data: Fields): Promise<{ type: string; data: Fields }> {
  socket.send({ type, data });
  for (;;) {
    const frame = await socket.next();
    if (frame.type !== 'notification' && frame.type !== 'resync_required') return frame;
  }
}

/** A figure of a metrics page without labels. */
const figure = (page: string, name: string): number =>
  Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(page)?.[1] ?? Number.NaN);

const metricsOf = async ({ nodeMetrics }: Target): Promise<string> =>
  (await get(`${needs(nodeMetrics, '--node-metrics')}/metrics`)).text;

const template = async (target: Target, body: Fields) =>
  await post(`${needs(target.mining, '--mining')}/v1/mining/templates`, {
    payout: needs(target.address, '--address'),
    max_transactions: 10,
    ...body,
  });

export const SECOND_READING: readonly Fact[] = [
  ...factsOf('Second reading: documents', {
    'balance document: `balance` is digits, `utxos` and `indexed_height` are integers, and it has no other type':
      async (target) => {
        const { address } = await paidOnce(target);
        const document = await documentAt(`${target.api}/v1/address/${address}/balance`);
        assert.match(String(document.balance), DIGITS);
        assert.equal(typeof document.balance, 'string');
        assert.ok(Number.isSafeInteger(document.utxos) && Number.isSafeInteger(document.indexed_height));
        assert.equal(document.address, address);
      },
    '`indexed_height` is not above the finalized height': async (target) => {
      const { address } = await paidOnce(target);
      const { indexed_height } = await documentAt(`${target.api}/v1/address/${address}/balance`);
      assert.ok(Number(indexed_height) <= (await headOf(target)));
    },
    'history: an output that is spent has an event `spent`, whose `transaction_id` is not that of its outpoint': async (
      target,
    ) => {
      const document = await documentAt(`${target.api}/v1/address/${needs(target.address, '--address')}/history`);
      const spent = entriesOf(document).filter(({ kind }) => kind === 'spent');
      assert.ok(spent.length > 0, 'the wallet has paid');
      for (const { outpoint, transaction_id } of spent) {
        assert.match(String(transaction_id), HEX_96);
        assert.notEqual((outpoint as Fields).transaction_id, transaction_id);
        assert.equal(typeof (outpoint as Fields).output_index, 'number');
      }
    },
    'a finalized transaction has no `failure`, and both of its cuts': async (target) => {
      const { status } = await paidOnce(target);
      assert.equal(status.failure, null);
      for (const name of ['observed_work', 'registered_cut', 'finalized_cut'])
        assert.notEqual(status[name], null, name);
    },
    'the cuts of a status document are those of the list of cuts': async (target) => {
      const { status } = await paidOnce(target);
      for (const name of ['registered_cut', 'finalized_cut']) {
        const cut = status[name] as { height: number; cut_id: string };
        const [found] = entriesOf(await documentAt(`${target.api}/v1/cuts?before=${cut.height + 1}&limit=1`));
        assert.equal(found?.cut_id, cut.cut_id);
      }
    },
    'supply: every field is digits, and `total_supply` is `minted` less `burned`': async ({ api }) => {
      const document = await documentAt(`${api}/v1/economics/supply`);
      const names = ['max_supply', 'minted', 'burned', 'total_supply', 'circulating_supply', 'bonded', 'unbonding'];
      for (const name of [...names, 'work_reserve', 'stake_reserve', 'unscheduled_emission'])
        assert.match(String(document[name]), DIGITS, name);
      const atoms = (name: string) => BigInt(String(document[name]));
      assert.equal(atoms('total_supply'), atoms('minted') - atoms('burned'));
    },
    '`behind_by` is what `finalized_height` lacks of `best_peer_height`': async ({ api }) => {
      const { behind_by, best_peer_height, finalized_height } = await documentAt(`${api}/v1/node/sync`);
      const best = best_peer_height === null ? Number(finalized_height) : Number(best_peer_height);
      assert.equal(behind_by, Math.max(0, best - Number(finalized_height)));
    },
  }),
  ...factsOf('Second reading: lists and batches', {
    '`/v1/cuts` goes from the newest down, without a gap': async ({ api }) => {
      const heights = entriesOf(await documentAt(`${api}/v1/cuts`)).map(({ height }) => Number(height));
      assert.deepEqual(
        heights,
        heights.map((_, i) => (heights[0] as number) - i),
      );
    },
    '`before` names the first height that is not listed': async (target) => {
      const head = await headOf(target);
      const [newest] = entriesOf(await documentAt(`${target.api}/v1/cuts?before=${head}&limit=1`));
      assert.equal(newest?.height, head - 1);
    },
    'a cursor, a `before` and a `limit` that are none are 400': async (target) => {
      const { address } = await paidOnce(target);
      for (const query of ['cursor=%00', 'cursor=zzzz', 'limit=-1', 'limit=1.5', 'limit=1e1', 'limit='])
        assert.equal(await statusOf(`${target.api}/v1/address/${address}/history?${query}`), 400, query);
      for (const query of ['before=-1', 'before=x', 'before=1.5'])
        assert.equal(await statusOf(`${target.api}/v1/cuts?${query}`), 400, query);
    },
    'an identifier in upper case is none': async (target) => {
      const { id } = await paidOnce(target);
      assert.equal(await statusOf(`${target.api}/v1/transactions/${id}/status`), 200);
      assert.ok([400, 404].includes(await statusOf(`${target.api}/v1/transactions/${id.toUpperCase()}/status`)));
    },
    'a batch of statuses has the known ones, and gives an unknown one no state': async (target) => {
      const { id, status } = await paidOnce(target);
      const unknown = ['0'.repeat(96), 'f'.repeat(96)];
      const answer = await post(`${target.api}/v1/transactions/status`, batchBody.transactions([...unknown, id]));
      const entries = entriesOf(answer.json).filter(({ lifecycle }) => lifecycle !== undefined && lifecycle !== null);
      assert.deepEqual(
        entries.map(({ transaction_id, lifecycle }) => [transaction_id, lifecycle]),
        [[id, status.lifecycle]],
      );
    },
    'a batch of balances answers for each address, in order': async (target) => {
      const { address } = await paidOnce(target);
      const addresses = [await newAddress(target), address, needs(target.address, '--address')];
      const answer = await post(
        `${target.api}/v1/address/balances`,
        batchBody.addresses('/v1/address/balances', addresses),
      );
      assert.deepEqual(
        entriesOf(answer.json).map((entry) => entry.address),
        addresses,
      );
    },
    'one wrong entry of a batch refuses it': async (target) => {
      const { address } = await paidOnce(target);
      const body = batchBody.addresses('/v1/address/balances', [address, 'nobody']);
      assert.equal((await post(`${target.api}/v1/address/balances`, body)).status, 400);
      const ids = batchBody.transactions(['0'.repeat(95)]);
      assert.equal((await post(`${target.api}/v1/transactions/status`, ids)).status, 400);
    },
    'an estimate of nothing, of less than nothing, of a fraction and of words is 400': async ({ api }) => {
      for (const amount of ['', '-1', '1.5', 'many', '0x10'])
        assert.equal(await statusOf(`${api}/v1/economics/estimate/staking?amount=${amount}`), 400, amount);
      assert.equal(await statusOf(`${api}/v1/economics/estimate/staking`), 400);
    },
    'a submission needs `api_version`, and it is the number 1': async ({ api }) => {
      for (const body of [{ wire_hex: '00' }, { api_version: '1', wire_hex: '00' }, { api_version: 0, wire_hex: '00' }])
        assert.equal((await post(`${api}/v1/transactions`, body)).status, 400, JSON.stringify(body));
    },
    'a cut that is not there yet has no transactions and no changes: 404': async (target) => {
      const height = (await headOf(target)) + 100_000;
      for (const part of ['transactions', 'changes'])
        assert.equal(await statusOf(`${target.api}/v1/cuts/${height}/${part}`), 404, part);
    },
  }),
  ...factsOf('Second reading: sockets', {
    'the checkpoint is the finalized head': async (target) => {
      const before = await headOf(target);
      await withSocket(`${target.api}/v1/events`, [EVENTS], async (socket) => {
        const first = await socket.next();
        const height = Number(JSON.stringify(first).match(/"height":(\d+)/)?.[1]);
        assert.ok(first.type === 'checkpoint' && height >= before && height <= (await headOf(target)), first.type);
      });
    },
    'two readers see the same cuts': async ({ api }) => {
      const [one, other] = [
        await Socket.open(`${api}/v1/events`, [EVENTS]),
        await Socket.open(`${api}/v1/events`, [EVENTS]),
      ];
      try {
        const second = cutOf(await other.until('cut_finalized'));
        let first = cutOf(await one.until('cut_finalized'));
        // The first reader was there earlier.
        while (first.height < second.height) first = cutOf(await one.until('cut_finalized'));
        assert.deepEqual(first, second);
      } finally {
        one.close();
        other.close();
      }
    },
    '`after_height` of the head replays nothing: the next cut is the next height': async (target) => {
      const head = await headOf(target);
      await withSocket(`${target.api}/v1/events?after_height=${head}`, [EVENTS], async (socket) => {
        assert.equal(cutOf(await socket.until('cut_finalized')).height, head + 1);
      });
    },
    'an `after_height` that is no height is refused': async ({ api }) => {
      for (const word of ['-1', 'x', '1.5'])
        await assert.rejects(Socket.open(`${api}/v1/events?after_height=${word}`, [EVENTS]), /refused: 400/, word);
    },
    'an id is a number or a text of the client’s choice, and comes back as it was': async (target) => {
      await live(target, async (socket) => {
        for (const id of [0, 7, 'seven', ''])
          assert.deepEqual((await answerTo(socket, 'ping', { id })).data, { id }, JSON.stringify(id));
      });
    },
    'a `response` has the body that HTTP gives, and nothing but id, status and body': async (target) => {
      const path = '/v1/node/identity';
      const { json } = await get(`${target.api}${path}`);
      await live(target, async (socket) => {
        const { type, data } = await answerTo(socket, 'request', { id: 1, path });
        assert.deepEqual([type, Object.keys(data).sort()], ['response', ['body', 'id', 'status']]);
        assert.deepEqual([data.status, data.body], [200, json]);
      });
    },
    'a `request` takes a query, and reads no route that is for POST': async (target) => {
      await live(target, async (socket) => {
        const { data } = await answerTo(socket, 'request', { id: 1, path: '/v1/cuts?limit=2' });
        assert.equal(entriesOf(data.body as Fields).length, 2);
        const posted = await answerTo(socket, 'request', { id: 2, path: '/v1/address/balances' });
        assert.ok(posted.type === 'error' || [404, 405].includes(Number(posted.data.status)), JSON.stringify(posted));
      });
    },
    'one topic may be subscribed to twice, under two numbers': async (target) => {
      await live(target, async (socket) => {
        const one = await answerTo(socket, 'subscribe', { id: 1, topic: 'cuts' });
        const other = await answerTo(socket, 'subscribe', { id: 2, topic: 'cuts' });
        assert.deepEqual([one.type, other.type], ['subscribed', 'subscribed']);
        assert.notEqual(one.data.subscription, other.data.subscription);
      });
    },
    'a subscription without what its topic takes, or with a wrong address, gives none': async (target) => {
      await live(target, async (socket) => {
        for (const data of [
          { topic: 'transaction' },
          { topic: 'transaction', transaction_id: 'x' },
          { topic: 'addresses' },
          { topic: 'addresses', addresses: ['nobody'] },
        ])
          assert.equal((await answerTo(socket, 'subscribe', { id: 1, ...data })).type, 'error', JSON.stringify(data));
        assert.equal((await answerTo(socket, 'ping', { id: 2 })).type, 'pong');
      });
    },
    'what is unsubscribed twice was there once, and the connection goes on': async (target) => {
      await live(target, async (socket) => {
        const { data } = await answerTo(socket, 'subscribe', { id: 1, topic: 'sync' });
        const off = { id: 2, subscription: data.subscription };
        assert.equal((await answerTo(socket, 'unsubscribe', off)).type, 'unsubscribed');
        assert.equal((await answerTo(socket, 'unsubscribe', off)).type, 'error');
        assert.equal((await answerTo(socket, 'ping', { id: 3 })).type, 'pong');
      });
    },
    'a page of the origin `null` is refused': async ({ api }) => {
      assert.equal((await get(`${api}/v1/chain/head`, { origin: 'null' })).status, 403);
    },
  }),
  ...factsOf('Second reading: wallet daemon', {
    'two sends at once with one `request_id` pay once': async (target) => {
      const to = await newAddress(target);
      const params = { to, amount: '0.03125', request_id: requestId() };
      const sent = await Promise.all([1, 2, 3].map(() => result(target, 'send', params)));
      const ids = new Set(sent.map(({ transaction }) => transaction));
      assert.equal(ids.size, 1);
      assert.equal(sent.filter(({ duplicate }) => duplicate === false).length, 1);
      const { finalized_cut } = await settled(target, String(sent[0]?.transaction));
      const { balance } = await until(
        () => documentAt(`${target.api}/v1/address/${to}/balance`),
        ({ indexed_height }) => Number(indexed_height) >= (finalized_cut as { height: number }).height,
      );
      assert.equal(balance, '3125000');
    },
    '`to`, `amount` and `request_id` are needed, and are texts: -32602': async (target) => {
      const to = await newAddress(target);
      for (const params of [
        { to, amount: '1' },
        { to, request_id: 'x' },
        { amount: '1', request_id: 'x' },
        { to, amount: '1', request_id: 7 },
        { to: 7, amount: '1', request_id: 'x' },
        { to, amount: '1', request_id: 'x', compound_first: 'yes' },
      ])
        assert.equal(await codeOf(target, 'send', params), -32602, JSON.stringify(params));
    },
    '`since_height` below 0, or as a text, and a label that is no text: -32602': async (target) => {
      assert.equal(await codeOf(target, 'received', { since_height: -1 }), -32602);
      assert.equal(await codeOf(target, 'received', { since_height: '0' }), -32602);
      assert.equal(await codeOf(target, 'new_address', { label: 7 }), -32602);
    },
    'an address of another network, or cut short, is not valid and not paid': async (target) => {
      const own = await newAddress(target);
      for (const address of [own.slice(0, -1), foreignTo(own)])
        assert.equal(await codeOf(target, 'send', { to: address, amount: '1', request_id: requestId() }), -32602);
    },
    '`balance` and `status` take no parameters, and a list is no object': async (target) => {
      assert.equal(await codeOf(target, 'balance', [1]), -32602);
      assert.equal(await codeOf(target, 'status', { verbose: true }), -32602);
    },
    'the daemon reads a body of 128 KiB, and no longer one': async (target) => {
      const url = `${needs(target.wallet, '--wallet')}/v1/rpc`;
      const body = (length: number) =>
        JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'status', params: {} }).padEnd(length, ' ');
      assert.equal((await post(url, body(131_072), bearer(target))).status, 200);
      assert.equal((await post(url, body(131_073), bearer(target))).status, 413);
    },
    'the amount and the fee of a send have 8 decimals, and are what the chain shows': async (target) => {
      const { id, address } = await paidOnce(target);
      const { events } = (await documentAt(`${target.api}/v1/address/${address}/history`)) as { events: Fields[] };
      assert.deepEqual(
        events.filter(({ transaction_id }) => transaction_id === id).map(({ amount }) => amount),
        ['25000000'],
      );
      const sent = await result(target, 'send', { to: address, amount: '0.015625', request_id: requestId() });
      assert.equal(sent.amount, '0.01562500');
      assert.match(String(sent.fee), /^\d+\.\d{8}$/);
      assert.deepEqual([sent.kind, sent.to, sent.duplicate], ['payment', address, false]);
    },
  }),
  ...factsOf('Second reading: mining', {
    'a template of no transactions may be asked for': async (target) => {
      const answer = await template(target, { max_transactions: 0 });
      assert.equal(answer.status, 200, answer.text.slice(0, 200));
    },
    'a payout to an address of another network is refused': async (target) => {
      const payout = foreignTo(needs(target.address, '--address'));
      assert.equal((await template(target, { payout })).status, 400);
    },
    'a template is valid beyond the head: its window ends above it': async (target) => {
      const { json } = await template(target, {});
      assert.ok(Number(json.registration_window_end) > (await headOf(target)));
    },
    'the listener offers nothing else of the public API, and answers no other method': async (target) => {
      const url = needs(target.mining, '--mining');
      assert.equal(await statusOf(`${url}/v1/economics/supply`), 404);
      assert.equal((await ask(`${url}/v1/mining/templates`, { method: 'GET' })).status, 405);
    },
  }),
  ...factsOf('Second reading: metrics', {
    '`svc_node_peers` and `svc_node_best_peer_height` are those of `GET /v1/node/sync`': async (target) => {
      const page = await metricsOf(target);
      const { peers, best_peer_height } = await documentAt(`${target.api}/v1/node/sync`);
      assert.equal(figure(page, 'svc_node_peers'), peers);
      assert.equal(figure(page, 'svc_node_best_peer_height'), best_peer_height ?? 0);
    },
    'no more blocks are executed than registered, and no counter goes back': async (target) => {
      const names = ['cuts', 'registered_blocks', 'executed_blocks', 'paid_rewards'].map(
        (one) => `svc_node_${one}_total`,
      );
      const first = await metricsOf(target);
      const second = await metricsOf(target);
      assert.ok(figure(second, names[2] as string) <= figure(second, names[1] as string));
      for (const name of names) assert.ok(figure(first, name) <= figure(second, name), name);
    },
  }),
];
