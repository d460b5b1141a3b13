/** Files of a wallet and of a validator: the sealed secrets, and the state beside them. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { openValidatorSeed, sealValidatorKey } from '../../runtime/files/validator-key-file.ts';
import { openWalletFile, sealWalletFile } from '../../wallet/keys/wallet-file.ts';
import { FakeNode } from '../wallet/fake-node.ts';
import { fundedWallet, IMPATIENT, openTestWallet, secretsOf } from '../wallet/open-wallet.ts';
import { type Fixture, plain } from './fixture.ts';

const PASSWORD = 'a password of a release';
const SEED = new Uint8Array(32).fill(5);
/** Quick to open; the real parameter is in the file like this one. */
const LOG2_N = 10;
const NOW = () => 1_800_000_000_000;
const STRANGER = 'a stranger of a release';

const files: Fixture = {
  name: 'wallet-file',
  async write(folder) {
    const secrets = { ...secretsOf('release'), passphrase: 'a passphrase' };
    writeFileSync(join(folder, 'wallet.json'), await sealWalletFile(secrets, 'development', PASSWORD, LOG2_N));
    const key = await sealValidatorKey(SEED, 'consensus', 'development', PASSWORD, LOG2_N);
    writeFileSync(join(folder, 'validator-key.json'), key);
  },
  async read(folder) {
    const text = (name: string) => readFileSync(join(folder, name), 'utf8');
    return plain({
      wallet: await openWalletFile(text('wallet.json'), PASSWORD),
      validator: await openValidatorSeed(text('validator-key.json'), 'consensus', 'development', PASSWORD),
    });
  },
};

const state: Fixture = {
  name: 'wallet-state',
  async write(folder) {
    const node = new FakeNode();
    const { call, turn, wallet } = await fundedWallet(node, [500_000_000n, 700_000_000n], {
      name: 'release',
      directory: folder,
      now: NOW,
    });
    const stranger = await openTestWallet(node, { name: STRANGER });
    const { address: to } = await stranger.call('new_address');
    await call('new_address', { label: 'savings' });
    await call('send', { to, amount: '1.5', request_id: 'paid and final' });
    node.seal();
    await turn();
    await call('send', { to, amount: '2.25', request_id: 'paid and open' });
    await wallet.close();
    await stranger.wallet.close();
  },
  async read(folder) {
    const node = new FakeNode();
    node.down = true;
    const { call, wallet } = await openTestWallet(node, { name: 'release', directory: folder, now: NOW, ...IMPATIENT });
    const { balance, requests, history, addresses } = {
      balance: await call('balance'),
      requests: await call('requests', { prefix: 'paid' }),
      history: await call('history'),
      addresses: await call('addresses'),
    };
    await wallet.close();
    return plain({ balance, requests, history, addresses });
  },
};

export const WALLET_FIXTURES: readonly Fixture[] = [files, state];
