/** The recovery phrase (keys rule 1): 32 bytes of entropy as 24 English BIP-39 words. */
import { entropyToMnemonic, mnemonicToEntropy } from '@scure/bip39';
import { wordlist } from '@scure/bip39/wordlists/english.js';
import type { Bytes } from '../bytes.ts';

export const ENTROPY_BYTES = 32;
export const PHRASE_WORDS = 24;

export function phraseOfEntropy(entropy: Bytes): string {
  if (entropy.length !== ENTROPY_BYTES) throw new RangeError(`entropy has ${ENTROPY_BYTES} bytes`);
  return entropyToMnemonic(Uint8Array.from(entropy), wordlist);
}

export type PhraseProblem = 'phrase_length' | 'phrase_word' | 'phrase_checksum';

export type ReadPhrase =
  | { readonly ok: true; readonly entropy: Uint8Array }
  | { readonly ok: false; readonly problem: PhraseProblem; readonly message: string };

/** Reads words as people type them, in upper or lower case, with spaces or line breaks. The checksum catches a wrong or swapped word. */
export function readPhrase(text: string): ReadPhrase {
  const refuse = (problem: PhraseProblem, message: string): ReadPhrase => ({ ok: false, problem, message });
  const words = text.normalize('NFKD').trim().toLowerCase().split(/\s+/);
  if (words.length !== PHRASE_WORDS)
    return refuse('phrase_length', `a recovery phrase has ${PHRASE_WORDS} words, this one ${words.length}`);
  const stranger = words.findIndex((word) => !wordlist.includes(word));
  if (stranger >= 0) return refuse('phrase_word', `word ${stranger + 1} is not in the word list`);
  try {
    return { ok: true, entropy: mnemonicToEntropy(words.join(' '), wordlist) };
  } catch {
    return refuse('phrase_checksum', 'the words do not belong together: one is wrong or out of place');
  }
}
