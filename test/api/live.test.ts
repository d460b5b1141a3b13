/** /v1/ws: every topic, requests, and the limits of the table. */
import { expect, test } from 'vitest';
import { NODE_LIMITS, PUBLIC_LIMITS } from '../../node/api/api-limits.ts';
import { developmentKey } from '../../node/genesis/development.ts';
import { ApiError } from '../../protocol/api/client-calls.ts';
import { type LiveMessage, openLiveClient } from '../../protocol/api/client-live.ts';
import { parseFrame } from '../../protocol/api/client-socket.ts';
import { LIVE_EVENTS, type LiveEventType } from '../../protocol/api/frames.ts';
import { SOCKETS } from '../../protocol/api/routes.ts';
import { check } from '../../protocol/api/schema.ts';
import { toHex } from '../../protocol/bytes.ts';
import { apiClientDependencies } from '../../runtime/node-client/api-client.ts';
import { ApiBed, addressOf, type TestSocket, treasury } from './api-bed.ts';

const { path, subprotocol } = SOCKETS.live;

async function live(bed: ApiBed): Promise<TestSocket> {
  const socket = bed.socket(path, subprotocol);
  await socket.opened();
  return socket;
}

type Notification = { subscription: number; event: { type: LiveEventType; data: Record<string, unknown> } };

async function notification(socket: TestSocket): Promise<Notification> {
  const { data } = await socket.until('notification');
  const note = data as unknown as Notification;
  expect(check(LIVE_EVENTS[note.event.type], note.event.data), note.event.type).toBeUndefined();
  return note;
}

async function subscribe(socket: TestSocket, data: Record<string, unknown>): Promise<number> {
  socket.send('subscribe', { id: 'x', ...data });
  const frame = await socket.next();
  expect(frame).toMatchObject({ type: 'subscribed', data: { id: 'x', topic: data.topic } });
  return frame.data.subscription as number;
}

test('cuts, blocks and the state topics', async () => {
  const bed = await ApiBed.forTest();
  const socket = await live(bed);
  for (const topic of ['mempool', 'rates', 'sync']) {
    const number = await subscribe(socket, { topic });
    expect(await notification(socket)).toMatchObject({ subscription: number, event: { type: topic } });
    socket.send('unsubscribe', { id: 7, subscription: number });
    expect(await socket.next()).toEqual({ type: 'unsubscribed', data: { id: 7, subscription: number } });
  }
  const blocks = await subscribe(socket, { topic: 'blocks' });
  const cuts = await subscribe(socket, { topic: 'cuts' });
  const id = await bed.pay(0, 'alice', 5n);
  const block = toHex(await bed.bed.mine(developmentKey('miner').address));
  expect(await notification(socket)).toMatchObject({
    subscription: blocks,
    event: {
      type: 'block_accepted',
      data: { block_id: block, transactions: [id], reward_address: addressOf('miner'), miner_tag: '' },
    },
  });
  await bed.bed.seal();
  expect(await notification(socket)).toMatchObject({
    subscription: cuts,
    event: { type: 'cut_finalized', data: { registered_blocks: 1, executed_blocks: 1, cut: { height: 1 } } },
  });
});

test('addresses: seen, removed, changed', async () => {
  const bed = await ApiBed.forTest();
  const socket = await live(bed);
  const alice = addressOf('alice');
  await subscribe(socket, { topic: 'addresses', addresses: [alice] });
  await subscribe(socket, { topic: 'mempool_transactions' });
  const id = await bed.pay(0, 'alice', 1_234n);
  expect((await notification(socket)).event).toMatchObject({
    type: 'mempool_tx_seen',
    data: { transaction_id: id, payments: [{ address: alice, direction: 'incoming', amount: '1234' }] },
  });
  expect((await notification(socket)).event).toMatchObject({
    type: 'mempool_transaction',
    data: { transaction_id: id },
  });
  await bed.bed.mine(developmentKey('miner').address);
  await bed.bed.seal();
  const events = [await notification(socket), await notification(socket), await notification(socket)];
  const byType = new Map(events.map(({ event }) => [event.type, event.data]));
  expect(byType.get('mempool_tx_removed')).toEqual({ transaction_id: id, addresses: [alice], reason: 'finalized' });
  expect(byType.get('mempool_transaction_removed')).toEqual({ transaction_id: id, reason: 'finalized' });
  expect(byType.get('address_changed')).toMatchObject({
    address: alice,
    balance: '1234',
    utxos: 1,
    spent: [],
    received: [{ kind: 'received', amount: '1234', transaction_id: id }],
  });
});

test('a transaction by its own topic and by its own socket', async () => {
  const bed = await ApiBed.forTest();
  const id = await bed.pay(0, 'alice', 5n);
  const socket = await live(bed);
  await subscribe(socket, { topic: 'transaction', transaction_id: id });
  const stream = bed.socket(SOCKETS.transactionStatus.path.replace('{id}', id), SOCKETS.transactionStatus.subprotocol);
  expect((await notification(socket)).event.data).toMatchObject({ lifecycle: 'processing' });
  expect(await stream.next()).toMatchObject({ type: 'snapshot', data: { lifecycle: 'processing' } });
  await bed.bed.mine(developmentKey('miner').address);
  expect((await notification(socket)).event.data).toMatchObject({ lifecycle: 'receiving' });
  expect(await stream.next()).toMatchObject({ type: 'update', data: { lifecycle: 'receiving' } });
  await bed.bed.seal();
  expect((await notification(socket)).event.data).toMatchObject({ lifecycle: 'finalized' });
  expect(await stream.next()).toMatchObject({ type: 'update', data: { lifecycle: 'finalized' } });
  expect((await stream.closed).code).toBe(1000);
  const late = bed.socket(SOCKETS.transactionStatus.path.replace('{id}', id), SOCKETS.transactionStatus.subprotocol);
  expect(await late.next()).toMatchObject({ type: 'snapshot', data: { lifecycle: 'finalized' } });
  expect((await late.closed).code).toBe(1000);
  const unknown = bed.socket(
    SOCKETS.transactionStatus.path.replace('{id}', '0'.repeat(96)),
    SOCKETS.transactionStatus.subprotocol,
  );
  expect((await unknown.refused).status).toBe(404);
});

test('requests answer as HTTP does, errors too', async () => {
  const bed = await ApiBed.forTest();
  const socket = await live(bed);
  socket.send('request', { id: 1, path: '/v1/chain/head' });
  expect(await socket.next()).toMatchObject({
    type: 'response',
    data: { id: 1, status: 200, body: { finalized_height: 0 } },
  });
  socket.send('request', { id: 'list', path: '/' });
  const { data: list } = await socket.next();
  expect(list).toMatchObject({ id: 'list', status: 200 });
  expect(list.body).toEqual(await (await bed.get('/')).json());
  socket.send('request', { id: 'well', path: '/health' });
  expect(await socket.next()).toEqual({ type: 'response', data: { id: 'well', status: 200, body: 'ok' } });
  socket.send('request', { id: 'two', path: '/v1/nothing' });
  expect(await socket.next()).toMatchObject({
    type: 'response',
    data: { id: 'two', status: 404, body: { error: { code: 'route_unknown' } } },
  });
  socket.send('request', { id: 3, path: '/v1/address/balances' });
  expect(await socket.next()).toMatchObject({ type: 'response', data: { id: 3, status: 405 } });
  socket.send('ping', { id: 4 });
  expect(await socket.next()).toEqual({ type: 'pong', data: { id: 4 } });
});

test.each<[string, string, string]>([
  ['not JSON', '{', 'frame_malformed'],
  ['an array', '[]', 'frame_malformed'],
  ['null', 'null', 'frame_malformed'],
  ['unknown type', '{"type":"toString","data":{"id":1}}', 'frame_type_unknown'],
  ['an extra field', '{"type":"ping","data":{"id":1},"x":1}', 'frame_malformed'],
  ['an extra field in data', '{"type":"ping","data":{"id":1,"x":1}}', 'frame_malformed'],
  ['no id', '{"type":"ping","data":{}}', 'frame_malformed'],
  ['unknown topic', '{"type":"subscribe","data":{"id":1,"topic":"weather"}}', 'topic_unknown'],
  [
    'addresses where none belong',
    '{"type":"subscribe","data":{"id":1,"topic":"cuts","addresses":["a"]}}',
    'frame_malformed',
  ],
  ['no addresses', '{"type":"subscribe","data":{"id":1,"topic":"addresses"}}', 'frame_malformed'],
  ['no transaction', '{"type":"subscribe","data":{"id":1,"topic":"transaction"}}', 'frame_malformed'],
  ['a bad address', '{"type":"subscribe","data":{"id":1,"topic":"addresses","addresses":["dsvc1x"]}}', 'bad_address'],
  ['unknown subscription', '{"type":"unsubscribe","data":{"id":1,"subscription":9}}', 'subscription_unknown'],
  ['a long path', `{"type":"request","data":{"id":1,"path":"/v1/${'a'.repeat(1024)}"}}`, 'frame_malformed'],
  ['another path', '{"type":"request","data":{"id":1,"path":"http://elsewhere/"}}', 'path_refused'],
  ['deep nesting', `{"type":"ping","data":${'['.repeat(20_000)}${']'.repeat(20_000)}}`, 'frame_malformed'],
])('%s is an error frame and the connection stays', async (_, text, code) => {
  const bed = await ApiBed.forTest();
  const socket = await live(bed);
  socket.ws.send(text);
  expect(await socket.next()).toMatchObject({ type: 'error', data: { code } });
  socket.send('ping', { id: 4 });
  expect((await socket.next()).type).toBe('pong');
});

test('a binary frame ends the connection', async () => {
  const bed = await ApiBed.forTest();
  const socket = await live(bed);
  socket.ws.send(Buffer.from('{"type":"ping","data":{"id":1}}'));
  expect((await socket.closed).code).toBe(1003);
});

test.each([
  ['node', NODE_LIMITS],
  ['public', PUBLIC_LIMITS],
] as const)('limits of the %s column', async (name, limits) => {
  const bed = await ApiBed.forTest({ api: { public: name === 'public' } });
  const { socket: table } = limits;
  const large = await live(bed);
  large.ws.send('x'.repeat(table.frameBytes));
  expect((await large.next()).data.code).toBe('frame_malformed');
  large.ws.send('x'.repeat(table.frameBytes + 1));
  expect((await large.closed).code).toBe(1009);

  const socket = await live(bed);
  const flood = table.framesPerSecond + 5;
  for (let i = 0; i < flood; i++) socket.send('ping', { id: i });
  const answers: string[] = [];
  for (let i = 0; i < flood; i++) answers.push((await socket.next()).type);
  expect(answers.filter((type) => type === 'pong')).toHaveLength(table.framesPerSecond);
  expect(answers.filter((type) => type === 'error')).toHaveLength(5);

  const many = await live(bed);
  const patiently = async (type: string, data: Record<string, unknown>) => {
    bed.bed.now += 1_000;
    many.send(type, { id: 1, ...data });
    return await many.next();
  };
  const watched = Array.from({ length: 64 }, (_, i) => addressOf(`watched ${i}`));
  for (let i = 0; i < table.watchedAddresses / 64; i++)
    expect((await patiently('subscribe', { topic: 'addresses', addresses: watched })).type).toBe('subscribed');
  expect(await patiently('subscribe', { topic: 'addresses', addresses: [treasury()] })).toMatchObject({
    data: { code: 'too_many_addresses' },
  });
  for (let i = table.watchedAddresses / 64; i < table.subscriptions; i++)
    expect((await patiently('subscribe', { topic: 'cuts' })).type).toBe('subscribed');
  expect(await patiently('subscribe', { topic: 'cuts' })).toMatchObject({ data: { code: 'too_many_subscriptions' } });

  const asking = await live(bed);
  for (let i = 0; i <= table.requestsInFlight; i++)
    asking.send('request', { id: i, path: `/v1/address/${treasury()}/history` });
  const kinds = [];
  for (let i = 0; i <= table.requestsInFlight; i++) kinds.push(await asking.next());
  expect(kinds.filter(({ type }) => type === 'response')).toHaveLength(table.requestsInFlight);
  expect(kinds.find(({ type }) => type === 'error')).toMatchObject({ data: { code: 'too_many_in_flight' } });

  const topic = await live(bed);
  topic.send('subscribe', { id: 1, topic: 'mempool_transactions' });
  expect((await topic.next()).type).toBe(limits.everyMempoolTransaction ? 'subscribed' : 'error');
});

test('an answer over the limit is refused as such', async () => {
  const small = { ...NODE_LIMITS, socket: { ...NODE_LIMITS.socket, answerBytes: 100 } };
  const bed = await ApiBed.forTest({ api: { limits: small } });
  const socket = await live(bed);
  socket.send('request', { id: 1, path: '/v1/economics/supply' });
  expect(await socket.next()).toMatchObject({ type: 'error', data: { id: 1, code: 'answer_too_large' } });
});

test('a slow reader loses notifications, gets a notice, and goes on', async () => {
  const bed = await ApiBed.forTest();
  const socket = await live(bed);
  const subscription = await subscribe(socket, { topic: 'rates' });
  await notification(socket);
  const tcp = (socket.ws as unknown as { _socket: { pause(): void; resume(): void } })._socket;
  tcp.pause();
  const other = await live(bed);
  await subscribe(other, { topic: 'cuts' });
  // Answers to its own requests fill its buffers; what is announced meanwhile has no room.
  for (let round = 0; round < 400; round++) {
    bed.bed.now += 1_000;
    for (let i = 0; i < 8; i++) socket.send('request', { id: i, path: `/v1/address/${treasury()}/utxos?limit=512` });
    await new Promise((resolve) => setImmediate(resolve));
  }
  await bed.bed.seal(3);
  for (let i = 0; i < 3; i++) expect((await notification(other)).event.type).toBe('cut_finalized');
  tcp.resume();
  expect(await socket.until('resync_required')).toEqual({
    type: 'resync_required',
    data: { subscription, reason: 'stream_lagged' },
  });
  await bed.bed.seal();
  expect((await notification(socket)).subscription).toBe(subscription);
});

test('subscriptions outlive a restart of the node behind the API', async () => {
  const bed = await ApiBed.forTest();
  const socket = await live(bed);
  const subscription = await subscribe(socket, { topic: 'cuts' });
  bed.api.serve(undefined);
  await bed.bed.reopen();
  bed.api.serve(bed.bed.node);
  expect(await socket.next()).toEqual({ type: 'resync_required', data: { subscription, reason: 'stream_restarted' } });
  await bed.bed.seal();
  expect((await notification(socket)).event.type).toBe('cut_finalized');
});

test('the live client hears no event that is none, and goes on after it', async () => {
  const listeners = new Map<string, (event: { data?: unknown }) => void>();
  const say = (type: string, data: object) => listeners.get('message')?.({ data: JSON.stringify({ type, data }) });
  class Socket {
    addEventListener(type: string, listener: (event: { data?: unknown }) => void): void {
      listeners.set(type, listener);
    }
    send(text: string): void {
      const { type, data } = JSON.parse(text);
      say(type === 'ping' ? 'pong' : 'subscribed', { ...data, subscription: 1 });
    }
    close(): void {
      listeners.get('close')?.({});
    }
  }
  const client = openLiveClient({ baseUrl: 'http://node' }, { ...apiClientDependencies(), WebSocket: Socket });
  const heard: LiveMessage[] = [];
  const subscribed = client.subscribe({ topic: 'sync' }, (message) => heard.push(message));
  listeners.get('open')?.({});
  await subscribed;
  const sync = { api_version: 1, synced: true, finalized_height: 7, best_peer_height: null, behind_by: 0, peers: 0 };
  for (const event of [
    undefined,
    null,
    5,
    [],
    {},
    { type: null, data: {} },
    { type: { toString: 1 }, data: {} },
    { type: 'weather', data: {} },
    { type: 'toString', data: {} },
    { type: 'sync' },
    { type: 'sync', data: null },
    { type: 'sync', data: { ...sync, finalized_height: '7' } },
  ])
    say('notification', { subscription: 1, event });
  await client.ping();
  expect(heard).toEqual([]);
  say('notification', { subscription: 1, event: { type: 'sync', data: { ...sync, newer: 1 } } });
  expect(heard).toMatchObject([{ type: 'sync', data: { finalized_height: 7 } }]);
});

test('the live client subscribes again after a lost connection and says so', async () => {
  const bed = await ApiBed.forTest();
  const dependencies = {
    ...apiClientDependencies(),
    sleep: () => new Promise<void>((resolve) => setTimeout(resolve, 20)),
  };
  const client = openLiveClient({ baseUrl: bed.base }, dependencies);
  const heard: LiveMessage[] = [];
  const wait = async (type: string): Promise<LiveMessage> => {
    for (;;) {
      const at = heard.findIndex((message) => message.type === type);
      if (at >= 0) return heard.splice(at, 1)[0] as LiveMessage;
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  };
  const stop = await client.subscribe({ topic: 'cuts' }, (message) => heard.push(message));
  await bed.bed.seal();
  expect(await wait('cut_finalized')).toMatchObject({ data: { cut: { height: 1 } } });
  expect((await client.request('/v1/node/sync')).status).toBe(200);
  await client.ping();
  await bed.restart();
  expect(await wait('resync_required')).toMatchObject({ data: { reason: 'reconnected' } });
  await bed.bed.seal();
  expect(await wait('cut_finalized')).toMatchObject({ data: { cut: { height: 2 } } });
  stop();
  await client.ping();
  await expect(client.subscribe({ topic: 'transaction', transaction_id: 'no' }, () => undefined)).rejects.toMatchObject(
    {
      code: 'frame_malformed',
    },
  );
  client.close();
  await expect(client.ping()).rejects.toMatchObject({ code: 'client_closed' });
});

test.each([
  'null',
  '5',
  '"x"',
  '[]',
  '{}',
  '{',
  '{"type":"pong"}',
  '{"type":5,"data":{}}',
  '{"type":"pong","data":null}',
  new Uint8Array(3),
])('what is no frame, as %j, is a bad answer of the server and no error of the program', (data) =>
  expect(() => parseFrame(data)).toThrow(ApiError),
);

test('a frame has a type and data', () => {
  expect(parseFrame('{"type":"pong","data":{"id":1}}')).toEqual({ type: 'pong', data: { id: 1 } });
});
