/**
 * A wallet whose disk is full cannot write down what it is about to pay. It pays nothing, says so with a code that asks for the same call
 * again, and ends; with room on the disk and a new start the repeated call pays once.
 */
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { createWalletClient } from '../../pool/payout/wallet-client.ts';
import { formatAddress } from '../../protocol/address.ts';
import { smallDisk } from '../pool/small-disk.ts';
import { temporaryDirectory } from '../temporary.ts';
import { ChainBed, COIN, DaemonProcess } from '../wallet/wallet-bed.ts';
import { WalletFiles } from '../wallet/wallet-files.ts';

const stranger = formatAddress(new Uint8Array(49).fill(9, 1), 'development');

test('a payment that the disk has no room for is repeated, and paid once', async () => {
  const directory = join(temporaryDirectory(), 'disk');
  const disk = smallDisk(directory);
  const files = new WalletFiles(directory);
  await files.write();
  const chain = await ChainBed.open(files.firstAddress, { outputs: 4, each: 10n * COIN });
  const daemon = new DaemonProcess(files.file, chain.base);
  onTestFinished(async () => {
    await daemon.stop('SIGKILL');
    await chain.close();
  });
  await chain.beat();
  await daemon.start();
  const wallet = createWalletClient({ url: `http://${daemon.rpc}`, tokenFile: `${files.file}.token` });
  const recipients = [{ address: stranger, amount: 3n * COIN }];
  await expect.poll(async () => (await wallet.sendMany('first', recipients)).kind).toBe('ok');
  // No cut comes until the call does: reading one would end the wallet as well.
  disk.fill(daemon.pid);
  const refused = await daemon.call('send_many', {
    request_id: 'second',
    recipients: [{ to: stranger, amount: '3' }],
  });
  expect(refused).toMatchObject({ error: { code: -32003, data: { code: 'state_unwritable' } } });
  await daemon.gone;
  expect(await wallet.sendMany('second', recipients)).toMatchObject({ kind: 'later' });
  // Nothing can be started on a full disk either, and the reason is the disk.
  await expect(daemon.start()).rejects.toThrow(/state_unwritable/);

  disk.free(daemon.pid);
  await daemon.start();
  chain.start(50);
  const again = createWalletClient({ url: `http://${daemon.rpc}`, tokenFile: `${files.file}.token` });
  await expect.poll(async () => (await again.sendMany('second', recipients)).kind).toBe('ok');
  await expect
    .poll(async () => (await chain.api.client.addressBalance({ address: stranger })).balance)
    .toBe(String(6n * COIN));
});
