/** Messenger transactions that anybody may bring into a chain: put straight into a cut of the fake node, as a node would tell of them. */
import { createHmac, randomBytes } from 'node:crypto';
import { ml_kem768 } from '@noble/post-quantum/ml-kem.js';
import { parseAddress } from '../../../protocol/address.ts';
import type { TransactionDocument } from '../../../protocol/api/transaction-documents.ts';
import { type Bytes, concat, fromHex, toHex, utf8 } from '../../../protocol/bytes.ts';
import { id, LABELS } from '../../../protocol/crypto/identifier.ts';
import { encodeMessage, encodeMessengerPayload } from '../../../protocol/messenger/payload.ts';
import type { WalletRoot } from '../../../wallet/keys/derivation.ts';
import { seal } from '../../../wallet/messenger/xchacha.ts';
import type { FakeNode } from '../fake-node.ts';

export type Sending = {
  readonly from: readonly string[];
  readonly to: string;
  readonly payload: string;
  readonly amount?: bigint;
  /** Who else gets an atom, so that their wallets read the transaction. */
  readonly also?: string;
};

/** A message in the other direction, which its reader can seal too: both have both keys (messenger rules 5 to 7, by hand). */
export function inTheOthersName(root: WalletRoot, chat: Forged, text: string): string {
  const { network } = root;
  const [requester, accepter] = [chat.requester, chat.accepter].map((one) => parseAddress(one, network).payload);
  const request = fromHex(chat.request);
  const named = concat(request, id(LABELS.messengerId, fromHex(chat.key)));
  const coin = root.labelled('SVC_MESSENGER_COIN_V1', named).subarray(0, 32);
  const shared = ml_kem768.encapsulate(fromHex(chat.key), coin).sharedSecret;
  const hmac = (key: Bytes, data: Bytes) => new Uint8Array(createHmac('sha512', key).update(data).digest());
  const info = concat(request, requester as Bytes, accepter as Bytes, Uint8Array.of(0, 1));
  const key = hmac(hmac(utf8('SVC_MESSENGER_CHAT_V1'), shared), info).subarray(0, 32);
  const name = request.subarray(0, 16);
  const about = concat(Uint8Array.of(2, 3), name, requester as Bytes, accepter as Bytes);
  const nonce = new Uint8Array(randomBytes(24));
  const sealed = concat(nonce, seal(key, nonce, about, encodeMessage(1, text)));
  return toHex(encodeMessengerPayload({ type: 'message', chat: name, sealed }));
}

/** By the root of the accepter. */
export type Forged = {
  readonly request: string;
  readonly key: string;
  readonly requester: string;
  readonly accepter: string;
};

/** One cut with all of them; their identifiers, in the same order. */
export function bring(node: FakeNode, sendings: readonly Sending[]): string[] {
  const height = ++node.height;
  const names = sendings.map(() => randomBytes(48).toString('hex'));
  const transactions = sendings.map(
    ({ from, to, payload, amount = 1n, also }, i): TransactionDocument => ({
      transaction_id: names[i] as string,
      block_id: 'bb'.repeat(48),
      finalized_height: height,
      outcome: 'finalized',
      fee: '60000',
      mass: 6000,
      valid_from_height: 1,
      valid_until_height: height + 1000,
      inputs: from.map((address) => ({
        outpoint: { transaction_id: randomBytes(48).toString('hex'), output_index: 0 },
        address,
        amount: '100000',
      })),
      outputs: [to, ...(also === undefined ? [] : [also])].map((address, output_index) => ({
        output_index,
        address,
        amount: output_index === 0 ? String(amount) : '1',
      })),
      payload_hex: payload,
    }),
  );
  node.cuts[height] = {
    transactions,
    changes: transactions.flatMap(({ transaction_id, outputs }) =>
      outputs.map(({ output_index, address, amount }) => {
        const made = { address, amount: BigInt(amount), source: 'regular' as const, height };
        node.outputs.set(`${transaction_id}:${output_index}`, made);
        return {
          finalized_height: height,
          address,
          kind: 'received' as const,
          outpoint: { transaction_id, output_index },
          amount,
          source: 'regular' as const,
          transaction_id,
        };
      }),
    ),
  };
  return names;
}
