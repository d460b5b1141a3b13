/**
 * The recovery phrase (keys rules 1 and 2) as the wallet reads it, and the 64-byte seed of the words and an optional
 * passphrase. The words alone restore every key; nothing else has to be kept.
 */
import { mnemonicToSeedSync } from '@scure/bip39';
import { readPhrase } from '../../protocol/crypto/phrase.ts';
import { WalletError } from '../wallet-error.ts';

export { ENTROPY_BYTES, phraseOfEntropy } from '../../protocol/crypto/phrase.ts';

export function entropyOfPhrase(text: string): Uint8Array {
  const read = readPhrase(text);
  if (!read.ok) throw new WalletError(read.problem, read.message);
  return read.entropy;
}

export const seedOfPhrase = (phrase: string, passphrase = ''): Uint8Array => mnemonicToSeedSync(phrase, passphrase);
