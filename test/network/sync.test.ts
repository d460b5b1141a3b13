import { afterEach, beforeEach, expect, test } from 'vitest';
import { headOf, NetBed, until } from './peers.ts';

let bed: NetBed;
beforeEach(() => {
  bed = new NetBed({ intervalCuts: 120 });
});
afterEach(() => bed.close());

test('a new node syncs the chain with its blocks from one peer, and follows it from then on', {
  timeout: 60_000,
}, async () => {
  const source = await bed.start('source', {});
  await bed.seal(source, 250, 1);
  const fresh = await bed.start('fresh', { bootstrap: [source.view.addresses[0] as string], follows: true });
  expect(fresh.node.chain.sync()).toMatchObject({ synced: false });
  await until(() => fresh.node.chain.head().height === 250);
  expect(headOf(fresh)).toBe(headOf(source));
  await until(() => fresh.node.chain.sync().synced);
  expect(fresh.node.chain.sync()).toMatchObject({ height: 250, peers: { bestPeerHeight: 250, behindBy: 0, peers: 1 } });
  for (let i = 0; i < 5; i++) {
    await bed.seal(source, 1, 2);
    await until(() => fresh.node.chain.head().height === 251 + i);
  }
  expect(headOf(fresh)).toBe(headOf(source));
});
