/** Payments that are open again because the chain was rolled back: which outputs they hold, and for how long. */
import { expect, test } from 'vitest';
import { formatAddress } from '../../../protocol/address.ts';
import { type OutgoingRecord, outputKey } from '../../../wallet/state/records.ts';
import { FakeNode } from '../fake-node.ts';
import { fundedWallet, IMPATIENT, openTestWallet, type TestWallet } from '../open-wallet.ts';

const COIN = 100_000_000n;
const stranger = formatAddress(new Uint8Array(49).fill(4, 1), 'development');
const order = { to: stranger, amount: '1', request_id: 'used' };

async function rescan(shop: TestWallet): Promise<void> {
  await shop.call('rescan');
  await expect.poll(() => shop.wallet.follower.rescanning).toBe(false);
  await shop.turn();
}

/** A payment that needs two merges, the second of which somebody else's spend displaces: it fails, and the other merge is made. */
async function lostMerge(node: FakeNode, shop: TestWallet, requestId: string) {
  await shop.refusal('send', { to: stranger, amount: '15.5', request_id: requestId, compound_first: true });
  const [made, lost] = [...shop.wallet.book.open.values()] as [OutgoingRecord, OutgoingRecord];
  const bytes = node.mempool.get(made.transaction);
  node.mempool.delete(lost.transaction);
  node.steal(lost.inputs[0] as string);
  node.seal();
  await shop.turn();
  await rescan(shop);
  expect(await shop.refusal('send', { ...order, request_id: requestId })).toMatchObject({ word: 'merge_lost' });
  return { merge: made, bytes };
}

test('an output that the other chain makes later is free when the payment that spent it has expired', async () => {
  const node = new FakeNode();
  const shop = await fundedWallet(node, [5n * COIN], { validityCuts: 10 });
  const funded = node.height;
  const [key] = [...shop.wallet.book.outputs.keys()] as [string];
  await shop.call('send', order);
  node.seal();
  await shop.turn();
  const received = node.cuts[funded]?.changes ?? [];
  const output = { address: received[0]?.address ?? '', amount: 5n * COIN, source: 'work_reward' as const, height: 1 };

  node.rollBack(funded - 1);
  node.skip(3);
  await rescan(shop);
  expect(await shop.call('send', order)).toMatchObject({ state: 'pending' });
  node.skip(12);
  await shop.turn();
  expect(await shop.call('send', order)).toMatchObject({ state: 'void', reason: 'expired' });
  const height = node.seal();
  node.outputs.set(key, output);
  node.cuts[height]?.changes.push(...received.map((change) => ({ ...change, finalized_height: height })));
  await shop.turn();
  expect(await shop.call('balance')).toMatchObject({ balance: '5.00000000', reserved: '0.00000000' });
  expect(await shop.call('send', { ...order, request_id: 'new' })).toMatchObject({ duplicate: false });
});

test('a merge of a failed request and the payment that spent its output are open again together, also after a restart', async () => {
  const node = new FakeNode();
  const shop = await fundedWallet(
    node,
    Array.from({ length: 16 }, () => COIN),
    { ...IMPATIENT, validityCuts: 30 },
  );
  const height = node.height;
  const { merge, bytes } = await lostMerge(node, shop, 'merging');
  // The merged output is the largest.
  await shop.call('send', { ...order, amount: '7' });
  const [payment] = [...shop.wallet.book.open.values()] as [OutgoingRecord];
  expect(payment.inputs).toEqual([outputKey(merge.transaction, 0)]);
  node.seal();
  await shop.turn();
  expect(await shop.call('send', order)).toMatchObject({ state: 'finalized' });

  node.rollBack(height);
  node.skip(4);
  await rescan(shop);
  expect(await shop.call('balance')).toMatchObject({ balance: '16.00000000', reserved: '10.00000000' });
  await shop.wallet.close();
  const again = await openTestWallet(node, { directory: shop.directory });
  await again.turn();
  expect(await again.call('send', order)).toMatchObject({ state: 'pending' });
  expect(await again.call('balance')).toMatchObject({ balance: '16.00000000', reserved: '10.00000000' });
  // Somebody had kept the bytes of the merge.
  node.mempool.set(merge.transaction, bytes as never);
  node.seal();
  await again.turn();
  expect(await again.call('balance')).toMatchObject({ reserved: expect.stringMatching(/^9\.99/) });
  node.skip(30);
  await again.turn();
  expect(await again.call('send', order)).toMatchObject({ state: 'void', reason: 'expired' });
  expect(await again.call('balance')).toMatchObject({
    balance: expect.stringMatching(/^15\.99/),
    reserved: '0.00000000',
  });
});

test('while the other chain is read, no payment of the chain before is final or void, also after a restart', async () => {
  const node = new FakeNode();
  const shop = await fundedWallet(node, [5n * COIN, 3n * COIN], { validityCuts: 20 });
  const height = node.height;
  await shop.call('send', order);
  node.seal();
  await shop.turn();
  expect(await shop.call('send', order)).toMatchObject({ state: 'finalized' });
  node.rollBack(height);
  node.skip(16);
  await shop.turn();
  expect(await shop.call('send', order)).toMatchObject({ state: 'pending' });
  node.indexLag = 12;
  shop.call('rescan');
  await shop.turn();
  expect(shop.wallet.follower.rescanning).toBe(true);
  expect(await shop.call('send', order)).toMatchObject({ state: 'pending' });
  await shop.wallet.close();
  const again = await openTestWallet(node, { directory: shop.directory });
  expect(await again.call('send', order)).toMatchObject({ state: 'pending' });
  await again.turn();
  expect(again.wallet.follower.rescanning).toBe(true);
  expect(await again.call('send', order)).toMatchObject({ state: 'pending' });
  node.indexLag = 0;
  await again.turn();
  expect(again.wallet.follower.rescanning).toBe(false);
  expect(await again.call('send', order)).toMatchObject({ state: 'pending' });
  node.skip(20);
  await again.turn();
  expect(await again.call('send', order)).toMatchObject({ state: 'void', reason: 'expired' });
});
