/** A wallet restored from an older copy of its state, and a node that was rolled back: nothing is paid twice, and nothing that is gone is called final. */
import { cpSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { formatAddress } from '../../../protocol/address.ts';
import { type Checkpoint, withCheckpoint } from '../../../wallet/state/checkpoints.ts';
import { WalletStore } from '../../../wallet/state/store.ts';
import { temporaryDirectory } from '../../temporary.ts';
import { FakeNode } from '../fake-node.ts';
import { fundedWallet, openTestWallet, type TestWallet } from '../open-wallet.ts';

const COIN = 100_000_000n;
const stranger = formatAddress(new Uint8Array(49).fill(4, 1), 'development');
const order = { to: stranger, amount: '1', request_id: 'used' };

/** Closes a wallet and copies its state; `reopen` goes on with the state itself, `restore` with the copy. */
async function copied({ wallet, directory }: TestWallet, node: FakeNode) {
  await wallet.close();
  const copy = temporaryDirectory();
  cpSync(join(directory, 'store'), join(copy, 'store'), { recursive: true });
  return {
    reopen: () => openTestWallet(node, { directory }),
    restore: () => openTestWallet(node, { directory: copy }),
  };
}

async function expectStopped(restored: TestWallet, table: unknown): Promise<void> {
  expect(await restored.call('status')).toMatchObject({ payments_stopped: 'unknown_spend' });
  expect((await restored.call('status')).request_table).not.toBe(table);
  for (const request_id of ['used', 'new'])
    expect(await restored.refusal('send', { ...order, request_id })).toMatchObject({
      code: -32000,
      word: 'payments_stopped',
      message: expect.stringMatching(/restored from an older copy/),
    });
  expect(await restored.refusal('compound', {})).toMatchObject({ word: 'payments_stopped' });
}

test('an older copy does not pay a used request id again, whatever it is asked and when', async () => {
  const node = new FakeNode();
  const first = await fundedWallet(node, [5n * COIN, 3n * COIN]);
  const { reopen, restore } = await copied(first, node);
  const original = await reopen();
  await original.turn();
  const { request_table: table } = await original.call('status');
  await original.call('send', order);
  await original.wallet.close();

  const restored = await restore();
  expect((await restored.call('status')).request_table).toBe(table);
  expect(await restored.refusal('send', order)).toMatchObject({ code: -32001 });
  // The payment is under way: the wallet waits for its fate.
  await restored.turn();
  expect(await restored.refusal('send', order)).toMatchObject({ code: -32001, word: 'spend_not_on_record' });
  node.seal();
  await restored.turn();
  await expectStopped(restored, table);
  expect(node.mempool.size).toBe(0);
  expect(node.balanceOf(stranger)).toBe(COIN);

  expect(await restored.call('rescan')).toMatchObject({ rescanning: true });
  await expect.poll(() => restored.wallet.follower.rescanning).toBe(false);
  await restored.turn();
  expect(await restored.call('status')).toMatchObject({ payments_stopped: null, caught_up: true });
  // The table is another one, so a caller knows that it must compare; the history holds the payment.
  expect((await restored.call('status')).request_table).not.toBe(table);
  expect((await restored.call('history')).entries).toMatchObject([
    { kind: 'sent', recipients: [{ to: stranger, amount: '1.00000000' }], request_id: null },
    {},
    {},
  ]);
  expect(await restored.call('send', { ...order, request_id: 'new' })).toMatchObject({ duplicate: false });
});

test('what the copy has missed is read before anything is paid, also when it is a cut or two', async () => {
  const node = new FakeNode();
  const first = await fundedWallet(node, [5n * COIN, 3n * COIN]);
  const { reopen, restore } = await copied(first, node);
  const original = await reopen();
  await original.turn();
  const { request_table: table } = await original.call('status');
  await original.call('send', order);
  node.seal();
  await original.wallet.close();
  const restored = await restore();
  const asked = restored.refusal('send', order);
  await restored.turn();
  expect(await asked).toMatchObject({ code: -32001 });
  await expectStopped(restored, table);
  // The stop survives a restart.
  await restored.wallet.close();
  const again = await openTestWallet(node, { directory: restored.directory });
  await again.turn();
  await expectStopped(again, table);
});

test('the past of restored words stops nothing', async () => {
  const node = new FakeNode();
  const first = await fundedWallet(node, [5n * COIN, 3n * COIN]);
  await first.call('send', order);
  node.seal();
  await first.turn();
  const second = await openTestWallet(node);
  await second.turn();
  expect(await second.call('status')).toMatchObject({ payments_stopped: null, caught_up: true });
  await second.call('send', { ...order, request_id: 'other' });
  node.seal();
  await first.turn();
  expect(await first.call('status')).toMatchObject({ payments_stopped: 'unknown_spend' });
});

test('a node that was rolled back is noticed, and what it no longer holds is final no more', async () => {
  const node = new FakeNode();
  const shop = await fundedWallet(node, [5n * COIN, 3n * COIN], { validityCuts: 20 });
  const { request_table: table } = await shop.call('status');
  node.skip(3);
  const sent = await shop.call('send', order);
  const height = node.seal();
  await shop.turn();
  expect(await shop.call('send', order)).toMatchObject({ state: 'finalized' });
  node.skip(3);
  await shop.turn();

  node.rollBack(height - 2);
  await shop.turn();
  const status = { caught_up: false, node_reachable: false };
  expect(await shop.call('status')).toMatchObject({ ...status, node_trouble: 'node_behind_wallet' });
  expect(await shop.call('send', order)).toMatchObject({ duplicate: true, state: 'pending' });
  expect(await shop.call('transaction', { transaction: sent.transaction })).toMatchObject({
    finalized_height: null,
    confirmations: 0,
    outgoing: { state: 'submitted', final_height: null },
  });
  expect(await shop.refusal('send', { ...order, request_id: 'new' })).toMatchObject({ code: -32001 });

  node.skip(9);
  await shop.turn();
  expect(await shop.call('status')).toMatchObject({
    ...status,
    node_trouble: 'chain_rolled_back',
    payments_stopped: 'chain_rolled_back',
  });
  expect((await shop.call('status')).request_table).not.toBe(table);
  expect(await shop.call('send', order)).toMatchObject({ duplicate: true, state: 'pending' });
  expect(await shop.refusal('send', { ...order, request_id: 'new' })).toMatchObject({ word: 'payments_stopped' });

  await shop.call('rescan');
  await expect.poll(() => shop.wallet.follower.rescanning).toBe(false);
  await shop.turn();
  expect(await shop.call('status')).toMatchObject({ caught_up: true, payments_stopped: null });
  // Its money is back and stays reserved: somebody who kept the bytes can still submit the payment.
  expect(await shop.call('send', order)).toMatchObject({ duplicate: true, state: 'pending' });
  expect(await shop.call('balance')).toMatchObject({ balance: '8.00000000', reserved: '3.00000000' });
  await shop.wallet.close();
  const again = await openTestWallet(node, { directory: shop.directory });
  node.skip(20);
  await again.turn();
  expect(await again.call('send', order)).toMatchObject({ duplicate: true, state: 'void', reason: 'expired' });
  expect(await again.call('balance')).toMatchObject({ balance: '8.00000000', reserved: '0.00000000' });
  expect(await again.call('send', { ...order, request_id: 'new' })).toMatchObject({ duplicate: false });
});

test('a payment that had expired can be executed by the other chain: until it has expired there it is pending, and final if somebody had kept its bytes', async () => {
  const node = new FakeNode();
  const shop = await fundedWallet(node, [5n * COIN, 3n * COIN], { validityCuts: 20 });
  node.skip(3);
  const sent = await shop.call('send', { ...order, amount: '4' });
  const [name, bytes] = [...node.mempool][0] as [string, never];
  const height = node.height;
  node.mempool.clear();
  node.fault = 'busy';
  node.skip(25);
  await shop.turn();
  expect(await shop.call('send', order)).toMatchObject({ duplicate: true, state: 'void', reason: 'expired' });
  node.fault = 'none';
  // Paid again, with the same output.
  await shop.call('send', { ...order, amount: '4', request_id: 'again' });
  node.seal();
  await shop.turn();
  expect(await shop.call('send', { ...order, request_id: 'again' })).toMatchObject({ state: 'finalized' });

  node.rollBack(height);
  node.skip(4);
  await shop.call('rescan');
  await expect.poll(() => shop.wallet.follower.rescanning).toBe(false);
  await shop.turn();
  expect(await shop.call('send', order)).toMatchObject({ duplicate: true, state: 'pending' });
  expect(await shop.call('balance')).toMatchObject({ balance: '8.00000000', reserved: '5.00000000' });
  await shop.wallet.close();
  const again = await openTestWallet(node, { directory: shop.directory });
  await again.turn();
  expect(await again.call('balance')).toMatchObject({ balance: '8.00000000', reserved: '5.00000000' });

  node.mempool.set(name, bytes);
  node.seal();
  await again.turn();
  expect(await again.call('transaction', { transaction: sent.transaction })).toMatchObject({
    outgoing: { state: 'finalized' },
  });
  expect(await again.call('send', order)).toMatchObject({ duplicate: true, state: 'finalized' });
  expect(await again.call('send', { ...order, request_id: 'again' })).toMatchObject({
    state: 'void',
    reason: 'conflict',
  });
});

test('a payment that another spend displaced stays void when the same chain is read again', async () => {
  const node = new FakeNode();
  const shop = await fundedWallet(node, [5n * COIN]);
  await shop.call('send', order);
  node.mempool.clear();
  node.steal([...shop.wallet.book.outputs.keys()][0] as string);
  await shop.turn();
  expect(await shop.call('send', order)).toMatchObject({ state: 'void', reason: 'conflict' });
  await shop.call('rescan');
  await expect.poll(() => shop.wallet.follower.rescanning).toBe(false);
  expect(await shop.call('send', order)).toMatchObject({ state: 'void', reason: 'conflict' });
});

test('a payment that the other chain holds as well is final there', async () => {
  const node = new FakeNode();
  const shop = await fundedWallet(node, [5n * COIN]);
  await shop.call('send', order);
  const [name, transaction] = [...node.mempool][0] as [string, never];
  const height = node.seal();
  await shop.turn();
  node.rollBack(height - 1);
  node.skip(2);
  node.mempool.set(name, transaction);
  node.seal();
  await shop.turn();
  expect(await shop.call('send', order)).toMatchObject({ state: 'pending' });
  await shop.call('rescan');
  await expect.poll(() => shop.wallet.follower.rescanning).toBe(false);
  expect(await shop.call('send', order)).toMatchObject({ duplicate: true, state: 'finalized' });
  expect(await shop.call('transaction', { transaction: name })).toMatchObject({ finalized_height: node.height });
});

test('a node that is a little behind stops payments until it has caught up, and nothing more', async () => {
  const node = new FakeNode();
  const shop = await fundedWallet(node, [5n * COIN]);
  const { request_table: table } = await shop.call('status');
  node.skip(2);
  await shop.turn();
  node.height -= 1;
  await shop.turn();
  expect(await shop.call('status')).toMatchObject({ caught_up: false, node_trouble: 'node_behind_wallet' });
  node.height += 1;
  await shop.turn();
  expect(await shop.call('status')).toMatchObject({ caught_up: true, request_table: table, payments_stopped: null });
});

test('a crash while the old chain is forgotten leaves nothing of it', async () => {
  const node = new FakeNode();
  const shop = await fundedWallet(node, [5n * COIN, 7n * COIN]);
  await shop.wallet.close();
  const path = join(shop.directory, 'store');
  const store = await WalletStore.open(path);
  const meta = await store.meta();
  if (meta === undefined) throw new Error('no state');
  await store.write([{ meta: { ...meta, indexedHeight: 0, checkpoints: [], rescan: 'forgetting' } }], true);
  await store.close();
  node.rollBack(1);
  node.skip(3);
  const again = await openTestWallet(node, { directory: shop.directory });
  expect(again.wallet.follower.rescanning).toBe(true);
  await again.turn();
  expect(await again.call('balance')).toMatchObject({ balance: '0.00000000', outputs: 0 });
});

test('checkpoints stay few, and some stand near every depth', () => {
  let kept: readonly Checkpoint[] = [];
  for (let height = 1; height <= 70_000; height++) kept = withCheckpoint(kept, { height, cutId: `cut ${height}` });
  expect(kept.length).toBeLessThanOrEqual(34);
  const depths = kept.map(({ height }) => 70_000 - height);
  for (let depth = 1; depth < 2 ** 15; depth *= 2)
    expect(depths.some((kept) => kept >= depth && kept < 4 * depth)).toBe(true);
});
