/** Vectors of the messenger: two wallets of fixed words, one chat with every stage of its keys, and payloads that are none (messenger rules 1 to 9). */
import { formatAddress, keyAddressPayload } from '../../protocol/address.ts';
import { type Bytes, concat, fromHex, toHex } from '../../protocol/bytes.ts';
import { id, LABELS } from '../../protocol/crypto/identifier.ts';
import { attempt } from '../../protocol/errors.ts';
import type { Chat } from '../../protocol/messenger/chats.ts';
import {
  decodeMessengerPayload,
  encodeMessage,
  encodeMessengerPayload,
  MAX_MESSAGE_TEXT,
  messengerIdOf,
} from '../../protocol/messenger/payload.ts';
import { WalletRoot } from '../../wallet/keys/derivation.ts';
import { phraseOfEntropy } from '../../wallet/keys/phrase.ts';
import { signingKey } from '../../wallet/keys/signing.ts';
import { ChatKeys } from '../../wallet/messenger/chat-keys.ts';
import { pattern } from './pattern.ts';

const NETWORK = 'development';

function party(name: string) {
  const entropy = pattern(`messenger/${name}`, 32);
  const root = new WalletRoot(phraseOfEntropy(entropy), '', NETWORK);
  const payload = keyAddressPayload(signingKey(root.seed({ account: 0, branch: 'receive', index: 0 })).publicKey);
  return { entropy, root, keys: new ChatKeys(root), payload, address: formatAddress(payload, NETWORK) };
}

/** Payloads that are none, with the code of the refusal. */
function badPayloads(request: Bytes, accept: Bytes, message: Bytes) {
  const changed = (bytes: Bytes, at: number, ...to: number[]) => {
    const copy = new Uint8Array(bytes);
    copy.set(to, at);
    return copy;
  };
  const list: [string, Bytes][] = [
    ['nothing behind the kind', request.subarray(0, 1)],
    ['another kind', changed(message, 0, 0)],
    ['type 0', changed(message, 1, 0)],
    ['type 4', changed(message, 1, 4)],
    ['a request without its last byte', request.subarray(0, -1)],
    ['a request with a byte behind it', concat(request, Uint8Array.of(0))],
    ['a request of a multisig address', changed(request, 2, 1)],
    ['a request of an address of no kind', changed(request, 2, 9)],
    ['a key whose first number is 3,329', changed(request, 51, 0x01, ((request[52] as number) & 0xf0) | 0x0d)],
    ['a key whose second number is 4,095', changed(request, 52, (request[52] as number) | 0xf0, 0xff)],
    ['an accept without its last byte', accept.subarray(0, -1)],
    ['an accept with a byte behind it', concat(accept, Uint8Array.of(0))],
    ['a message without a text', message.subarray(0, 66)],
    ['a message without a name', message.subarray(0, 17)],
    ['a message that is too long', concat(message, new Uint8Array(2049 - message.length))],
  ];
  return list.map(([says, bytes]) => {
    const read = attempt(() => decodeMessengerPayload(bytes));
    if (read.ok) throw new Error(`${says} is read`);
    return { says, payload_hex: toHex(bytes), code: read.error.code };
  });
}

const TEXTS = ['hello', 'Grüße aus Köln ☂', 'x'.repeat(MAX_MESSAGE_TEXT)];

export function messengerVectors() {
  const [requester, accepter] = [party('requester'), party('accepter')];
  const key = requester.keys.publicKey(requester.address);
  const request = toHex(pattern('messenger/request transaction', 48));
  const base = { request, height: 1, keyHex: toHex(key), accept: null };
  const asked: Chat = { ...base, role: 'accepter', own: accepter.address, peer: requester.address };
  const ciphertext = accepter.keys.accept(asked);
  const accept = { transaction: '', height: 2, ciphertextHex: toHex(ciphertext) };
  const asking: Chat = { ...base, role: 'requester', own: requester.address, peer: accepter.address, accept };
  const requestPayload = encodeMessengerPayload({ type: 'request', sender: requester.payload, key });
  const acceptPayload = encodeMessengerPayload({ type: 'accept', request: fromHex(request), ciphertext });
  const messages = TEXTS.flatMap((text, i) =>
    (['requester', 'accepter'] as const).map((author) => {
      const [nonce, sent] = [pattern(`messenger/nonce ${author} ${i}`, 24), 1_800_000_000_000 + i];
      const [keys, chat] = author === 'requester' ? [requester.keys, asking] : [accepter.keys, asked];
      const sealed = keys.seal(chat, nonce, encodeMessage(sent, text));
      const payload = encodeMessengerPayload({ type: 'message', chat: fromHex(request.slice(0, 32)), sealed });
      return { author, text, sent_millis: sent, nonce: toHex(nonce), payload_hex: toHex(payload) };
    }),
  );
  const { root } = requester;
  const coinData = concat(fromHex(request), id(LABELS.messengerId, key));
  return {
    network: NETWORK,
    requester: { entropy: toHex(requester.entropy), address: requester.address },
    accepter: { entropy: toHex(accepter.entropy), address: accepter.address },
    request_transaction: request,
    key_seed: toHex(root.labelled('SVC_MESSENGER_KEY_V1', requester.payload)),
    key: toHex(key),
    messenger_id: toHex(messengerIdOf(key)),
    coin: toHex(accepter.root.labelled('SVC_MESSENGER_COIN_V1', coinData).subarray(0, 32)),
    request_payload_hex: toHex(requestPayload),
    accept_payload_hex: toHex(acceptPayload),
    messages,
    bad: badPayloads(requestPayload, acceptPayload, fromHex(messages[0]?.payload_hex ?? '')),
  };
}
