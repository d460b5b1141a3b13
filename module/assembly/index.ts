/**
 * What the host may call. Bytes go through the exchange buffer, at places that the host chooses inside it; every place is checked here, so that no call reads or
 * writes anything else. Secrets that came in are overwritten by the call that took them.
 */
import * as gcm from './aes-gcm';
import { EXCHANGE, EXCHANGE_BYTES, giveBack, here, take } from './arena';
import * as dsa from './dsa';
import * as messenger from './messenger';
import * as roots from './roots';
import { scrypt as stretch } from './scrypt';
import * as sha2 from './sha2';

/** Fills bytes of this memory with random ones: the one thing that the module takes from outside. */
@external("env", "random")
declare function random(at: usize, length: usize): void;

export function exchange(): usize {
  return EXCHANGE;
}
export function exchangeBytes(): usize {
  return EXCHANGE_BYTES;
}
export function words(): usize {
  return roots.WORDS;
}

/** A place in the exchange buffer with `length` bytes behind it. */
function place(offset: usize, length: usize): usize {
  if (offset > EXCHANGE_BYTES || length > EXCHANGE_BYTES - offset) unreachable();
  return EXCHANGE + offset;
}

function root(handle: i32): i32 {
  if (!roots.isRoot(handle)) unreachable();
  return handle;
}

export function sha384(offset: usize, length: usize, out: usize): void {
  sha2.sha384(place(offset, length), length, place(out, 48));
}

export function verify(key: usize, message: usize, length: usize, signature: usize): bool {
  return dsa.verify(
    place(key, dsa.PUBLIC_KEY), place(message, length), length, place(signature, dsa.SIGNATURE),
  );
}

/** Entropy, passphrase as given and passphrase in NFKD are overwritten. -1: too many roots. */
export function openRoot(entropy: usize, passphrase: usize, length: usize, normal: usize, normalLength: usize, network: u32): i32 {
  if (length > roots.MAX_PASSPHRASE) unreachable();
  const handle = roots.openRoot(
    place(entropy, 32), place(passphrase, length), length, place(normal, normalLength), normalLength, network,
  );
  memory.fill(place(entropy, 32), 0, 32);
  memory.fill(place(passphrase, length), 0, length);
  memory.fill(place(normal, normalLength), 0, normalLength);
  return handle;
}

export function freeRoot(handle: i32): void {
  roots.freeRoot(root(handle));
}

export function derivePublicKey(handle: i32, account: u32, branch: u32, index: u32, out: usize): void {
  roots.derivePublicKey(root(handle), account, branch, index, place(out, dsa.PUBLIC_KEY));
}

/** Hedged: 32 fresh random bytes for every signature (keys rule 8). */
export function sign(handle: i32, account: u32, branch: u32, index: u32, message: usize, length: usize, out: usize): void {
  const mark = here();
  const fresh = take(32);
  random(fresh, 32);
  roots.signWith(
    root(handle), account, branch, index, place(message, length), length, fresh, place(out, dsa.SIGNATURE),
  );
  giveBack(mark);
}

export function messengerKey(handle: i32, address: usize, out: usize): void {
  messenger.messengerKey(root(handle), place(address, messenger.ADDRESS), place(out, messenger.KEY));
}

/** The ciphertext that accepts a request with this key goes to `out`. False: the key is none. */
export function messengerAccept(handle: i32, request: usize, key: usize, out: usize): bool {
  return messenger.accept(
    root(handle), place(request, messenger.TRANSACTION), place(key, messenger.KEY), place(out, messenger.CIPHERTEXT),
  );
}

/** Works out the keys of a chat. The addresses of requester and accepter follow each other. `secret`: the ciphertext for the requester, else the key of the request. */
export function openChat(handle: i32, isRequester: bool, request: usize, addresses: usize, secret: usize): bool {
  const name = place(request, messenger.TRANSACTION);
  const requester = place(addresses, 2 * messenger.ADDRESS);
  const accepter = requester + messenger.ADDRESS;
  if (!isRequester) return messenger.openAccepted(root(handle), name, requester, accepter, place(secret, messenger.KEY));
  messenger.openRequested(root(handle), name, requester, accepter, place(secret, messenger.CIPHERTEXT));
  return true;
}

export function closeChat(): void {
  messenger.closeChat();
}

/** In place: 24 bytes of nonce are drawn before the text, and 16 of tag go behind it. `direction`: 0 from the requester, 1 from the accepter. */
export function sealMessage(direction: u32, nonce: usize, length: usize): void {
  const at = place(nonce, messenger.NONCE + length + messenger.TAG);
  random(at, messenger.NONCE);
  messenger.sealMessage(direction & 1, at, length);
}

/** In place what `sealMessage` made: `length` is that of the text. */
export function openMessage(direction: u32, nonce: usize, length: usize): bool {
  return messenger.openMessage(direction & 1, place(nonce, messenger.NONCE + length + messenger.TAG), length);
}

/**
 * Seals entropy and passphrase as the wallet's file does: `{"entropy":"HEX","passphrase":"..."}` with the passphrase as JSON text, which is at `text`. The key of 32 bytes
 * is overwritten. The sealed bytes with their tag go to `out`; returns their number.
 */
export function sealRoot(handle: i32, key: usize, nonce: usize, more: usize, moreLength: usize, text: usize, textLength: usize, out: usize): usize {
  const length = HEAD_BYTES + 64 + MIDDLE_BYTES + textLength + 1;
  const to = place(out, length + 16);
  const from = roots.entropyOf(root(handle));
  memory.copy(to, HEAD, HEAD_BYTES);
  let at = to + HEAD_BYTES;
  for (let i: usize = 0; i < 32; i++, at += 2) {
    const byte = <u32>load<u8>(from + i);
    store<u8>(at, digit(byte >> 4));
    store<u8>(at, digit(byte & 15), 1);
  }
  memory.copy(at, MIDDLE, MIDDLE_BYTES);
  memory.copy(at + MIDDLE_BYTES, place(text, textLength), textLength);
  store<u8>(to + length - 1, 0x7d);
  gcm.seal(place(key, 32), place(nonce, 12), place(more, moreLength), moreLength, to, length);
  memory.fill(place(key, 32), 0, 32);
  memory.fill(place(text, textLength), 0, textLength);
  return length + 16;
}

/**
 * Opens what `sealRoot` or the wallet sealed, in place. The entropy goes to `entropy`, and the passphrase as JSON text to the start of `box`. Returns the length of that
 * text, -1 when the tag is wrong, -2 when something else is sealed.
 */
export function openSealed(key: usize, nonce: usize, more: usize, moreLength: usize, box: usize, boxLength: usize, entropy: usize): i32 {
  if (boxLength < 17) unreachable();
  const length = boxLength - 16;
  const at = place(box, boxLength);
  const opened = gcm.open(place(key, 32), place(nonce, 12), place(more, moreLength), moreLength, at, length);
  memory.fill(place(key, 32), 0, 32);
  if (!opened) return -1;
  const found = readSealed(at, length, place(entropy, 32));
  if (found < 0) memory.fill(at, 0, boxLength);
  return found;
}

function readSealed(at: usize, length: usize, entropy: usize): i32 {
  const fixed = HEAD_BYTES + 64 + MIDDLE_BYTES;
  if (length < fixed + 3 || memory.compare(at, HEAD, HEAD_BYTES) != 0) return -2;
  if (memory.compare(at + HEAD_BYTES + 64, MIDDLE, MIDDLE_BYTES) != 0 || load<u8>(at + length - 1) != 0x7d) return -2;
  let wrong: u32 = 0;
  for (let i: usize = 0; i < 32; i++) {
    const high = value(load<u8>(at + HEAD_BYTES + 2 * i)), low = value(load<u8>(at + HEAD_BYTES + 2 * i, 1));
    wrong |= (high | low) & 0x80;
    store<u8>(entropy + i, (high << 4) | (low & 15));
  }
  if (wrong) {
    memory.fill(entropy, 0, 32);
    return -2;
  }
  const text = length - fixed - 1;
  memory.copy(at, at + fixed, text);
  memory.fill(at + text, 0, length - text);
  return <i32>text;
}

/** A digit of lower-case hex, without a branch or a table. */
@inline
function digit(nibble: u32): u8 {
  return <u8>(nibble + 0x30 + (((9 - nibble) >> 31) * 39));
}
/** The value of a digit of lower-case hex; 0x80 or more for anything else. */
@inline
function value(character: u32): u32 {
  const number = character - 0x30;
  const letter = character - 0x61 + 10;
  const isNumber = 0 - (((number - 10) >> 31) & ~(number >> 31));
  const isLetter = 0 - (((letter - 16) >> 31) & ((9 - letter) >> 31));
  return (number & isNumber) | (letter & isLetter) | (0x80 & ~(isNumber | isLetter));
}

// {"entropy":"
const HEAD: usize = memory.data<u8>([0x7b, 0x22, 0x65, 0x6e, 0x74, 0x72, 0x6f, 0x70, 0x79, 0x22, 0x3a, 0x22]);
const HEAD_BYTES: usize = 12;
// ","passphrase":
const MIDDLE: usize = memory.data<u8>([
  0x22, 0x2c, 0x22, 0x70, 0x61, 0x73, 0x73, 0x70, 0x68, 0x72, 0x61, 0x73, 0x65, 0x22, 0x3a,
]);
const MIDDLE_BYTES: usize = 15;

/** Where the passphrase of a root is, and how long it is: the host reads it to write it as JSON. */
export function passphraseAt(handle: i32): usize {
  return roots.passphraseOf(root(handle));
}
export function passphraseLength(handle: i32): usize {
  return roots.passphraseLength(root(handle));
}

/** For an instance that does nothing else: grows the memory for the table, and overwrites all of it and the password. 0: there is not enough memory. */
export function scrypt(password: usize, passwordLength: usize, salt: usize, saltLength: usize, log2N: u32, out: usize): i32 {
  if (log2N < 10 || log2N > 18) unreachable();
  const from = place(password, passwordLength);
  // Four bytes of room behind the salt for the number of the block.
  const salted = place(salt, saltLength + 4);
  const to = place(out, 32);
  const first = memory.grow(1 << (log2N - 6));
  if (first < 0) return 0;
  stretch(from, passwordLength, salted, saltLength, <u32>1 << log2N, <usize>first << 16, to);
  memory.fill(from, 0, passwordLength);
  return 1;
}
