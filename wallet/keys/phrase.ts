/**
 * The recovery phrase (keys rules 1 and 2): 32 bytes of entropy as 24 English BIP-39 words, and the 64-byte seed of the
 * words and an optional passphrase. The words alone bring back every key; nothing else has to be kept.
 */
import { entropyToMnemonic, mnemonicToEntropy, mnemonicToSeedSync } from '@scure/bip39';
import { wordlist } from '@scure/bip39/wordlists/english.js';
import type { Bytes } from '../../protocol/bytes.ts';
import { WalletError } from '../wallet-error.ts';

export const ENTROPY_BYTES = 32;
export const PHRASE_WORDS = 24;

export function phraseOfEntropy(entropy: Bytes): string {
  if (entropy.length !== ENTROPY_BYTES) throw new RangeError(`entropy has ${ENTROPY_BYTES} bytes`);
  return entropyToMnemonic(Uint8Array.from(entropy), wordlist);
}

/** Reads words as people type them, in upper or lower case, with spaces or line breaks. The checksum catches a wrong or swapped word. */
export function entropyOfPhrase(text: string): Uint8Array {
  const words = text.normalize('NFKD').trim().toLowerCase().split(/\s+/);
  if (words.length !== PHRASE_WORDS)
    throw new WalletError('phrase_length', `a recovery phrase has ${PHRASE_WORDS} words, this one ${words.length}`);
  const stranger = words.findIndex((word) => !wordlist.includes(word));
  if (stranger >= 0) throw new WalletError('phrase_word', `word ${stranger + 1} is not in the word list`);
  try {
    return mnemonicToEntropy(words.join(' '), wordlist);
  } catch {
    throw new WalletError('phrase_checksum', 'the words do not belong together: one is wrong or out of place');
  }
}

export const seedOfPhrase = (phrase: string, passphrase = ''): Uint8Array => mnemonicToSeedSync(phrase, passphrase);
