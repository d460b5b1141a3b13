/**
 * Keys of a validator's node, written out of the wallet (docs/wallet.md, Staking 8): each follows from the words, so the same command on another machine
 * writes the same key. The file of a key is never replaced: a node may be running from it.
 */
import { resolve } from 'node:path';
import { formatAddress, keyAddressPayload } from '../../protocol/address.ts';
import type { NetworkName } from '../../protocol/network.ts';
import { type KeyPurpose, passwordIn, sealValidatorKey } from '../../runtime/files/validator-key-file.ts';
import { WalletError } from '../wallet-error.ts';
import { CONSENSUS_KEY_INDEXES, type KeyPath, WalletRoot } from './derivation.ts';
import { ACCOUNT } from './keyring.ts';
import { createFile, refuseTaken } from './new-file.ts';
import { randomPassword, type Unlocked } from './password.ts';
import { phraseOfEntropy } from './phrase.ts';
import { readPrivateFile } from './private-file.ts';
import { signingKey } from './signing.ts';

export type KeyFiles = { readonly keyFile: string; readonly passwordFile: string };

export type Export = KeyFiles & {
  readonly purpose: KeyPurpose;
  readonly index: number;
};

export type Exported = KeyFiles & {
  readonly network: NetworkName;
  /** Hash of the key, for comparison. */
  readonly address: string;
  /** A random password was created; otherwise the file existed and is unchanged. */
  readonly madePassword: boolean;
};

/** No address has these indexes on either branch (keys rule 5). */
const pathOf = (purpose: KeyPurpose, index: number): KeyPath => ({
  account: ACCOUNT,
  branch: purpose === 'consensus' ? 'receive' : 'change',
  index,
});

/** Undefined when there is none yet. */
function givenPassword(path: string): string | undefined {
  const text = readPrivateFile(path, 'file_readable_by_others');
  if (text === undefined) return undefined;
  const password = passwordIn(text);
  if (password !== '') return password;
  throw new WalletError('password_missing', `the first line of ${path} is empty: write a password there, or remove it`);
}

export async function exportValidatorKey(unlocked: Unlocked, wanted: Export, log2N?: number): Promise<Exported> {
  const { purpose, index } = wanted;
  const { first, last } = CONSENSUS_KEY_INDEXES;
  if (!Number.isInteger(index) || index < first || index > last)
    throw new WalletError('key_index_invalid', `a key of a validator has an index from ${first} to ${last}`);
  const [keyFile, passwordFile] = [resolve(wanted.keyFile), resolve(wanted.passwordFile)];
  if (keyFile === passwordFile)
    throw new WalletError('params_invalid', 'the key and its password need two files: name another one');
  refuseTaken(keyFile);
  const given = givenPassword(passwordFile);
  const { secrets, network } = unlocked;
  const root = new WalletRoot(phraseOfEntropy(secrets.entropy), secrets.passphrase, network);
  const seed = root.seed(pathOf(purpose, index));
  root.wipe();
  const address = formatAddress(keyAddressPayload(signingKey(seed).publicKey), network);
  const password = given ?? randomPassword();
  const sealed = await sealValidatorKey(seed, purpose, network, password, log2N);
  seed.fill(0);
  // Written before the key: after a crash in between, the next run uses this password.
  if (given === undefined) await createFile(passwordFile, `${password}\n`);
  await createFile(keyFile, sealed);
  return { keyFile, passwordFile, network, address, madePassword: given === undefined };
}
