/**
 * Wallet roots (keys rules 1 to 6): the entropy and passphrase of a wallet and the first step of its keys, held here until they are freed. What follows from
 * them is derived when it is needed and overwritten after it.
 */
import { giveBack, here, take } from './arena';
import { publicKey, sign } from './dsa';
import { hmac512, pbkdf2_512 } from './hmac';
import { sha256 } from './sha2';

const ROOTS: i32 = 32;
export const MAX_PASSPHRASE: usize = 1024;
const USED: usize = 0;
const LENGTH: usize = 4;
const NETWORK: usize = 8;
const ENTROPY: usize = 16;
/** Secret and chain code of root / network. */
const CHAIN: usize = 48;
const PASSPHRASE: usize = 112;
const ROOT: usize = PASSPHRASE + MAX_PASSPHRASE;
const TABLE: usize = memory.data(ROOT * 32, 16);

/** The English list of BIP-39, brought by the host: 2,048 words of 8 bytes, shorter ones filled up with zeros. */
export const WORDS: usize = memory.data(2048 * 8, 16);

const ROOT_LABEL: usize = memory.data<u8>([
  // SVC_WALLET_ROOT_V1
  0x53, 0x56, 0x43, 0x5f, 0x57, 0x41, 0x4c, 0x4c, 0x45, 0x54, 0x5f, 0x52, 0x4f, 0x4f, 0x54, 0x5f, 0x56, 0x31,
]);
const SALT: usize = memory.data<u8>([
  // mnemonic
  0x6d, 0x6e, 0x65, 0x6d, 0x6f, 0x6e, 0x69, 0x63,
]);

@inline
function rootAt(handle: i32): usize {
  return TABLE + <usize>handle * ROOT;
}

export function isRoot(handle: i32): bool {
  return handle >= 0 && handle < ROOTS && load<u32>(rootAt(handle), USED) == 1;
}

/** The words of an entropy with one space between them. Looks at the whole list for each word: which one it takes does not show in the time. */
function phrase(entropy: usize, out: usize): usize {
  const mark = here();
  const bits = take(64);
  memory.copy(bits, entropy, 32);
  sha256(entropy, 32, bits + 32);
  let at: usize = 0;
  for (let i: usize = 0; i < 24; i++) {
    const bit = 11 * i;
    const three = bswap<u32>(load<u32>(bits + (bit >> 3)));
    const index = (three >> (21 - <u32>(bit & 7))) & 2047;
    let word: u64 = 0;
    for (let j: u32 = 0; j < 2048; j++) {
      const other = <u64>(j ^ index);
      // All ones where j is the index.
      word |= load<u64>(WORDS + 8 * <usize>j) & ((other - 1) >> 63) * 0xffffffffffffffff;
    }
    // The length, without looking for its end: how many of the eight bytes are not zero.
    let length: usize = 0;
    for (let j: u64 = 0; j < 64; j += 8) length += <usize>((((word >> j) & 0xff) + 0xff) >> 8);
    store<u64>(out + at, word);
    store<u8>(out + at + length, 0x20);
    at += length + 1;
  }
  giveBack(mark);
  return at - 1;
}

/** A hardened step (keys rule 4) from the chain at `parent` to the one at `out`, which may be the same. */
function step(parent: usize, index: u32, out: usize): void {
  const mark = here();
  const data = take(40);
  store<u8>(data, 0);
  memory.copy(data + 1, parent, 32);
  store<u32>(data + 33, bswap<u32>(index | 0x80000000));
  hmac512(parent + 32, 32, data, 37, out);
  giveBack(mark);
}

/** A handle, or -1 when all places are taken. `normal` is the passphrase in NFKD, `passphrase` as it was given; both are UTF-8. */
export function openRoot(
  entropy: usize,
  passphrase: usize,
  length: usize,
  normal: usize,
  normalLength: usize,
  network: u32,
): i32 {
  let handle: i32 = 0;
  while (handle < ROOTS && isRoot(handle)) handle++;
  if (handle == ROOTS) return -1;
  const mark = here();
  const root = rootAt(handle);
  const words = take(24 * 9 + 16);
  const salt = take(8 + normalLength + 4);
  const seed = take(64);
  const count = phrase(entropy, words);
  memory.copy(salt, SALT, 8);
  memory.copy(salt + 8, normal, normalLength);
  pbkdf2_512(words, count, salt, 8 + normalLength, 2048, seed);
  hmac512(ROOT_LABEL, 18, seed, 64, seed);
  step(seed, network, root + CHAIN);
  store<u32>(root, 1, USED);
  store<u32>(root, <u32>length, LENGTH);
  store<u32>(root, network, NETWORK);
  memory.copy(root + ENTROPY, entropy, 32);
  memory.copy(root + PASSPHRASE, passphrase, length);
  giveBack(mark);
  return handle;
}

export function freeRoot(handle: i32): void {
  memory.fill(rootAt(handle), 0, ROOT);
}

/** Secret and chain code of root / network: 64 bytes, for what is no key of a path. */
export function chainOf(handle: i32): usize {
  return rootAt(handle) + CHAIN;
}

export function entropyOf(handle: i32): usize {
  return rootAt(handle) + ENTROPY;
}
export function passphraseOf(handle: i32): usize {
  return rootAt(handle) + PASSPHRASE;
}
export function passphraseLength(handle: i32): usize {
  return load<u32>(rootAt(handle), LENGTH);
}

/** The seed of the key at a path (keys rule 5): 32 bytes, then 32 that nobody needs. */
function seedOf(handle: i32, account: u32, branch: u32, index: u32, out: usize): void {
  step(rootAt(handle) + CHAIN, account, out);
  step(out, branch, out);
  step(out, index, out);
}

export function derivePublicKey(handle: i32, account: u32, branch: u32, index: u32, out: usize): void {
  const mark = here();
  const seed = take(64);
  seedOf(handle, account, branch, index, seed);
  publicKey(seed, out);
  giveBack(mark);
}

/** `random` is where the host has drawn 32 bytes; they are overwritten. */
export function signWith(
  handle: i32, account: u32, branch: u32, index: u32, message: usize, length: usize, random: usize, out: usize,
): void {
  const mark = here();
  const seed = take(64);
  seedOf(handle, account, branch, index, seed);
  sign(seed, message, length, random, out);
  memory.fill(random, 0, 32);
  giveBack(mark);
}
