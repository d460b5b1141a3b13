/**
 * XChaCha20-Poly1305 (RFC 8439 with the longer nonce of draft-irtf-cfrg-xchacha): a nonce of 24 bytes may be drawn at random. No step depends on the data.
 */
import { giveBack, here, take } from './arena';

export const NONCE: usize = 24;
export const TAG: usize = 16;

@inline
function turn(x: v128, by: i32): v128 {
  return v128.or(i32x4.shl(x, by), i32x4.shr_u(x, 32 - by));
}

// expand 32-byte k
@inline
function constants(): v128 {
  return i32x4(0x61707865, 0x3320646e, 0x79622d32, 0x6b206574);
}

/** 64 bytes from key and the last row of the state (counter and nonce). `isBlock`: the state is added, as for a block of the stream; without it, HChaCha20. */
@inline
function mix(key: usize, last: v128, out: usize, isBlock: bool): void {
  const a0 = constants(), b0 = v128.load(key), c0 = v128.load(key, 16);
  let a = a0, b = b0, c = c0, d = last;
  for (let round = 0; round < 10; round++) {
    for (let half = 0; half < 2; half++) {
      a = i32x4.add(a, b); d = turn(v128.xor(d, a), 16);
      c = i32x4.add(c, d); b = turn(v128.xor(b, c), 12);
      a = i32x4.add(a, b); d = turn(v128.xor(d, a), 8);
      c = i32x4.add(c, d); b = turn(v128.xor(b, c), 7);
      // Diagonals after columns, and back.
      if (half == 0) {
        b = v128.shuffle<i32>(b, b, 1, 2, 3, 0);
        c = v128.shuffle<i32>(c, c, 2, 3, 0, 1);
        d = v128.shuffle<i32>(d, d, 3, 0, 1, 2);
      } else {
        b = v128.shuffle<i32>(b, b, 3, 0, 1, 2);
        c = v128.shuffle<i32>(c, c, 2, 3, 0, 1);
        d = v128.shuffle<i32>(d, d, 1, 2, 3, 0);
      }
    }
  }
  if (isBlock) {
    a = i32x4.add(a, a0); b = i32x4.add(b, b0); c = i32x4.add(c, c0); d = i32x4.add(d, last);
  }
  v128.store(out, a); v128.store(out, b, 16); v128.store(out, c, 32); v128.store(out, d, 48);
}

/** The key of the stream: the first and the last row of HChaCha20. */
function streamKey(key: usize, nonce: usize, out: usize): void {
  const mark = here();
  const block = take(64);
  mix(key, v128.load(nonce), block, false);
  memory.copy(out, block, 16);
  memory.copy(out + 16, block + 48, 16);
  giveBack(mark);
}

function block(key: usize, nonce: usize, counter: u32, out: usize): void {
  const mark = here();
  const last = take(16);
  store<u64>(last, <u64>counter);
  store<u64>(last, load<u64>(nonce, 16), 8);
  mix(key, v128.load(last), out, true);
  giveBack(mark);
}

/** In place, from block 1 on: block 0 is the key of the tag. */
function crypt(key: usize, nonce: usize, bytes: usize, length: usize): void {
  const mark = here();
  const stream = take(64);
  for (let i: usize = 0; i < length; i += 64) {
    block(key, nonce, <u32>(i >> 6) + 1, stream);
    const part = min<usize>(64, length - i);
    for (let j: usize = 0; j < part; j++) store<u8>(bytes + i + j, load<u8>(bytes + i + j) ^ load<u8>(stream + j));
  }
  giveBack(mark);
}

/** Poly1305 in five limbs of 26 bits; the running sum is in memory, 40 bytes. */
function addBlocks(sum: usize, key: usize, bytes: usize, length: usize): void {
  const mark = here();
  const padded = take(16);
  // The first half of the key without the bits that are always zero.
  const r0 = load<u64>(key) & 0x3ffffff;
  const r1 = (load<u64>(key) >> 26) & 0x3ffff03;
  const r2 = ((load<u64>(key) >> 52) | (load<u64>(key, 8) << 12)) & 0x3ffc0ff;
  const r3 = (load<u64>(key, 8) >> 14) & 0x3f03fff;
  const r4 = (load<u64>(key, 8) >> 40) & 0x00fffff;
  const s1 = 5 * r1, s2 = 5 * r2, s3 = 5 * r3, s4 = 5 * r4;
  let h0 = load<u64>(sum), h1 = load<u64>(sum, 8), h2 = load<u64>(sum, 16), h3 = load<u64>(sum, 24), h4 = load<u64>(sum, 32);
  for (let i: usize = 0; i < length; i += 16) {
    // What is not a whole block is filled up with zeros here, as the construction of RFC 8439 has it: every block counts as whole.
    let from = bytes + i;
    if (length - i < 16) {
      store<u64>(padded, 0);
      store<u64>(padded, 0, 8);
      memory.copy(padded, from, length - i);
      from = padded;
    }
    const low = load<u64>(from), high = load<u64>(from, 8);
    h0 += low & 0x3ffffff;
    h1 += (low >> 26) & 0x3ffffff;
    h2 += ((low >> 52) | (high << 12)) & 0x3ffffff;
    h3 += (high >> 14) & 0x3ffffff;
    h4 += (high >> 40) | (1 << 24);
    const d0 = h0 * r0 + h1 * s4 + h2 * s3 + h3 * s2 + h4 * s1;
    let d1 = h0 * r1 + h1 * r0 + h2 * s4 + h3 * s3 + h4 * s2;
    let d2 = h0 * r2 + h1 * r1 + h2 * r0 + h3 * s4 + h4 * s3;
    let d3 = h0 * r3 + h1 * r2 + h2 * r1 + h3 * r0 + h4 * s4;
    let d4 = h0 * r4 + h1 * r3 + h2 * r2 + h3 * r1 + h4 * r0;
    d1 += d0 >> 26; d2 += d1 >> 26; d3 += d2 >> 26; d4 += d3 >> 26;
    h0 = (d0 & 0x3ffffff) + 5 * (d4 >> 26);
    h1 = (d1 & 0x3ffffff) + (h0 >> 26);
    h0 &= 0x3ffffff;
    h2 = d2 & 0x3ffffff; h3 = d3 & 0x3ffffff; h4 = d4 & 0x3ffffff;
  }
  store<u64>(sum, h0); store<u64>(sum, h1, 8); store<u64>(sum, h2, 16); store<u64>(sum, h3, 24); store<u64>(sum, h4, 32);
  giveBack(mark);
}

/** The sum modulo 2^130 - 5, plus the second half of the key, modulo 2^128. */
function finishTag(sum: usize, key: usize, out: usize): void {
  let h0 = load<u64>(sum), h1 = load<u64>(sum, 8), h2 = load<u64>(sum, 16), h3 = load<u64>(sum, 24), h4 = load<u64>(sum, 32);
  for (let i = 0; i < 2; i++) {
    h1 += h0 >> 26; h0 &= 0x3ffffff;
    h2 += h1 >> 26; h1 &= 0x3ffffff;
    h3 += h2 >> 26; h2 &= 0x3ffffff;
    h4 += h3 >> 26; h3 &= 0x3ffffff;
    h0 += 5 * (h4 >> 26); h4 &= 0x3ffffff;
  }
  h1 += h0 >> 26; h0 &= 0x3ffffff;
  // Less 2^130 - 5, where that is not negative.
  const g0 = h0 + 5, g1 = h1 + (g0 >> 26), g2 = h2 + (g1 >> 26), g3 = h3 + (g2 >> 26);
  const g4 = h4 + (g3 >> 26) - (1 << 26);
  const keep = 0 - (g4 >> 63);
  h0 = (h0 & keep) | (g0 & 0x3ffffff & ~keep);
  h1 = (h1 & keep) | (g1 & 0x3ffffff & ~keep);
  h2 = (h2 & keep) | (g2 & 0x3ffffff & ~keep);
  h3 = (h3 & keep) | (g3 & 0x3ffffff & ~keep);
  h4 = (h4 & keep) | (g4 & 0x3ffffff & ~keep);
  const low = h0 | (h1 << 26) | (h2 << 52);
  const high = (h2 >> 12) | (h3 << 14) | (h4 << 40);
  const tag = low + load<u64>(key, 16);
  // The carry, without a comparison: the highest bit of (a & b) | ((a | b) & ~sum).
  const carry = ((low & load<u64>(key, 16)) | ((low | load<u64>(key, 16)) & ~tag)) >> 63;
  store<u64>(out, tag);
  store<u64>(out, high + load<u64>(key, 24) + carry, 8);
}

function tagOf(key: usize, nonce: usize, more: usize, moreLength: usize, bytes: usize, length: usize, out: usize): void {
  const mark = here();
  const first = take(64);
  const sum = take(40);
  const lengths = take(16);
  block(key, nonce, 0, first);
  memory.fill(sum, 0, 40);
  addBlocks(sum, first, more, moreLength);
  addBlocks(sum, first, bytes, length);
  store<u64>(lengths, moreLength);
  store<u64>(lengths, length, 8);
  addBlocks(sum, first, lengths, 16);
  finishTag(sum, first, out);
  giveBack(mark);
}

/** Encrypts in place; 16 bytes of tag go behind the text. */
export function seal(key: usize, nonce: usize, more: usize, moreLength: usize, bytes: usize, length: usize): void {
  const mark = here();
  const own = take(32);
  streamKey(key, nonce, own);
  crypt(own, nonce, bytes, length);
  tagOf(own, nonce, more, moreLength, bytes, length, bytes + length);
  giveBack(mark);
}

/** Decrypts in place what `seal` made; `length` is without the tag. On a wrong tag nothing is decrypted. */
export function open(key: usize, nonce: usize, more: usize, moreLength: usize, bytes: usize, length: usize): bool {
  const mark = here();
  const own = take(32);
  const tag = take(TAG);
  streamKey(key, nonce, own);
  tagOf(own, nonce, more, moreLength, bytes, length, tag);
  let difference: u32 = 0;
  for (let i: usize = 0; i < TAG; i++) difference |= load<u8>(tag + i) ^ load<u8>(bytes + length + i);
  if (difference == 0) crypt(own, nonce, bytes, length);
  giveBack(mark);
  return difference == 0;
}
