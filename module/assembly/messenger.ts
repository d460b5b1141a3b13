/**
 * The messenger (messenger rules 2 to 8): keys of addresses, the encapsulation that accepts a request, and the two keys of a chat. The keys of one chat are held while
 * its messages are read or written, and overwritten when it is closed.
 */
import { giveBack, here, take } from './arena';
import { hmac512 } from './hmac';
import { CIPHERTEXT, decapsulate, encapsulate, isKey, KEY, publicKey, SEED, sharedOf } from './kem';
import { chainOf } from './roots';
import { sha384 } from './sha2';
import { NONCE, open, seal, TAG } from './xchacha';

export const ADDRESS: usize = 49;
export const TRANSACTION: usize = 48;
/** What names a chat in its messages: the first bytes of the identifier of its request. */
export const CHAT_NAME: usize = 16;

// SVC_MESSENGER_KEY_V1, SVC_MESSENGER_COIN_V1, SVC_MESSENGER_ID_V1, each with a zero behind it; SVC_MESSENGER_CHAT_V1
const KEY_LABEL: usize = memory.data<u8>([
  0x53, 0x56, 0x43, 0x5f, 0x4d, 0x45, 0x53, 0x53, 0x45, 0x4e, 0x47, 0x45, 0x52, 0x5f, 0x4b, 0x45, 0x59, 0x5f, 0x56, 0x31, 0,
]);
const KEY_LABEL_BYTES: usize = 21;
const COIN_LABEL: usize = memory.data<u8>([
  0x53, 0x56, 0x43, 0x5f, 0x4d, 0x45, 0x53, 0x53, 0x45, 0x4e, 0x47, 0x45, 0x52, 0x5f, 0x43, 0x4f, 0x49, 0x4e, 0x5f, 0x56, 0x31, 0,
]);
const COIN_LABEL_BYTES: usize = 22;
const ID_LABEL: usize = memory.data<u8>([
  0x53, 0x56, 0x43, 0x5f, 0x4d, 0x45, 0x53, 0x53, 0x45, 0x4e, 0x47, 0x45, 0x52, 0x5f, 0x49, 0x44, 0x5f, 0x56, 0x31, 0,
]);
const ID_LABEL_BYTES: usize = 20;
const CHAT_LABEL: usize = memory.data<u8>([
  0x53, 0x56, 0x43, 0x5f, 0x4d, 0x45, 0x53, 0x53, 0x45, 0x4e, 0x47, 0x45, 0x52, 0x5f, 0x43, 0x48, 0x41, 0x54, 0x5f, 0x56, 0x31,
]);
const CHAT_LABEL_BYTES: usize = 21;

/** HMAC-SHA512 under the chain code of the root, over a label, the root's secret and more. */
function derive(handle: i32, label: usize, labelBytes: usize, more: usize, moreBytes: usize, out: usize): void {
  const mark = here();
  const chain = chainOf(handle);
  const data = take(labelBytes + 32 + moreBytes);
  memory.copy(data, label, labelBytes);
  memory.copy(data + labelBytes, chain, 32);
  memory.copy(data + labelBytes + 32, more, moreBytes);
  hmac512(chain + 32, 32, data, labelBytes + 32 + moreBytes, out);
  giveBack(mark);
}

/** The public key of an address. */
export function messengerKey(handle: i32, address: usize, out: usize): void {
  const mark = here();
  const seed = take(SEED);
  derive(handle, KEY_LABEL, KEY_LABEL_BYTES, address, ADDRESS, seed);
  publicKey(seed, out);
  giveBack(mark);
}

/** 64 bytes to `out`: the first 32 are the coin with which this root accepts a request. */
function coinOf(handle: i32, request: usize, key: usize, out: usize): void {
  const mark = here();
  const named = take(ID_LABEL_BYTES + KEY);
  const data = take(TRANSACTION + 48);
  memory.copy(named, ID_LABEL, ID_LABEL_BYTES);
  memory.copy(named + ID_LABEL_BYTES, key, KEY);
  memory.copy(data, request, TRANSACTION);
  sha384(named, ID_LABEL_BYTES + KEY, data + TRANSACTION);
  derive(handle, COIN_LABEL, COIN_LABEL_BYTES, data, TRANSACTION + 48, out);
  giveBack(mark);
}

/** The ciphertext that accepts a request. False: its key is none. */
export function accept(handle: i32, request: usize, key: usize, out: usize): bool {
  if (!isKey(key)) return false;
  const mark = here();
  const coin = take(64);
  const shared = take(32);
  coinOf(handle, request, key, coin);
  encapsulate(key, coin, out, shared);
  giveBack(mark);
  return true;
}

/** The open chat: key of the requester's messages, of the accepter's, both addresses and the name. */
const CHAT: usize = memory.data(64 + 2 * 49 + 16, 16);
const CHAT_BYTES: usize = 64 + 2 * 49 + 16;
const ADDRESSES: usize = CHAT + 64;
const NAME: usize = ADDRESSES + 2 * 49;
const INFO: usize = 48 + 2 * 49 + 2;

function keepKeys(shared: usize, request: usize, requester: usize, accepter: usize): void {
  const mark = here();
  const pseudorandom = take(64);
  const info = take(INFO);
  const key = take(64);
  hmac512(CHAT_LABEL, CHAT_LABEL_BYTES, shared, 32, pseudorandom);
  memory.copy(info, request, TRANSACTION);
  memory.copy(info + TRANSACTION, requester, ADDRESS);
  memory.copy(info + TRANSACTION + ADDRESS, accepter, ADDRESS);
  for (let direction: usize = 0; direction < 2; direction++) {
    store<u8>(info + INFO - 2, <u8>direction);
    // The number of the block of HKDF.
    store<u8>(info + INFO - 1, 1);
    hmac512(pseudorandom, 64, info, INFO, key);
    memory.copy(CHAT + 32 * direction, key, 32);
  }
  memory.copy(ADDRESSES, requester, ADDRESS);
  memory.copy(ADDRESSES + ADDRESS, accepter, ADDRESS);
  memory.copy(NAME, request, CHAT_NAME);
  giveBack(mark);
}

/** As the one who requested, with the ciphertext that accepted. */
export function openRequested(handle: i32, request: usize, requester: usize, accepter: usize, ciphertext: usize): void {
  const mark = here();
  const seed = take(SEED);
  const shared = take(32);
  derive(handle, KEY_LABEL, KEY_LABEL_BYTES, requester, ADDRESS, seed);
  decapsulate(seed, ciphertext, shared);
  keepKeys(shared, request, requester, accepter);
  giveBack(mark);
}

/** As the one who accepted, with the key that was in the request. False: it is none. */
export function openAccepted(handle: i32, request: usize, requester: usize, accepter: usize, key: usize): bool {
  if (!isKey(key)) return false;
  const mark = here();
  const coin = take(64);
  const shared = take(32);
  coinOf(handle, request, key, coin);
  sharedOf(key, coin, shared);
  keepKeys(shared, request, requester, accepter);
  giveBack(mark);
  return true;
}

export function closeChat(): void {
  memory.fill(CHAT, 0, CHAT_BYTES);
}

/** The associated data of a direction: head of the payload, name of the chat, author, reader. */
function aboutOf(direction: usize, out: usize): void {
  store<u8>(out, 2);
  store<u8>(out, 3, 1);
  memory.copy(out + 2, NAME, CHAT_NAME);
  memory.copy(out + 2 + CHAT_NAME, ADDRESSES + ADDRESS * direction, ADDRESS);
  memory.copy(out + 2 + CHAT_NAME + ADDRESS, ADDRESSES + ADDRESS * (1 - direction), ADDRESS);
}
const ABOUT: usize = 2 + 16 + 2 * 49;

/** In place: the nonce is before the text, and the tag goes behind it. */
export function sealMessage(direction: usize, nonce: usize, length: usize): void {
  const mark = here();
  const about = take(ABOUT);
  aboutOf(direction, about);
  seal(CHAT + 32 * direction, nonce, about, ABOUT, nonce + NONCE, length);
  giveBack(mark);
}

/** In place; `length` is without nonce and tag. */
export function openMessage(direction: usize, nonce: usize, length: usize): bool {
  const mark = here();
  const about = take(ABOUT);
  aboutOf(direction, about);
  const opened = open(CHAT + 32 * direction, nonce, about, ABOUT, nonce + NONCE, length);
  giveBack(mark);
  return opened;
}

export { CIPHERTEXT, KEY, NONCE, TAG };
