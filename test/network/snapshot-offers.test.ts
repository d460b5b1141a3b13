/** Which of the offered snapshots a new node looks at first, where strangers come to it with as many as they like. */
import { afterEach, expect, test } from 'vitest';
import { encodeOffers } from '../../node/network/snapshots/snapshot-messages.ts';
import { SnapshotOffers } from '../../node/network/snapshots/snapshot-offers.ts';

const idOf = (height: number) => new Uint8Array(48).fill(height % 251);
const HELD: Readonly<Record<string, readonly number[]>> = {
  named: [191],
  chosen: [191, 287],
  stranger: [287, 9_599, 19_199],
  another: [28_799],
};

let offers: SnapshotOffers;
afterEach(() => offers.close());

async function joined(...peers: readonly (readonly [string, 'inbound' | 'outbound'])[]): Promise<void> {
  const changed = Promise.withResolvers<void>();
  let left = peers.length;
  offers = new SnapshotOffers({
    ask: async (peer) => encodeOffers((HELD[peer] ?? []).map((height) => ({ height, cutId: idOf(height) }))),
    blame: () => undefined,
    changed: () => void (--left === 0 && changed.resolve()),
    steady: () => 1_000_000,
  });
  for (const [peer, direction] of peers) offers.joined(peer, { direction, named: peer === 'named' });
  await changed.promise;
}

const heights = () => offers.all().map(({ height }) => height);

test('what peers that the node chose have comes before newer snapshots of those that came to it', async () => {
  await joined(['stranger', 'inbound'], ['another', 'inbound'], ['chosen', 'outbound']);
  expect(heights()).toEqual([287, 191, 28_799, 19_199, 9_599]);
  expect(offers.peers).toEqual(['chosen', 'stranger', 'another']);
  // Without them the others are looked at.
  offers.left('chosen');
  expect(heights()).toEqual([28_799, 19_199, 9_599, 287]);
});

test('what peers that the operator named have comes first', async () => {
  await joined(['stranger', 'inbound'], ['chosen', 'outbound'], ['named', 'outbound']);
  expect(heights()).toEqual([191, 287, 19_199, 9_599]);
  expect(offers.peers).toEqual(['named', 'chosen', 'stranger']);
});

test('a peer that did not deliver one of its snapshots comes last with all of them', async () => {
  await joined(['stranger', 'inbound'], ['chosen', 'outbound'], ['another', 'inbound']);
  offers.failed({ height: 191, cutId: idOf(191) }, ['chosen']);
  expect(heights()).toEqual([287, 28_799, 19_199, 9_599, 191]);
  offers.failed({ height: 9_599, cutId: idOf(9_599) }, ['stranger']);
  expect(heights()).toEqual([28_799, 287, 191, 19_199, 9_599]);
});
