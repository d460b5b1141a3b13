/** Endpoints and Events: the node's WebSockets; Limits: sockets. */
import assert from 'node:assert/strict';
import { documentAt, type Frame, get, HEX_96, Socket, until, wait, withSocket } from './client.ts';
import { type Fact, factsOf, NotChecked, needs, type Target } from './fact.ts';
import { newAddress, requestId, result } from './json-rpc.ts';

const EVENTS = 'svc.node-events.v1';
const LIVE = 'svc.node-api.v1';
const STATUS = 'svc.transaction-status.v1';

const heightOf = ({ data }: Frame): number => (data.cut as { height: number }).height;
const live = <T>({ api }: Target, use: (socket: Socket) => Promise<T>) => withSocket(`${api}/v1/ws`, [LIVE], use);

async function subscribed(socket: Socket, data: Record<string, unknown>): Promise<number> {
  socket.send({ type: 'subscribe', data: { id: 'own', ...data } });
  const { data: told } = await socket.until('subscribed');
  assert.deepEqual([told.id, told.topic], ['own', data.topic]);
  return told.subscription as number;
}

const eventOf = ({ data }: Frame): Frame => data.event as Frame;

const someId = async ({ api }: Target): Promise<string> =>
  await until(
    async () => {
      const list = Object.values(await documentAt(`${api}/v1/transactions/recent?limit=1`)).find(Array.isArray);
      return String((list?.[0] as { transaction_id?: string } | undefined)?.transaction_id ?? '');
    },
    (id) => id !== '',
    4 * wait.seconds,
  );

/** The status of a refused handshake. */
const refusal = async (url: string, protocols: string[]): Promise<string> =>
  await Socket.open(url, protocols).then(
    (socket) => {
      socket.close();
      return 'opened';
    },
    (error: Error) => error.message,
  );

/** A cut that paid blocks, among the newest and those to come: a chain pays nothing in its first 96. */
async function withRewards(
  api: string,
  use: (height: number, rewards: readonly Record<string, unknown>[]) => Promise<void>,
): Promise<void> {
  const head = Number((await documentAt(`${api}/v1/node/sync`)).finalized_height);
  const end = performance.now() + 6000 * wait.seconds;
  await withSocket(`${api}/v1/events?after_height=${Math.max(0, head - 40)}`, [EVENTS], async (socket) => {
    for (;;) {
      const frame = await socket.until('cut_finalized');
      const rewards = frame.data.rewards as Record<string, unknown>[];
      if (rewards.length > 0) return await use(heightOf(frame), rewards);
      if (performance.now() > end) throw new NotChecked('no cut paid a block');
    }
  });
}

const ORDER = ['processing', 'receiving', 'registered', 'finalized'];
const send = async (target: Target, to: string): Promise<string> =>
  String((await result(target, 'send', { to, amount: '0.0625', request_id: requestId() })).transaction);

/** States that only go on, and end. */
function goOn(states: readonly unknown[]): void {
  const places = states.map((state) => ORDER.indexOf(String(state)));
  assert.ok(!places.includes(-1), states.join());
  assert.deepEqual(
    places,
    places.toSorted((a, b) => a - b),
  );
  assert.equal(states.at(-1), 'finalized');
}

export const SOCKETS: readonly Fact[] = [
  ...factsOf('Endpoints: node WebSockets', {
    'each names its subprotocol on connecting, and none opens without it': async (target) => {
      const paths: [string, string][] = [
        ['/v1/events', EVENTS],
        ['/v1/ws', LIVE],
        [`/v1/transactions/${await someId(target)}/status/stream`, STATUS],
      ];
      for (const [path, protocol] of paths) {
        await withSocket(`${target.api}${path}`, [protocol], async (socket) => assert.equal(socket.protocol, protocol));
        assert.match(await refusal(`${target.api}${path}`, ['another.v1']), /^refused: 4/);
      }
    },
    'a binary frame ends the connection': async (target) => {
      for (const [path, protocol] of [
        ['/v1/events', EVENTS],
        ['/v1/ws', LIVE],
      ] as const)
        await withSocket(`${target.api}${path}`, [protocol], async (socket) => {
          socket.send(Uint8Array.of(1));
          await socket.closed;
        });
    },
  }),
  ...factsOf('Events: /v1/events', {
    'starts with a checkpoint, then one `cut_finalized` per height, in order': ({ api }) =>
      withSocket(`${api}/v1/events`, [EVENTS], async (socket) => {
        const first = await socket.next();
        assert.equal(first.type, 'checkpoint');
        const cuts = [await socket.next(), await socket.next(), await socket.next()];
        assert.deepEqual(
          cuts.map(({ type }) => type),
          Array(3).fill('cut_finalized'),
        );
        const [height = 0] = cuts.map(heightOf);
        assert.deepEqual(cuts.map(heightOf), [height, height + 1, height + 2]);
      }),
    'the fields of `cut_finalized`': ({ api }) =>
      withSocket(`${api}/v1/events`, [EVENTS], async (socket) => {
        const { data } = await socket.until('cut_finalized');
        assert.equal(data.api_version, 1);
        const cut = data.cut as Record<string, unknown>;
        assert.deepEqual(Object.keys(cut).sort(), ['cut_id', 'height', 'state_root', 'validator_set_id']);
        for (const name of ['cut_id', 'state_root', 'validator_set_id']) assert.match(String(cut[name]), HEX_96);
        for (const name of ['registered_work', 'executed_work']) assert.ok(Number.isSafeInteger(data[name]), name);
        for (const name of ['rewards', 'stake_payouts']) assert.ok(Array.isArray(data[name]), name);
        assert.match(String(data.stake_rewards), /^\d+$/);
      }),
    'a cut has the identifier that the list of cuts has': ({ api }) =>
      withSocket(`${api}/v1/events`, [EVENTS], async (socket) => {
        const { height, cut_id } = (await socket.until('cut_finalized')).data.cut as Record<string, unknown>;
        const list = await documentAt(`${api}/v1/cuts?limit=1&before=${Number(height) + 1}`);
        assert.ok(JSON.stringify(list).includes(String(cut_id)));
      }),
    'a block that a cut pays is in the reward state `paid`, with that amount, as an output of that cut': ({ api }) =>
      withRewards(api, async (cut, rewards) => {
        const changes = (await get(`${api}/v1/cuts/${cut}/changes?limit=4096`)).text;
        for (const { block_id, transaction_id, amount } of rewards) {
          const { reward } = await documentAt(`${api}/v1/blocks/${block_id}`);
          assert.deepEqual(
            [(reward as Record<string, unknown>).state, (reward as Record<string, unknown>).amount],
            ['paid', amount],
          );
          assert.ok(changes.includes(String(transaction_id)));
        }
      }),
    'blocks that one cut pays have at least an equal share of half a subsidy each': ({ api }) =>
      withRewards(api, async (cut, rewards) => {
        if (cut - 96 > 34_560) throw new NotChecked('needs a chain in its first interval');
        const share = 781_250_000n / BigInt(rewards.length);
        for (const { amount } of rewards) assert.ok(BigInt(String(amount)) >= share, `${amount} of ${rewards.length}`);
      }),
    '`after_height` replays the cuts above it, then continues live': async ({ api }) => {
      const head = Number((await documentAt(`${api}/v1/node/sync`)).finalized_height);
      const after = Math.max(0, head - 5);
      await withSocket(`${api}/v1/events?after_height=${after}`, [EVENTS], async (socket) => {
        for (let height = after + 1; height <= head + 2; height++)
          assert.equal(heightOf(await socket.until('cut_finalized')), height);
      });
    },
  }),
  ...factsOf('Events: /v1/ws', {
    '`ping` is answered by `pong` under its id': (target) =>
      live(target, async (socket) => {
        for (const id of [7, 'own']) {
          socket.send({ type: 'ping', data: { id } });
          assert.deepEqual(await socket.next(), { type: 'pong', data: { id } });
        }
      }),
    '`request` reads any GET route, `/` and `/health` too': (target) =>
      live(target, async (socket) => {
        for (const path of ['/', '/health', '/v1/chain/rates', '/v1/economics/emission', '/v1/node/identity']) {
          socket.send({ type: 'request', data: { id: path, path } });
          const { type, data } = await socket.next();
          assert.deepEqual([type, data.id, data.status], ['response', path, 200]);
        }
      }),
    'a `response` carries the HTTP status of the read': (target) =>
      live(target, async (socket) => {
        const path = `/v1/blocks/${'0'.repeat(96)}`;
        socket.send({ type: 'request', data: { id: 1, path } });
        assert.equal((await socket.next()).data.status, (await get(`${target.api}${path}`)).status);
      }),
    'a path of a `request` has at most 1 KiB': (target) =>
      live(target, async (socket) => {
        socket.send({ type: 'request', data: { id: 1, path: `/v1/${'a'.repeat(1020)}` } });
        assert.equal((await socket.next()).type, 'response');
        socket.send({ type: 'request', data: { id: 2, path: `/v1/${'a'.repeat(1021)}` } });
        assert.notEqual((await socket.next()).type, 'response');
      }),
    ...Object.fromEntries(
      (
        [
          ['cuts', 'cut_finalized'],
          ['mempool', 'mempool'],
          ['rates', 'rates'],
          ['sync', 'sync'],
          ['blocks', 'block_accepted'],
        ] as const
      ).map(([topic, event]) => [
        `topic \`${topic}\`: \`${event}\``,
        (target: Target) =>
          live(target, async (socket) => {
            const subscription = await subscribed(socket, { topic });
            const note = await socket.until('notification');
            assert.equal(note.data.subscription, subscription);
            assert.equal(eventOf(note).type, event);
          }),
      ]),
    ),
    'topic `cuts`: cut, `registered_blocks`, `executed_blocks`, `rewards`, `stake_rewards`, `finalized_at_millis`': (
      target,
    ) =>
      live(target, async (socket) => {
        await subscribed(socket, { topic: 'cuts' });
        const { data } = eventOf(await socket.until('notification'));
        for (const name of [
          'cut',
          'registered_blocks',
          'executed_blocks',
          'rewards',
          'stake_rewards',
          'finalized_at_millis',
        ])
          assert.ok(name in data, name);
      }),
    'topics `mempool`, `rates` and `sync` carry the documents of their routes': (target) =>
      live(target, async (socket) => {
        for (const [topic, path] of [
          ['mempool', '/v1/mempool'],
          ['rates', '/v1/chain/rates'],
          ['sync', '/v1/node/sync'],
        ] as const) {
          await subscribed(socket, { topic });
          const fields = Object.keys(eventOf(await socket.until('notification')).data).sort();
          assert.deepEqual(fields, Object.keys(await documentAt(`${target.api}${path}`)).sort());
        }
      }),
    'topic `transaction`: `transaction_status`, and topic `addresses` takes up to 64': (target) =>
      live(target, async (socket) => {
        const transaction_id = await someId(target);
        await subscribed(socket, { topic: 'transaction', transaction_id });
        assert.equal(eventOf(await socket.until('notification')).data.transaction_id, transaction_id);
        const address = needs(target.address, '--address');
        await subscribed(socket, { topic: 'addresses', addresses: Array(64).fill(address) });
        socket.send({ type: 'subscribe', data: { id: 2, topic: 'addresses', addresses: Array(65).fill(address) } });
        assert.notEqual((await socket.next()).type, 'subscribed');
      }),
    '`unsubscribe` is answered by `unsubscribed` `{id, subscription}`': (target) =>
      live(target, async (socket) => {
        const subscription = await subscribed(socket, { topic: 'cuts' });
        socket.send({ type: 'unsubscribe', data: { id: 'u', subscription } });
        assert.deepEqual((await socket.until('unsubscribed')).data, { id: 'u', subscription });
      }),
    'a subscription that ended brings nothing more, another of the same topic goes on': (target) =>
      live(target, async (socket) => {
        const [ended, other] = [
          await subscribed(socket, { topic: 'cuts' }),
          await subscribed(socket, { topic: 'cuts' }),
        ];
        assert.notEqual(ended, other);
        socket.send({ type: 'unsubscribe', data: { id: 'u', subscription: ended } });
        await socket.until('unsubscribed');
        for (let i = 0; i < 3; i++) assert.equal((await socket.until('notification')).data.subscription, other);
      }),
    'a `notification` is `{subscription, event: {type, data}}` and nothing else': (target) =>
      live(target, async (socket) => {
        await subscribed(socket, { topic: 'cuts' });
        const { data } = await socket.until('notification');
        assert.deepEqual(Object.keys(data).sort(), ['event', 'subscription']);
        assert.deepEqual(Object.keys(data.event as object).sort(), ['data', 'type']);
      }),
    '`block_accepted` names a block that the node knows, its parents, transactions, reward address and tag': (target) =>
      live(target, async (socket) => {
        await subscribed(socket, { topic: 'blocks' });
        const { data } = eventOf(await socket.until('notification'));
        await documentAt(`${target.api}/v1/blocks/${data.block_id}`);
        for (const name of [/parent/, /transaction/, /address|payout/, /tag/])
          assert.ok(
            Object.keys(data).some((field) => name.test(field)),
            String(name),
          );
      }),
    '`mempool_transactions` is offered or refused, and the connection goes on': (target) =>
      live(target, async (socket) => {
        socket.send({ type: 'subscribe', data: { id: 'm', topic: 'mempool_transactions' } });
        await socket.next();
        socket.send({ type: 'ping', data: { id: 'after' } });
        assert.deepEqual((await socket.until('pong')).data, { id: 'after' });
      }),
    'an unknown topic gives no subscription': (target) =>
      live(target, async (socket) => {
        socket.send({ type: 'subscribe', data: { id: 'w', topic: 'weather' } });
        assert.notEqual((await socket.next()).type, 'subscribed');
      }),
    'a frame of 16 KiB is read, one of more than 64 KiB is not': async (target) => {
      const padded = (length: number) => JSON.stringify({ type: 'ping', data: { id: 'long' } }).padEnd(length);
      await live(target, async (socket) => {
        socket.send(padded(16_384));
        assert.equal((await socket.next()).type, 'pong');
      });
      await live(target, async (socket) => {
        socket.send(padded(65_537));
        const outcome = await Promise.race([socket.closed, socket.next().catch(() => 'closed')]);
        assert.notEqual((outcome as Frame).type, 'pong');
      });
    },
    'a payment on the topic `addresses`: `mempool_tx_seen`, then `mempool_tx_removed` with a reason and `address_changed`':
      (target) =>
        live(target, async (socket) => {
          const address = await newAddress(target);
          await subscribed(socket, { topic: 'addresses', addresses: [address] });
          await send(target, address);
          const seen: string[] = [];
          while (!seen.includes('address_changed') || !seen.includes('mempool_tx_removed')) {
            const event = eventOf(await socket.until('notification'));
            seen.push(event.type);
            if (event.type === 'mempool_tx_removed') assert.equal(event.data.reason, 'finalized');
            if (event.type === 'address_changed') assert.ok(JSON.stringify(event.data).includes('"6250000"'));
          }
          assert.deepEqual(seen.toSorted(), ['address_changed', 'mempool_tx_removed', 'mempool_tx_seen']);
          assert.equal(seen[0], 'mempool_tx_seen');
        }),
    'the states of a payment on the topic `transaction` only go on, to `finalized`': (target) =>
      live(target, async (socket) => {
        const transaction_id = await send(target, await newAddress(target));
        await subscribed(socket, { topic: 'transaction', transaction_id });
        const states: unknown[] = [];
        while (states.at(-1) !== 'finalized') states.push(eventOf(await socket.until('notification')).data.lifecycle);
        goOn(states);
      }),
    '64 subscriptions, not 65': (target) =>
      live(target, async (socket) => {
        for (let i = 0; i < 64; i++) await subscribed(socket, { topic: 'blocks' });
        socket.send({ type: 'subscribe', data: { id: 'over', topic: 'blocks' } });
        for (;;) {
          const frame = await socket.next();
          if (frame.type === 'notification') continue;
          assert.notEqual(frame.type, 'subscribed');
          break;
        }
      }),
  }),
  ...factsOf('Events: status stream', {
    'the states of a payment only go on; the stream ends with the final one': async (target) => {
      const id = await send(target, await newAddress(target));
      await withSocket(`${target.api}/v1/transactions/${id}/status/stream`, [STATUS], async (socket) => {
        const first = await socket.next();
        assert.equal(first.type, 'snapshot');
        const states: unknown[] = [first.data.lifecycle];
        while (states.at(-1) !== 'finalized') states.push((await socket.next()).data.lifecycle);
        goOn(states);
        await socket.closed;
      });
    },
    'a snapshot with the status document; a final one ends the stream': async (target) => {
      const id = await someId(target);
      await until(
        () => documentAt(`${target.api}/v1/transactions/${id}/status`),
        ({ lifecycle }) => lifecycle === 'finalized',
      );
      await withSocket(`${target.api}/v1/transactions/${id}/status/stream`, [STATUS], async (socket) => {
        const first = await socket.next();
        assert.deepEqual([first.type, first.data.transaction_id, first.data.lifecycle], ['snapshot', id, 'finalized']);
        await socket.closed;
      });
    },
  }),
];
