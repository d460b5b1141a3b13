/**
 * AES-256-GCM (FIPS 197, SP 800-38D) for the few hundred bytes of a wallet file. No tables: the S-box is computed as the inverse in GF(2^8) and its affine
 * map, and GHASH bit by bit with masks, so that neither time nor cache lines depend on the key or the text. Slow, and fast enough.
 */
import { giveBack, here, take } from './arena';

const ROUNDS: usize = 14;
const TAG: usize = 16;

/** Eight bytes at once: times x in GF(2^8), modulo x^8 + x^4 + x^3 + x + 1. */
@inline
function double(a: u64): u64 {
  const high = (a >> 7) & 0x0101010101010101;
  return ((a & 0x7f7f7f7f7f7f7f7f) << 1) ^ (high * 0x1b);
}

function product(a: u64, b: u64): u64 {
  let sum: u64 = 0;
  for (let i = 0; i < 8; i++) {
    const bit = b & 0x0101010101010101;
    sum ^= a & (bit * 0xff);
    a = double(a);
    b = (b >> 1) & 0x7f7f7f7f7f7f7f7f;
  }
  return sum;
}

@inline
function turnBytes(a: u64, by: u64): u64 {
  const low: u64 = (0xff << by) & 0xff;
  const mask = low * 0x0101010101010101;
  return ((a << by) & mask) | ((a >> (8 - by)) & ~mask);
}

/** The S-box of eight bytes: a^254, then the affine map. */
function substitute(a: u64): u64 {
  const a2 = product(a, a);
  const a3 = product(a2, a);
  const a6 = product(a3, a3);
  const a12 = product(a6, a6);
  const a15 = product(a12, a3);
  const a30 = product(a15, a15);
  const a60 = product(a30, a30);
  const a120 = product(a60, a60);
  const a126 = product(a120, a6);
  const a127 = product(a126, a);
  const b = product(a127, a127);
  return b ^ turnBytes(b, 1) ^ turnBytes(b, 2) ^ turnBytes(b, 3) ^ turnBytes(b, 4) ^ 0x6363636363636363;
}

/** 15 round keys of 16 bytes. */
function expandKey(key: usize, out: usize): void {
  memory.copy(out, key, 32);
  let constant: u32 = 1;
  for (let i: usize = 8; i < 60; i++) {
    let word = load<u32>(out + 4 * i - 4);
    if ((i & 7) == 0) {
      word = <u32>substitute(<u64>rotr<u32>(word, 8)) ^ constant;
      constant <<= 1;
    } else if ((i & 7) == 4) word = <u32>substitute(<u64>word);
    store<u32>(out + 4 * i, load<u32>(out + 4 * i - 32) ^ word);
  }
}

function encryptBlock(keys: usize, block: usize, out: usize): void {
  const mark = here();
  const s = take(16);
  const t = take(16);
  for (let i: usize = 0; i < 16; i += 8) store<u64>(s + i, load<u64>(block + i) ^ load<u64>(keys + i));
  for (let round: usize = 1; round <= ROUNDS; round++) {
    for (let i: usize = 0; i < 16; i += 8) store<u64>(t + i, substitute(load<u64>(s + i)));
    // Row r of column c comes from column c + r.
    for (let i: usize = 0; i < 16; i++) store<u8>(s + i, load<u8>(t + ((i + 4 * (i & 3)) & 15)));
    if (round < ROUNDS)
      for (let i: usize = 0; i < 16; i += 4) {
        const column = load<u32>(s + i);
        const twice = <u32>double(<u64>column);
        const next = rotr<u32>(column, 8);
        store<u32>(s + i, twice ^ rotr<u32>(twice, 8) ^ next ^ rotr<u32>(column, 16) ^ rotr<u32>(column, 24));
      }
    for (let i: usize = 0; i < 16; i += 8) store<u64>(s + i, load<u64>(s + i) ^ load<u64>(keys + 16 * round + i));
  }
  memory.copy(out, s, 16);
  giveBack(mark);
}

/** hash = (hash ^ block) h in GF(2^128), most significant bit first. */
function ghashBlock(hash: usize, h: usize, block: usize): void {
  const x0 = bswap<u64>(load<u64>(hash) ^ load<u64>(block));
  const x1 = bswap<u64>(load<u64>(hash, 8) ^ load<u64>(block, 8));
  let v0 = bswap<u64>(load<u64>(h)), v1 = bswap<u64>(load<u64>(h, 8));
  let z0: u64 = 0, z1: u64 = 0;
  for (let i: u64 = 0; i < 128; i++) {
    const bit = i < 64 ? (x0 >> (63 - i)) & 1 : (x1 >> (127 - i)) & 1;
    const take = 0 - bit;
    z0 ^= v0 & take;
    z1 ^= v1 & take;
    const carry = 0 - (v1 & 1);
    v1 = (v1 >> 1) | (v0 << 63);
    v0 = (v0 >> 1) ^ (carry & 0xe100000000000000);
  }
  store<u64>(hash, bswap<u64>(z0));
  store<u64>(hash, bswap<u64>(z1), 8);
}

function ghash(hash: usize, h: usize, bytes: usize, length: usize): void {
  const mark = here();
  const block = take(16);
  for (let i: usize = 0; i < length; i += 16) {
    memory.fill(block, 0, 16);
    memory.copy(block, bytes + i, min<usize>(16, length - i));
    ghashBlock(hash, h, block);
  }
  giveBack(mark);
}

/** Counter mode from block 2 on, in place. */
function crypt(keys: usize, nonce: usize, bytes: usize, length: usize): void {
  const mark = here();
  const counter = take(16);
  const stream = take(16);
  memory.copy(counter, nonce, 12);
  for (let i: usize = 0; i < length; i += 16) {
    store<u32>(counter, bswap<u32>(<u32>(i / 16) + 2), 12);
    encryptBlock(keys, counter, stream);
    const part = min<usize>(16, length - i);
    for (let j: usize = 0; j < part; j++) store<u8>(bytes + i + j, load<u8>(bytes + i + j) ^ load<u8>(stream + j));
  }
  giveBack(mark);
}

function tagOf(keys: usize, nonce: usize, more: usize, moreLength: usize, bytes: usize, length: usize, out: usize): void {
  const mark = here();
  const h = take(16);
  const hash = take(16);
  const block = take(16);
  memory.fill(block, 0, 16);
  memory.fill(hash, 0, 16);
  encryptBlock(keys, block, h);
  ghash(hash, h, more, moreLength);
  ghash(hash, h, bytes, length);
  store<u64>(block, bswap<u64>(<u64>moreLength << 3));
  store<u64>(block, bswap<u64>(<u64>length << 3), 8);
  ghashBlock(hash, h, block);
  memory.copy(block, nonce, 12);
  store<u32>(block, bswap<u32>(1), 12);
  encryptBlock(keys, block, h);
  for (let i: usize = 0; i < 16; i += 8) store<u64>(out + i, load<u64>(h + i) ^ load<u64>(hash + i));
  giveBack(mark);
}

/** Encrypts in place; 16 bytes of tag go behind the text. */
export function seal(key: usize, nonce: usize, more: usize, moreLength: usize, bytes: usize, length: usize): void {
  const mark = here();
  const keys = take(240);
  expandKey(key, keys);
  crypt(keys, nonce, bytes, length);
  tagOf(keys, nonce, more, moreLength, bytes, length, bytes + length);
  giveBack(mark);
}

/** Decrypts in place what `seal` made; `length` is without the tag. On a wrong tag nothing is decrypted. */
export function open(key: usize, nonce: usize, more: usize, moreLength: usize, bytes: usize, length: usize): bool {
  const mark = here();
  const keys = take(240);
  const tag = take(TAG);
  expandKey(key, keys);
  tagOf(keys, nonce, more, moreLength, bytes, length, tag);
  let difference: u32 = 0;
  for (let i: usize = 0; i < TAG; i++) difference |= load<u8>(tag + i) ^ load<u8>(bytes + length + i);
  if (difference == 0) crypt(keys, nonce, bytes, length);
  giveBack(mark);
  return difference == 0;
}
