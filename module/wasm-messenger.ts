/** The messenger's calls of the WebAssembly half. The keys of one chat at a time are in its memory; the caller that opens a chat closes it. */
import { type Bytes, concat } from '../protocol/bytes.ts';
import {
  CIPHERTEXT_BYTES,
  MESSENGER_KEY_BYTES,
  MESSENGER_NONCE_BYTES,
  MESSENGER_TAG_BYTES,
} from '../protocol/messenger/payload.ts';
import { exchange, started } from './wasm.ts';

const AT = { request: 0, addresses: 64, secret: 256, out: 2048, message: 4096 };
const SEALED_OVERHEAD = MESSENGER_NONCE_BYTES + MESSENGER_TAG_BYTES;

export function messengerKey(handle: number, address: Bytes): Uint8Array<ArrayBuffer> {
  exchange().set(address, AT.addresses);
  started().messengerKey(handle, AT.addresses, AT.out);
  return exchange().slice(AT.out, AT.out + MESSENGER_KEY_BYTES);
}

/** `key` was checked by the codec. */
export function messengerAccept(handle: number, request: Bytes, key: Bytes): Uint8Array<ArrayBuffer> {
  exchange().set(request, AT.request);
  exchange().set(key, AT.secret);
  started().messengerAccept(handle, AT.request, AT.secret, AT.out);
  return exchange().slice(AT.out, AT.out + CIPHERTEXT_BYTES);
}

export type OpenedChat = {
  readonly isRequester: boolean;
  readonly request: Bytes;
  readonly requester: Bytes;
  readonly accepter: Bytes;
  /** The ciphertext of the accept for the requester, the key of the request for the accepter. */
  readonly secret: Bytes;
};

/** False: the key of the request is none, and nobody has a key for this chat. */
export function openChat(handle: number, { isRequester, request, requester, accepter, secret }: OpenedChat): boolean {
  const buffer = exchange();
  buffer.set(request, AT.request);
  buffer.set(concat(requester, accepter), AT.addresses);
  buffer.set(secret, AT.secret);
  return started().openChat(handle, isRequester ? 1 : 0, AT.request, AT.addresses, AT.secret) === 1;
}

export const closeChat = (): void => started().closeChat();

/** `fromRequester` or from the accepter. What stood in the exchange buffer is overwritten. */
export function sealMessage(fromRequester: boolean, plain: Bytes): Uint8Array<ArrayBuffer> {
  exchange().set(plain, AT.message + MESSENGER_NONCE_BYTES);
  started().sealMessage(fromRequester ? 0 : 1, AT.message, plain.length);
  return exchange().slice(AT.message, AT.message + plain.length + SEALED_OVERHEAD);
}

export function openMessage(fromRequester: boolean, sealed: Bytes): Uint8Array<ArrayBuffer> | undefined {
  const length = sealed.length - SEALED_OVERHEAD;
  exchange().set(sealed, AT.message);
  const opened = started().openMessage(fromRequester ? 0 : 1, AT.message, length) === 1;
  const place = exchange().subarray(AT.message + MESSENGER_NONCE_BYTES, AT.message + MESSENGER_NONCE_BYTES + length);
  const plain = opened ? new Uint8Array(place) : undefined;
  place.fill(0);
  return plain;
}
