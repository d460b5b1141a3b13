/** Endpoints and Events: the node's WebSockets; Limits: sockets. */
import assert from 'node:assert/strict';
import { documentAt, type Frame, get, HEX_96, Socket, until, withSocket } from './client.ts';
import { type Fact, factsOf, needs, type Target } from './fact.ts';

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
    120,
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
