/**
 * A wallet daemon whose state directory is replaced by an older copy, and one whose node is: real processes, a real node's store. A used request id
 * is not paid again, a payment that the chain no longer holds is not called final, and a rescan puts it right.
 */
import { cpSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { formatAddress } from '../../protocol/address.ts';
import { temporaryDirectory } from '../temporary.ts';
import { ChainBed, COIN, DaemonProcess } from '../wallet/wallet-bed.ts';
import { WalletFiles } from '../wallet/wallet-files.ts';

const stranger = formatAddress(new Uint8Array(49).fill(9, 1), 'development');
const order = { to: stranger, amount: '3', request_id: 'withdrawal 17' };

const copy = (from: string, to: string): void => {
  rmSync(to, { recursive: true, force: true });
  cpSync(from, to, { recursive: true });
};

async function setUp() {
  const directory = temporaryDirectory();
  const files = new WalletFiles(directory);
  await files.write();
  const chain = await ChainBed.open(files.firstAddress, { outputs: 4, each: 10n * COIN });
  const daemon = new DaemonProcess(files.file, chain.base, ['--validity', '30']);
  onTestFinished(async () => {
    await daemon.stop('SIGKILL');
    await chain.close();
  });
  await chain.beat();
  await daemon.start();
  const status = () => daemon.result('status');
  const caughtUp = () =>
    expect.poll(status).toMatchObject({ caught_up: true, indexed_height: chain.api.bed.node.chain.head().height });
  const balance = async () => (await chain.api.client.addressBalance({ address: stranger })).balance;
  await caughtUp();
  return { directory, files, chain, daemon, status, caughtUp, balance };
}

test('a wallet restored from an older copy does not pay a used request id again', async () => {
  const { directory, files, chain, daemon, status, caughtUp, balance } = await setUp();
  const state = `${files.file}.state`;
  const backup = join(directory, 'backup');
  await daemon.stop();
  copy(state, backup);
  await daemon.start();
  await caughtUp();
  const { request_table: table } = await status();
  await daemon.result('send', order);
  await daemon.stop('SIGKILL');

  // Once while the payment is still under way, once after it is final.
  for (const isFinal of [false, true]) {
    copy(backup, state);
    await daemon.start();
    for (let i = 0; i < 20; i++) {
      const answer = await daemon.call('send', order);
      expect(answer).toMatchObject({ error: { code: isFinal ? expect.anything() : -32001 } });
      if ('error' in answer && answer.error.code === -32000) break;
    }
    if (isFinal) break;
    await daemon.stop('SIGKILL');
    await chain.beat();
  }
  await expect.poll(status).toMatchObject({ payments_stopped: 'unknown_spend' });
  expect((await status()).request_table).not.toBe(table);
  expect(await daemon.call('send', order)).toMatchObject({
    error: { code: -32000, data: { code: 'payments_stopped' } },
  });
  await chain.beat();
  expect(await balance()).toBe(String(3n * COIN));

  await daemon.result('rescan');
  await expect.poll(status).toMatchObject({ payments_stopped: null, caught_up: true });
  await daemon.result('send', { ...order, request_id: 'withdrawal 18' });
  await chain.beat();
  expect(await balance()).toBe(String(6n * COIN));
});

test('a node rolled back under the same chain id: what it no longer holds is not final', async () => {
  const { directory, chain, daemon, status, caughtUp, balance } = await setUp();
  const backup = join(directory, 'node');
  await chain.restart((store) => copy(store, backup));
  await caughtUp();
  const { request_table: table } = await status();
  await daemon.result('send', order);
  await chain.beat();
  await caughtUp();
  expect(await daemon.result('send', order)).toMatchObject({ duplicate: true, state: 'finalized' });
  await chain.restart((store) => copy(backup, store));
  expect(await balance()).toBe('0');

  await expect.poll(status).toMatchObject({ node_trouble: 'node_behind_wallet', caught_up: false });
  expect(await daemon.result('send', order)).toMatchObject({ duplicate: true, state: 'pending' });
  await chain.beat();
  await chain.beat();
  await expect.poll(status).toMatchObject({
    node_trouble: 'chain_rolled_back',
    payments_stopped: 'chain_rolled_back',
    caught_up: false,
  });
  expect((await status()).request_table).not.toBe(table);
  expect(await daemon.result('send', order)).toMatchObject({ duplicate: true, state: 'pending' });
  expect(await daemon.call('send', { ...order, request_id: 'other' })).toMatchObject({ error: { code: -32000 } });

  await daemon.crash();
  await expect.poll(status).toMatchObject({ node_trouble: 'chain_rolled_back', payments_stopped: 'chain_rolled_back' });
  await daemon.result('rescan');
  await expect.poll(status).toMatchObject({ payments_stopped: null, caught_up: true });
  expect(await daemon.result('send', order)).toMatchObject({ duplicate: true, state: 'pending' });
  // Beyond its last valid height the payment can never run: only now may it be made anew.
  await chain.api.bed.seal(31);
  await caughtUp();
  expect(await daemon.result('send', order)).toMatchObject({ duplicate: true, state: 'void', reason: 'expired' });
  await daemon.result('send', { ...order, request_id: 'withdrawal 17, again' });
  await chain.beat();
  expect(await balance()).toBe(String(3n * COIN));
});
