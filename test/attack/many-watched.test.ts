/** Addresses that strangers watch on thousands of connections: what they take of the memory is bounded, and a new client still has room. */
import { expect, test } from 'vitest';
import { PUBLIC_LIMITS } from '../../node/api/api-limits.ts';
import { SOCKETS } from '../../protocol/api/routes.ts';
import { ClientParts } from '../../runtime/clients/client-parts.ts';
import { ApiBed, addressOf } from '../api/api-bed.ts';

const { path, subprotocol } = SOCKETS.live;
const most = PUBLIC_LIMITS.watchedAddresses;
const ONE = PUBLIC_LIMITS.socket.watchedAddresses;

test('sixty-four clients with all their connections watch no more than the bound, and the next one has room', () => {
  const watched = new ClientParts(most);
  const taken = Array.from({ length: 64 }, (_, client) => {
    let own = 0;
    for (let i = 0; i < PUBLIC_LIMITS.connectionsPerClient; i++) if (watched.take(`10.0.${client}.1`, ONE)) own += ONE;
    return own;
  });
  const all = taken.reduce((sum, own) => sum + own, 0);
  expect(all).toBeGreaterThan(most / 2);
  expect(all).toBeLessThanOrEqual(most);
  expect(watched.take('192.0.2.1', 10)).toBe(true);
  watched.giveBack('192.0.2.1', 10);
  for (const [client, own] of taken.entries()) watched.giveBack(`10.0.${client}.1`, own);
  expect(watched.take('192.0.2.1', most / 16)).toBe(true);
  expect(watched.take('192.0.2.1', 1)).toBe(false);
});

test('all clients of a network together have no more than an eighth, and one of them leaves some of it to the others', () => {
  const watched = new ClientParts(most);
  for (let i = 0; i < 300; i++)
    for (const count of [ONE, 64, 8, 1]) while (watched.take(`2001:db8:1:${i.toString(16)}::/64`, count));
  expect(watched.take('192.0.2.1', most / 32)).toBe(true);
  while (watched.take('192.0.2.1', ONE));
  expect(watched.take('192.0.2.2', ONE)).toBe(true);
});

test('a client that watches all that it may is refused more on any connection, and has room again when it stops', async () => {
  const bed = await ApiBed.forTest({ api: { limits: { ...PUBLIC_LIMITS, watchedAddresses: 32 } } });
  const [first, second] = [bed.socket(path, subprotocol), bed.socket(path, subprotocol)];
  await Promise.all([first.opened(), second.opened()]);
  const subscribe = (id: number, name: string) => ({ id, topic: 'addresses', addresses: [addressOf(name)] });
  first.send('subscribe', subscribe(1, 'alice'));
  await first.until('subscribed');
  second.send('subscribe', subscribe(2, 'bob'));
  const { data } = await second.until('subscribed');
  second.send('subscribe', subscribe(3, 'carol'));
  expect(await second.until('error')).toMatchObject({ data: { id: 3, code: 'too_many_addresses' } });
  second.send('unsubscribe', { id: 4, subscription: data.subscription });
  await second.until('unsubscribed');
  second.send('subscribe', subscribe(5, 'carol'));
  await second.until('subscribed');
  first.ws.close();
  await first.closed;
  // The service may notice the close after its client.
  let id = 6;
  for (let answer = 'error'; answer === 'error'; id++) {
    // Frames are counted by the second.
    bed.bed.now += 1_000;
    second.send('subscribe', subscribe(id, 'dave'));
    answer = (await second.next()).type;
  }
});
