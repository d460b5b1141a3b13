/** Whoever may subscribe decides how many notifications one payment makes: they are made once, and a client gets no more of them than its allowance. */
import { expect, test, vi } from 'vitest';
import { NODE_LIMITS, PUBLIC_LIMITS } from '../../node/api/api-limits.ts';
import { developmentKey } from '../../node/genesis/development.ts';
import { SOCKETS } from '../../protocol/api/routes.ts';
import { ApiBed, addressOf, type TestFrame, treasury } from '../api/api-bed.ts';

const CONNECTIONS = 2;
const { subscriptions } = NODE_LIMITS.socket;
const BURST = 100;
const alice = addressOf('alice');
/** Not all watch the same of the addresses that a payment concerns. */
const watchedBy = (id: number) => (id % 2 === 0 ? [alice] : [alice, treasury()]);

async function watchers(bed: ApiBed) {
  const all = Array.from({ length: CONNECTIONS }, () => {
    const { ws } = bed.socket(SOCKETS.live.path, SOCKETS.live.subprotocol);
    const frames: TestFrame[] = [];
    ws.on('message', (data: Buffer) => frames.push(JSON.parse(data.toString()) as TestFrame));
    ws.on('open', () => {
      for (let id = 0; id < subscriptions; id++)
        ws.send(JSON.stringify({ type: 'subscribe', data: { id, topic: 'addresses', addresses: watchedBy(id) } }));
    });
    return { ws, frames };
  });
  const count = (type: string) => all.flatMap(({ frames }) => frames).filter((frame) => frame.type === type).length;
  await expect.poll(() => count('subscribed')).toBe(CONNECTIONS * subscriptions);
  const ping = () => {
    for (const { ws } of all) ws.send('{"type":"ping","data":{"id":1}}');
  };
  return { count, ping };
}

test('a payment that many watch is looked up and described once', async () => {
  const bed = await ApiBed.forTest();
  const { count } = await watchers(bed);
  const looks = vi.spyOn(bed.bed.node.chain, 'transactionStatus');
  await bed.pay(0, 'alice', 5n);
  await expect.poll(() => count('notification')).toBe(CONNECTIONS * subscriptions);
  expect(looks.mock.calls.length).toBeLessThanOrEqual(1);
});

test('a client gets as many notifications as its allowance holds over all its connections, and is told what it lost', async () => {
  const notices = { ...PUBLIC_LIMITS.notices, perSecond: 1, burst: BURST };
  const bed = await ApiBed.forTest({ api: { limits: { ...NODE_LIMITS, notices } } });
  const { count, ping } = await watchers(bed);
  await bed.pay(0, 'alice', 5n);
  await expect.poll(() => count('notification')).toBe(BURST);
  ping();
  await expect.poll(() => count('pong')).toBe(CONNECTIONS);
  expect([count('notification'), count('resync_required')]).toEqual([BURST, 0]);
  // What is regained goes to the notices first, so that nobody takes what follows for everything.
  bed.bed.now += BURST * 1_000;
  ping();
  const lost = CONNECTIONS * subscriptions - BURST;
  await expect.poll(() => count('resync_required')).toBe(lost);
  await bed.pay(1, 'alice', 5n);
  await expect.poll(() => count('notification')).toBe(2 * BURST - lost);
});

test('a block has those transactions looked up that it carries, not all that clients watch', async () => {
  const bed = await ApiBed.forTest();
  const id = await bed.pay(0, 'alice', 5n);
  const watched = [id, ...Array.from({ length: subscriptions - 1 }, (_, i) => String(i).padStart(96, '0'))];
  const socket = bed.socket(SOCKETS.live.path, SOCKETS.live.subprotocol);
  await socket.opened();
  for (const transaction_id of watched) socket.send('subscribe', { id: 1, topic: 'transaction', transaction_id });
  socket.send('ping', { id: 2 });
  await socket.until('pong');
  const looks = vi.spyOn(bed.bed.node.chain, 'transactionStatus');
  await bed.bed.mine(developmentKey('miner').address);
  expect(await socket.until('notification')).toMatchObject({
    data: { event: { type: 'transaction_status', data: { lifecycle: 'receiving' } } },
  });
  expect(looks.mock.calls.length).toBe(1);
});

test('a cut has those transactions looked up that it carries or that wait, not all that clients watch', async () => {
  const bed = await ApiBed.forTest();
  const id = await bed.pay(0, 'alice', 5n);
  const final = await bed.pay(1, 'alice', 6n);
  const watched = [id, ...Array.from({ length: subscriptions - 2 }, (_, i) => String(i).padStart(96, '0'))];
  const socket = bed.socket(SOCKETS.live.path, SOCKETS.live.subprotocol);
  await socket.opened();
  for (const transaction_id of watched) socket.send('subscribe', { id: 1, topic: 'transaction', transaction_id });
  socket.send('ping', { id: 2 });
  await socket.until('pong');
  await bed.bed.mine(developmentKey('miner').address);
  const looks = vi.spyOn(bed.bed.node.chain, 'transactionStatus');
  await bed.bed.seal();
  for (let last = ''; last !== 'finalized'; ) {
    const { data } = await socket.until('notification');
    last = (data.event as { data: { lifecycle: string } }).data.lifecycle;
  }
  expect(looks.mock.calls.length).toBeLessThanOrEqual(2);
  looks.mockClear();
  // A final one is not looked up again, and one that is watched after its cut is told at once.
  socket.send('subscribe', { id: 3, topic: 'transaction', transaction_id: final });
  expect(await socket.until('notification')).toMatchObject({ data: { event: { data: { lifecycle: 'finalized' } } } });
  await bed.bed.seal();
  expect(looks.mock.calls.length).toBe(1);
});
