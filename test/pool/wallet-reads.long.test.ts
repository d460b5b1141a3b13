/** What the pool reads of its wallet's record of the chain: all of it, or nothing. What is not in it counts as never paid, and is paid again. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { createWalletClient } from '../../pool/payout/wallet-client.ts';
import { formatAddress } from '../../protocol/address.ts';
import { WalletServer } from '../../wallet/rpc/server.ts';
import { until } from '../until.ts';
import { FakeNode } from '../wallet/fake-node.ts';
import { fundedWallet, openTestWallet, type TestWallet } from '../wallet/open-wallet.ts';

const COIN = 100_000_000n;
const TOKEN = 'a token of the test';
const miner = formatAddress(new Uint8Array(49).fill(4, 1), 'development');

/** The wallet as the pool reaches it. */
async function clientOf({ wallet, directory }: TestWallet) {
  const server = new WalletServer(wallet, {
    listen: { host: '127.0.0.1', port: 0 },
    allowRemote: false,
    token: TOKEN,
  });
  const { port } = await server.start();
  onTestFinished(() => server.close());
  const tokenFile = join(directory, 'token');
  writeFileSync(tokenFile, TOKEN, { mode: 0o600 });
  return createWalletClient({ url: `http://127.0.0.1:${port}`, tokenFile });
}

/** A wallet that has paid a miner, by its words alone: of its requests nothing is left. */
async function restoredFromWords(node: FakeNode, client = node.client): Promise<TestWallet> {
  const before = await fundedWallet(node, [5n * COIN]);
  await before.call('send', { to: miner, amount: '1', request_id: 'payout' });
  node.seal();
  await before.turn();
  await before.wallet.close();
  return openTestWallet({ client });
}

test('while the wallet reads its history again it does not say that it paid nobody', async () => {
  const node = new FakeNode();
  let answers = Promise.resolve();
  const restored = await restoredFromWords(node, {
    ...node.client,
    addressChanges: (asked) => answers.then(() => node.client.addressChanges(asked)),
    cutChanges: (asked) => answers.then(() => node.client.cutChanges(asked)),
  });
  await restored.turn();
  const client = await clientOf(restored);
  const payment = { kind: 'ok', value: [{ recipients: [{ address: miner }] }] };
  expect(await client.status()).toMatchObject({ kind: 'ok', value: { isCaughtUp: true } });
  expect(await client.paidSince(0)).toMatchObject(payment);
  // A person asks for it between two questions of the pool.
  const { promise, resolve } = Promise.withResolvers<void>();
  answers = promise;
  const rescan = restored.wallet.follower.rescan();
  await until(() => restored.wallet.book.outputs.size === 0);
  expect(await client.paidSince(0)).toMatchObject({ kind: 'later' });
  expect(await restored.refusal('received', { since_height: 0 })).toMatchObject({ code: -32003 });
  resolve();
  await rescan;
  expect(await client.paidSince(0)).toMatchObject(payment);
});

test('beside a node that is still syncing the wallet has not read the whole chain', async () => {
  const node = new FakeNode();
  const restored = await restoredFromWords(node);
  const head = node.height;
  node.height = 2;
  node.synced = false;
  await restored.turn();
  const client = await clientOf(restored);
  expect(await client.paidSince(0)).toEqual({ kind: 'ok', value: [] });
  expect(await client.status()).toMatchObject({ kind: 'ok', value: { isCaughtUp: false } });
  node.height = head;
  node.synced = true;
  await until(async () => {
    await restored.turn();
    const status = await client.status();
    return status.kind === 'ok' && status.value.isCaughtUp;
  });
});
