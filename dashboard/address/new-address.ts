/** A wallet that begins in the page: 24 words from the browser's random numbers, and the first address of `svc-wallet` for them. */
import { addressFromPublicKey } from '../../module/text.ts';
import { mnemonicFromEntropy, WalletRoot } from '../../module/wallet-root.ts';
import { toHex } from '../../protocol/bytes.ts';
import type { NetworkName } from '../../protocol/network.ts';
import { startModule } from '../data/protocol-module.ts';

const ENTROPY_BYTES = 32;
/** Of the 24 words: enough to see that they were written down, few enough to type. */
const QUESTIONS = 3;

export type NewAddress = { readonly words: readonly string[]; readonly address: string };

export async function newAddress(network: NetworkName): Promise<NewAddress> {
  await startModule();
  const entropy = crypto.getRandomValues(new Uint8Array(ENTROPY_BYTES));
  const phrase = mnemonicFromEntropy(toHex(entropy));
  entropy.fill(0);
  const root = WalletRoot.fromMnemonic(phrase, '', network);
  try {
    return {
      words: phrase.split(' '),
      address: addressFromPublicKey(root.derivePublicKey(0, 'receive', 0), network),
    };
  } finally {
    root.free();
  }
}

/** Which words are asked for, from 0, in their order. */
export function questionsFor(words: number, random: () => number = Math.random): number[] {
  const left = Array.from({ length: words }, (_, i) => i);
  const asked = Array.from(
    { length: QUESTIONS },
    () => left.splice(Math.floor(random() * left.length), 1)[0] as number,
  );
  return asked.sort((a, b) => a - b);
}

export const isAnswered = (words: readonly string[], asked: readonly number[], answers: readonly string[]): boolean =>
  asked.every((place, i) => answers[i]?.trim().toLowerCase() === words[place]);
