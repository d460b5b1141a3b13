/** The book is ahead of the disk until a step is written: what cannot be written is neither sent nor answered for. */
import { expect, test } from 'vitest';
import { formatAddress } from '../../../protocol/address.ts';
import { FakeNode } from '../fake-node.ts';
import { fundedWallet, openTestWallet } from '../open-wallet.ts';

const COIN = 100_000_000n;
const stranger = formatAddress(new Uint8Array(49).fill(4, 1), 'development');
const order = { to: stranger, amount: '1', request_id: 'unwritten' };

test('a payment that could not be written is not sent by a later turn, and its request is not answered from memory', async () => {
  const node = new FakeNode();
  const faults: Error[] = [];
  const { wallet, directory, refusal, turn } = await fundedWallet(node, [5n * COIN, 3n * COIN], {
    fault: (error) => void faults.push(error),
  });
  const { write } = wallet.store;
  wallet.store.write = () => Promise.reject(new Error('no space left on device'));
  expect(await refusal('send', order)).toMatchObject({ code: -32003, word: 'state_unwritable' });
  expect(faults).toHaveLength(1);
  // The program takes a while to end: until then its loop and its listener go on.
  for (let i = 0; i < 3; i++) await turn().catch(() => undefined);
  expect(await refusal('send', order)).toMatchObject({ code: -32003, word: 'state_unwritable' });
  expect([node.submissions, node.mempool.size]).toEqual([0, 0]);
  wallet.store.write = write;
  await wallet.close();

  const next = await openTestWallet(node, { directory });
  await next.turn();
  expect(await next.call('send', order)).toMatchObject({ duplicate: false });
  node.seal();
  await next.turn();
  expect(node.balanceOf(stranger)).toBe(COIN);
  expect(await next.call('status')).toMatchObject({ payments_stopped: null });
});

test('a turn sends nothing whose write is still under way', async () => {
  const node = new FakeNode();
  const { wallet, call, turn } = await fundedWallet(node, [5n * COIN]);
  const { write } = wallet.store;
  const disk = Promise.withResolvers<void>();
  wallet.store.write = async (changes, durable) => {
    await disk.promise;
    await write.call(wallet.store, changes, durable);
  };
  const sent = call('send', order);
  await expect.poll(() => wallet.book.open.size).toBe(1);
  const turning = turn();
  await new Promise((resolve) => setTimeout(resolve, 50));
  expect(node.submissions).toBe(0);
  disk.resolve();
  await Promise.all([sent, turning]);
  expect(node.mempool.size).toBe(1);
});

test('a payment of a cut that is read but not yet written is not told as it was before', async () => {
  const node = new FakeNode();
  const { wallet, call, turn } = await fundedWallet(node, [5n * COIN]);
  await call('send', order);
  const { write } = wallet.store;
  const disk = Promise.withResolvers<void>();
  wallet.store.write = async (changes, durable) => {
    await disk.promise;
    await write.call(wallet.store, changes, durable);
  };
  node.seal();
  const turning = turn();
  await expect.poll(() => wallet.book.open.size).toBe(0);
  const again = call('send', order);
  // A look at the disk is over by now, if it waited for nothing.
  await wallet.store.outgoing('none');
  await wallet.store.outgoing('none');
  disk.resolve();
  expect(await again).toMatchObject({ duplicate: true, state: 'finalized' });
  await turning;
});
