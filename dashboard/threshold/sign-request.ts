/**
 * Answers the pool's request for a change with the key of the miner's address (keys rules 9 to 12). The phrase goes into the memory of
 * the protocol module and nowhere else; the root is freed before anything is sent.
 */

import { addressFromPublicKey } from '../../module/text.ts';
import { WalletRoot } from '../../module/wallet-root.ts';
import type { AddressProof, AddressProofRequest } from '../../protocol/transactions/address-proof.ts';
import { startModule } from '../data/protocol-module.ts';
import { count } from '../format.ts';
import { word } from '../words/language.ts';

/** Receive addresses of account 0 among which the miner's is looked for. */
export const SEARCHED = 1_000;
/** A key takes about a millisecond: the page draws in between. */
const AT_ONCE = 20;

/** `purpose`: how what is signed must begin. */
export type Wish = { readonly address: string; readonly purpose: string };

/** The pool's request must match the form: nothing else is signed, whatever the pool asks for. */
export function isForWish(request: AddressProofRequest, { address, purpose }: Wish): boolean {
  return request.address === address && request.purpose.startsWith(purpose);
}

export async function signRequest(
  request: AddressProofRequest,
  wish: Wish,
  secrets: { readonly phrase: string; readonly passphrase: string },
): Promise<AddressProof> {
  if (!isForWish(request, wish)) throw new Error(word('sign.other_request'));
  await startModule();
  const root = WalletRoot.fromMnemonic(secrets.phrase, secrets.passphrase, request.network);
  try {
    for (let index = 0; index < SEARCHED; index++) {
      const key = root.derivePublicKey(0, 'receive', index);
      if (addressFromPublicKey(key, request.network) === wish.address)
        return JSON.parse(root.proveAddress(0, 'receive', index, JSON.stringify(request))) as AddressProof;
      if (index % AT_ONCE === AT_ONCE - 1) await new Promise((resolve) => setTimeout(resolve));
    }
  } finally {
    root.free();
  }
  throw new Error(word('sign.other_words', { count: count(SEARCHED) }));
}
