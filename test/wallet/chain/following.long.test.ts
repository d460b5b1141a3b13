/** Following the chain: events, catching up, restoring from the words, rescans and what a caller reads of it. */
import { expect, test } from 'vitest';
import { formatAddress } from '../../../protocol/address.ts';
import { FakeNode } from '../fake-node.ts';
import { fundedWallet, openTestWallet, type TestWallet } from '../open-wallet.ts';

const COIN = 100_000_000n;
const stranger = (n: number): string => formatAddress(new Uint8Array(49).fill(n, 1), 'development');

function recordEvents({ wallet }: TestWallet): { name: string; params: Record<string, unknown> }[] {
  const events: { name: string; params: Record<string, unknown> }[] = [];
  wallet.events.listen((event) => events.push(event));
  return events;
}
const named = (events: { name: string; params: Record<string, unknown> }[], name: string) =>
  events.filter((event) => event.name === name).map(({ params }) => params);

test('a deposit is unconfirmed, then finalized, then confirmed, with its text and senders', async () => {
  const node = new FakeNode();
  const payer = await fundedWallet(node, [10n * COIN], { name: 'payer' });
  const shop = await openTestWallet(node, { name: 'shop', confirmations: 3 });
  const { address } = await shop.call('new_address', { label: 'customer 1' });
  await shop.turn();
  const events = recordEvents(shop);
  const sent = await payer.call('send', { to: address, amount: '2.5', request_id: 'd', payload_text: 'invoice <7>' });
  await shop.turn();
  expect(named(events, 'unconfirmed')).toMatchObject([
    { payments: [{ transaction: sent.transaction, output: 0, address, amount: '2.50000000', label: 'customer 1' }] },
  ]);
  expect(await shop.call('balance')).toMatchObject({ balance: '0.00000000', unconfirmed: '2.50000000' });
  expect((await shop.call('incoming')).payments).toHaveLength(1);
  const height = node.seal();
  await shop.turn();
  const payment = {
    transaction: sent.transaction,
    output: 0,
    address,
    amount: '2.50000000',
    height,
    payload_text: 'invoice <7>',
    label: 'customer 1',
    source: 'regular',
  };
  expect(named(events, 'finalized')).toMatchObject([{ indexed_height: height, payments: [payment] }]);
  expect(named(events, 'finalized')[0]?.payments).toMatchObject([{ senders: [expect.stringMatching(/^dsvc1/)] }]);
  expect((await shop.call('incoming')).payments).toEqual([]);
  expect(named(events, 'confirmations')).toEqual([]);
  node.skip(2);
  await shop.turn();
  await shop.turn();
  await expect.poll(() => named(events, 'confirmations')).toMatchObject([{ confirmations: 3, payments: [payment] }]);
  expect(await shop.call('received', { since_height: 0 })).toMatchObject({
    payments: [payment],
    more: false,
    indexed_height: node.height,
  });
  expect((await shop.call('received', { since_height: height })).payments).toEqual([]);
  expect(await shop.call('transaction', { transaction: sent.transaction })).toMatchObject({
    finalized_height: height,
    confirmations: 3,
    outgoing: null,
  });
  expect(named(events, 'removed')).toEqual([]);
});

test('a deposit that leaves the mempool is removed', async () => {
  const node = new FakeNode();
  const payer = await fundedWallet(node, [10n * COIN], { name: 'payer' });
  const shop = await openTestWallet(node, { name: 'shop' });
  const { address } = await shop.call('new_address', {});
  await shop.turn();
  const events = recordEvents(shop);
  const sent = await payer.call('send', { to: address, amount: '1', request_id: 'd' });
  await shop.turn();
  node.mempool.clear();
  await shop.turn();
  expect(named(events, 'removed')).toMatchObject([{ payments: [{ transaction: sent.transaction, address }] }]);
  expect(await shop.call('balance')).toMatchObject({ balance: '0.00000000', unconfirmed: '0.00000000' });
});

test('customers of one wallet can pay each other; change and merges are no payments', async () => {
  const node = new FakeNode();
  const shop = await fundedWallet(node, [10n * COIN, COIN, COIN]);
  const { address } = await shop.call('new_address', { label: 'other customer' });
  const before = node.height;
  await shop.call('send', { to: address, amount: '3', request_id: 'inside' });
  node.seal();
  await shop.turn();
  const { payments } = (await shop.call('received', { since_height: before })) as {
    payments: Record<string, unknown>[];
  };
  expect(payments).toMatchObject([{ address, amount: '3.00000000' }]);
  const middle = node.height;
  await shop.call('compound', { request_id: 'm' });
  node.seal();
  await shop.turn();
  expect((await shop.call('received', { since_height: middle })).payments).toEqual([]);
});

test('pages of received end where a cut ends', async () => {
  const node = new FakeNode();
  const shop = await openTestWallet(node);
  const { address } = await shop.call('new_address', {});
  for (const count of [3, 1, 4, 2]) {
    for (let i = 0; i < count; i++) node.reward(String(address), COIN);
    node.seal();
  }
  await shop.turn();
  const pages: [number, unknown][] = [];
  let since = 0;
  for (let more = true; more; ) {
    const page = (await shop.call('received', { since_height: since, limit: 3 })) as {
      payments: unknown[];
      indexed_height: number;
      more: boolean;
    };
    pages.push([page.payments.length, page.indexed_height]);
    since = page.indexed_height;
    more = page.more;
  }
  expect(pages).toEqual([
    [3, 2],
    [1, 3],
    [4, 4],
    [2, 5],
  ]);
  const listed: unknown[] = [];
  let cursor: unknown;
  do {
    const page = await shop.call('history', { limit: 3, ...(cursor === undefined ? {} : { cursor }) });
    listed.push(...(page.entries as { height: number }[]).map(({ height }) => height));
    cursor = page.next_cursor;
  } while (cursor !== undefined);
  expect(listed).toEqual([5, 5, 4, 4, 4, 4, 3, 2, 2, 2]);
});

test('the words alone bring back addresses, balance and history, but not the request table', async () => {
  const node = new FakeNode();
  const first = await fundedWallet(node, [10n * COIN]);
  // Paid far ahead of the last one that was paid, so that the search has to go on.
  for (const index of [0, 50, 110]) {
    while (first.wallet.book.branches.receive.filter((record) => record.given).length <= index)
      await first.call('new_address', {});
    node.reward((first.wallet.book.branches.receive[index] as { address: string }).address, COIN);
  }
  node.seal();
  await first.turn();
  await first.call('send', { to: stranger(1), amount: '4', request_id: 'before' });
  node.seal();
  await first.turn();
  const second = await openTestWallet(node);
  await second.turn();
  await second.turn();
  for (const field of ['balance', 'spendable', 'outputs', 'indexed_height'])
    expect((await second.call('balance'))[field]).toEqual((await first.call('balance'))[field]);
  const history = async ({ call }: TestWallet) =>
    ((await call('history')).entries as Record<string, unknown>[]).map(({ request_id: _, ...entry }) => entry);
  expect(await history(second)).toEqual(await history(first));
  const used = ({ wallet }: TestWallet) =>
    wallet.book.branches.receive.filter((record) => record.used).map(({ address, index }) => `${index} ${address}`);
  expect(used(second)).toEqual(used(first));
  expect((await second.call('status')).request_table).not.toBe((await first.call('status')).request_table);
  node.seal();
  await second.turn();
  expect(await second.call('send', { to: stranger(1), amount: '1', request_id: 'before' })).toMatchObject({
    duplicate: false,
  });
});

test('a rescan gives the same figures, keeps open payments reserved and tells listeners to catch up', async () => {
  const node = new FakeNode();
  const shop = await fundedWallet(node, [10n * COIN, 5n * COIN]);
  await shop.call('send', { to: stranger(1), amount: '1', request_id: 'open' });
  const [balance, history] = [await shop.call('balance'), await shop.call('history')];
  const events = recordEvents(shop);
  expect(await shop.call('rescan')).toMatchObject({ rescanning: true });
  expect(await shop.refusal('balance')).toMatchObject({ code: -32003, word: 'wallet_busy' });
  expect(await shop.refusal('rescan')).toMatchObject({ code: -32003 });
  expect(await shop.refusal('send', { to: stranger(1), amount: '1', request_id: 'during' })).toMatchObject({
    code: -32003,
  });
  await expect.poll(() => shop.wallet.follower.rescanning).toBe(false);
  expect(await shop.call('balance')).toEqual(balance);
  expect(await shop.call('history')).toEqual(history);
  expect(events.map(({ name }) => name)).toEqual(['resync_required']);
});

test('a wallet with more addresses than cuts reads whole cuts and finds the same', async () => {
  const node = new FakeNode();
  const shop = await openTestWallet(node);
  for (let i = 0; i < 200; i++) await shop.call('new_address', {});
  await shop.turn();
  const addresses = shop.wallet.book.branches.receive;
  for (const index of [0, 70, 199]) node.reward((addresses[index] as { address: string }).address, COIN);
  node.seal();
  await shop.turn();
  expect(await shop.call('balance')).toMatchObject({ balance: '3.00000000', outputs: 3 });
  const { addresses: page, next_cursor } = (await shop.call('addresses', { limit: 150 })) as {
    addresses: unknown[];
    next_cursor: string;
  };
  expect(page).toHaveLength(150);
  expect((await shop.call('addresses', { cursor: next_cursor })).addresses).toHaveLength(50);
});

test('an index that lags behind the head hides nothing: the wallet waits for it', async () => {
  const node = new FakeNode();
  const shop = await openTestWallet(node);
  const { address } = await shop.call('new_address', {});
  await shop.turn();
  node.indexLag = 6;
  node.reward(String(address), COIN);
  const height = node.seal();
  node.skip(5);
  await shop.turn();
  expect(await shop.call('status')).toMatchObject({ caught_up: false });
  expect(shop.wallet.book.meta.indexedHeight).toBeLessThan(height);
  expect(await shop.refusal('send', { to: stranger(1), amount: '0.5', request_id: 'x' })).toMatchObject({
    code: -32001,
    word: 'wallet_behind',
  });
  node.indexLag = 0;
  await shop.turn();
  expect(await shop.call('balance')).toMatchObject({ balance: '1.00000000' });
});
