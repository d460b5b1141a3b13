/** Which news wait for a miner: nothing that strangers cause displaces a payment or the news of a worker known for long. */
import { expect, test } from 'vitest';
import { Delivery } from '../../pool/webhooks/delivery.ts';
import { MOST_WAITING, placeOf, ROOM, type WaitingNews } from '../../pool/webhooks/news-queue.ts';
import { seed } from '../level.ts';
import { quietLog } from '../quiet-log.ts';
import { randomOf } from '../random.ts';

type Queue = { waiting: WaitingNews[]; dropped: number; next: bigint };
const emptyQueue = (): Queue => ({ waiting: [], dropped: 0, next: 1n });

function take(queue: Queue, kind: string, data: Record<string, unknown>): void {
  const place = placeOf({ kind, data }, queue.waiting);
  if (place.kind === 'drop' || place.kind === 'displace') queue.dropped++;
  if ('instead' in place) queue.waiting = queue.waiting.filter(({ id }) => id !== place.instead);
  if (place.kind !== 'drop') queue.waiting.push({ id: queue.next++, kind, data });
}

test('a hundred invented workers leave room for payments, blocks and the silence of an old worker', () => {
  const queue = emptyQueue();
  for (let i = 0; i < 300; i++)
    take(queue, 'worker_silent', { worker: `buy-at-example.com-${i}`, service: 'pplns', since_millis: 5_000 + i });
  take(queue, 'worker_silent', { worker: 'rig', service: 'pplns', since_millis: 1_000 });
  take(queue, 'payout_final', { payout_id: 'p' });
  take(queue, 'block_found', { block_id: 'b' });
  expect(queue.waiting.map(({ kind }) => kind)).toEqual(expect.arrayContaining(['payout_final', 'block_found']));
  expect(queue.waiting.filter(({ data }) => data.worker === 'rig')).toHaveLength(1);
  expect(queue.waiting.length).toBe(ROOM.workers + 2);
  expect(queue.dropped).toBe(300 - ROOM.workers + 1);
});

test('of a worker that comes and goes only its newest state waits', () => {
  const queue = emptyQueue();
  for (let i = 0; i < 50; i++)
    for (const kind of ['worker_silent', 'worker_back']) take(queue, kind, { worker: 'rig', service: 'pplns' });
  take(queue, 'worker_silent', { worker: 'rig', service: 'solo' });
  expect(queue.waiting.map(({ kind }) => kind)).toEqual(['worker_back', 'worker_silent']);
  expect(queue.dropped).toBe(0);
});

test('random news: every group keeps to its room, and each news waits, is merged or is counted', () => {
  const draw = randomOf(seed);
  const queue = emptyQueue();
  let merged = 0;
  const total = 3_000;
  for (let i = 0; i < total; i++) {
    const kind = ['worker_silent', 'worker_back', 'block_found', 'payout_sent', 'payout_final'][draw(5)] as string;
    const data = kind.startsWith('worker') ? { worker: `w${draw(60)}`, since_millis: draw(1_000) } : { id: i };
    if (placeOf({ kind, data }, queue.waiting).kind === 'merge') merged++;
    take(queue, kind, data);
    expect(queue.waiting.length).toBeLessThanOrEqual(MOST_WAITING);
  }
  expect(queue.waiting.length + queue.dropped + merged).toBe(total);
});

test('deliveries go on after a round that fails, and end with the round that is under way', async () => {
  let rounds = 0;
  let isEnded = false;
  const begun = Promise.withResolvers<void>();
  const delivery: Delivery = new Delivery({ pollMillis: 1, log: quietLog, waits: 'waits' }, async () => {
    if (++rounds === 1) throw new Error('the database does not answer');
    if (rounds < 4) return rounds === 2;
    begun.resolve();
    await new Promise((resolve) => delivery.signal.addEventListener('abort', resolve));
    isEnded = true;
    return true;
  });
  await begun.promise;
  await delivery.close();
  expect([rounds, isEnded]).toEqual([4, true]);
});
