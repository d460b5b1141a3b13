/** Payloads of the messenger (messenger rules 1, 4, 5 and 7): request, accept and message. The ledger does not look into them; readers refuse every other form. */
import { ADDRESS_PAYLOAD_BYTES, payloadKind } from '../address.ts';
import { ByteReader, type Bytes, ByteWriter, concat, fromUtf8, utf8 } from '../bytes.ts';
import { ID_BYTES, id, LABELS } from '../crypto/identifier.ts';
import { attempt, ProtocolError } from '../errors.ts';
import { MAX_PAYLOAD_BYTES, PAYLOAD_KINDS } from '../transactions/transaction.ts';

export const MESSENGER_KEY_BYTES = 1184;
export const CIPHERTEXT_BYTES = 1088;
export const MESSENGER_NONCE_BYTES = 24;
export const MESSENGER_TAG_BYTES = 16;
/** The name of a chat in its messages: the first bytes of its request's transaction identifier. */
export const CHAT_NAME_BYTES = 16;
/** The payment of every messenger transaction to its recipient, the address of output 0. */
export const MESSENGER_AMOUNT = 1n;

const TYPES = { request: 1, accept: 2, message: 3 } as const;
const HEAD_BYTES = 2;
const TIME_BYTES = 8;
const MESSENGER_ID_BYTES = 16;
const MESSAGE_OVERHEAD = HEAD_BYTES + CHAT_NAME_BYTES + MESSENGER_NONCE_BYTES + TIME_BYTES + MESSENGER_TAG_BYTES;
export const MAX_MESSAGE_TEXT = MAX_PAYLOAD_BYTES - MESSAGE_OVERHEAD;
export const REQUEST_BYTES = HEAD_BYTES + ADDRESS_PAYLOAD_BYTES + MESSENGER_KEY_BYTES;
export const ACCEPT_BYTES = HEAD_BYTES + ID_BYTES + CIPHERTEXT_BYTES;

export type MessengerPayload =
  | { readonly type: 'request'; readonly sender: Bytes; readonly key: Bytes }
  | { readonly type: 'accept'; readonly request: Bytes; readonly ciphertext: Bytes }
  /** `sealed`: nonce, ciphertext, tag. */
  | { readonly type: 'message'; readonly chat: Bytes; readonly sealed: Bytes };

/** The modulus check of FIPS 203: 768 numbers of 12 bits, each below 3,329, and 32 bytes. */
function checkKey(key: Bytes): void {
  if (key.length !== MESSENGER_KEY_BYTES)
    throw new ProtocolError('out_of_range', `a messenger key has ${MESSENGER_KEY_BYTES} bytes`);
  for (let i = 0; i < MESSENGER_KEY_BYTES - 32; i += 3) {
    const [a, b, c] = [key[i] as number, key[i + 1] as number, key[i + 2] as number];
    if ((a | ((b & 15) << 8)) >= 3329 || ((b >> 4) | (c << 4)) >= 3329)
      throw new ProtocolError('not_canonical', 'the messenger key has a number of 3,329 or more');
  }
}

function checkSender(sender: Bytes): void {
  if (payloadKind(sender) !== 'key')
    throw new ProtocolError('address_kind', 'only the address of a single key takes part in chats');
}

function checkSealed(sealed: Bytes): void {
  const text = sealed.length - MESSENGER_NONCE_BYTES - TIME_BYTES - MESSENGER_TAG_BYTES;
  if (text < 1) throw new ProtocolError('truncated', 'a message has at least one byte of text');
  if (text > MAX_MESSAGE_TEXT)
    throw new ProtocolError('too_long', `${text} bytes of text, at most ${MAX_MESSAGE_TEXT} fit`);
}

export function encodeMessengerPayload(payload: MessengerPayload): Uint8Array<ArrayBuffer> {
  const writer = new ByteWriter(MAX_PAYLOAD_BYTES).u8(PAYLOAD_KINDS.messenger).u8(TYPES[payload.type]);
  if (payload.type === 'request') {
    checkSender(payload.sender);
    checkKey(payload.key);
    return writer.raw(payload.sender).raw(payload.key).done();
  }
  if (payload.type === 'accept') return writer.raw(payload.request).raw(payload.ciphertext).done();
  checkSealed(payload.sealed);
  return writer.raw(payload.chat).raw(payload.sealed).done();
}

export function decodeMessengerPayload(bytes: Bytes): MessengerPayload {
  if (bytes.length > MAX_PAYLOAD_BYTES) throw new ProtocolError('too_long', 'a payload is too long');
  const reader = new ByteReader(bytes);
  if (reader.u8() !== PAYLOAD_KINDS.messenger)
    throw new ProtocolError('unsupported_kind', 'this is no payload of the messenger');
  const type = reader.u8();
  if (type === TYPES.request) {
    const payload = {
      type: 'request',
      sender: reader.take(ADDRESS_PAYLOAD_BYTES),
      key: reader.take(MESSENGER_KEY_BYTES),
    } as const;
    reader.end();
    checkSender(payload.sender);
    checkKey(payload.key);
    return payload;
  }
  if (type === TYPES.accept) {
    const payload = {
      type: 'accept',
      request: reader.take(ID_BYTES),
      ciphertext: reader.take(CIPHERTEXT_BYTES),
    } as const;
    reader.end();
    return payload;
  }
  if (type !== TYPES.message) throw new ProtocolError('unsupported_kind', `messenger type ${type} is not known`);
  const chat = reader.take(CHAT_NAME_BYTES);
  const sealed = reader.take(bytes.length - HEAD_BYTES - CHAT_NAME_BYTES);
  checkSealed(sealed);
  return { type: 'message', chat, sealed };
}

export const isMessengerPayload = (bytes: Bytes): boolean =>
  bytes[0] === PAYLOAD_KINDS.messenger && attempt(() => decodeMessengerPayload(bytes)).ok;

/** Of payloads that were found to be the messenger's: whether it is a message, and the name of its chat. */
export const isMessage = (payload: Bytes): boolean => payload[1] === TYPES.message;
export const chatNameIn = (payload: Bytes): Bytes => payload.subarray(HEAD_BYTES, HEAD_BYTES + CHAT_NAME_BYTES);

/** The plaintext: the author's time, and the text. */
export function encodeMessage(sentMillis: number, text: string): Uint8Array<ArrayBuffer> {
  const bytes = utf8(text);
  if (bytes.length < 1) throw new ProtocolError('out_of_range', 'a message has at least one byte of text');
  if (bytes.length > MAX_MESSAGE_TEXT)
    throw new ProtocolError('too_long', `${bytes.length} bytes of text, at most ${MAX_MESSAGE_TEXT} fit`);
  return concat(new ByteWriter(TIME_BYTES).height(sentMillis).done(), bytes);
}

export function decodeMessage(bytes: Bytes): { readonly sentMillis: number; readonly text: string } {
  const reader = new ByteReader(bytes);
  return { sentMillis: reader.height(), text: fromUtf8(reader.view(bytes.length - TIME_BYTES)) };
}

/** A short fingerprint for comparing keys: 16 bytes (messenger rule 3). */
export const messengerIdOf = (key: Bytes): Uint8Array<ArrayBuffer> =>
  id(LABELS.messengerId, key).slice(0, MESSENGER_ID_BYTES);
