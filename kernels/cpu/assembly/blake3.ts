/**
 * BLAKE3 as SVC_POW_V1 needs it: inputs of one chunk, so a hash is a chain of compressions with counter 0.
 * `compress` does one message with scalar words: in a dependent chain (the cache) its latency beats vectors.
 * `compress4` does four messages at once, word w of message h in lane h of vector w: four independent hashes for
 * little more than the price of one.
 */

export const CHUNK_START: u32 = 1;
export const CHUNK_END: u32 = 2;
export const ROOT: u32 = 8;
/** One block that is the whole message. */
export const WHOLE: u32 = 11;

const IV0: u32 = 0x6a09e667;
const IV1: u32 = 0xbb67ae85;
const IV2: u32 = 0x3c6ef372;
const IV3: u32 = 0xa54ff53a;
const IV4: u32 = 0x510e527f;
const IV5: u32 = 0x9b05688c;
const IV6: u32 = 0x1f83d9ab;
const IV7: u32 = 0x5be0cd19;

/** Which message word each half of each G takes, round by round; a row is the row above permuted. */
const SCHEDULE: usize = memory.data<u8>([
  0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15,
  2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8,
  3, 4, 10, 12, 13, 2, 7, 14, 6, 5, 9, 0, 11, 15, 8, 1,
  10, 7, 12, 9, 14, 3, 13, 15, 4, 0, 11, 2, 5, 8, 1, 6,
  12, 13, 9, 11, 15, 10, 14, 8, 7, 2, 5, 3, 0, 1, 6, 4,
  9, 14, 11, 5, 8, 12, 15, 1, 13, 3, 0, 10, 2, 6, 4, 7,
  11, 15, 5, 0, 1, 9, 8, 6, 14, 10, 2, 12, 3, 4, 7, 13,
]);

@inline
function word(m: usize, s: usize, k: usize): u32 {
  return load<u32>(m + ((<usize>load<u8>(s + k)) << 2));
}

/** Message words at `m`, chaining value at `cv` (0: the initial one), 64 bytes of output at `out`, which may be `m`. */
export function compress(m: usize, cv: usize, length: u32, flags: u32, out: usize): void {
  let h0 = IV0, h1 = IV1, h2 = IV2, h3 = IV3, h4 = IV4, h5 = IV5, h6 = IV6, h7 = IV7;
  if (cv) {
    h0 = load<u32>(cv); h1 = load<u32>(cv, 4); h2 = load<u32>(cv, 8); h3 = load<u32>(cv, 12);
    h4 = load<u32>(cv, 16); h5 = load<u32>(cv, 20); h6 = load<u32>(cv, 24); h7 = load<u32>(cv, 28);
  }
  let a0 = h0, a1 = h1, a2 = h2, a3 = h3, b0 = h4, b1 = h5, b2 = h6, b3 = h7;
  let c0 = IV0, c1 = IV1, c2 = IV2, c3 = IV3, d0: u32 = 0, d1: u32 = 0, d2 = length, d3 = flags;
  for (let s = SCHEDULE, end = SCHEDULE + 112; s < end; s += 16) {
    a0 += b0 + word(m, s, 0); d0 = rotr(d0 ^ a0, 16); c0 += d0; b0 = rotr(b0 ^ c0, 12);
    a1 += b1 + word(m, s, 2); d1 = rotr(d1 ^ a1, 16); c1 += d1; b1 = rotr(b1 ^ c1, 12);
    a2 += b2 + word(m, s, 4); d2 = rotr(d2 ^ a2, 16); c2 += d2; b2 = rotr(b2 ^ c2, 12);
    a3 += b3 + word(m, s, 6); d3 = rotr(d3 ^ a3, 16); c3 += d3; b3 = rotr(b3 ^ c3, 12);
    a0 += b0 + word(m, s, 1); d0 = rotr(d0 ^ a0, 8); c0 += d0; b0 = rotr(b0 ^ c0, 7);
    a1 += b1 + word(m, s, 3); d1 = rotr(d1 ^ a1, 8); c1 += d1; b1 = rotr(b1 ^ c1, 7);
    a2 += b2 + word(m, s, 5); d2 = rotr(d2 ^ a2, 8); c2 += d2; b2 = rotr(b2 ^ c2, 7);
    a3 += b3 + word(m, s, 7); d3 = rotr(d3 ^ a3, 8); c3 += d3; b3 = rotr(b3 ^ c3, 7);
    a0 += b1 + word(m, s, 8); d3 = rotr(d3 ^ a0, 16); c2 += d3; b1 = rotr(b1 ^ c2, 12);
    a1 += b2 + word(m, s, 10); d0 = rotr(d0 ^ a1, 16); c3 += d0; b2 = rotr(b2 ^ c3, 12);
    a2 += b3 + word(m, s, 12); d1 = rotr(d1 ^ a2, 16); c0 += d1; b3 = rotr(b3 ^ c0, 12);
    a3 += b0 + word(m, s, 14); d2 = rotr(d2 ^ a3, 16); c1 += d2; b0 = rotr(b0 ^ c1, 12);
    a0 += b1 + word(m, s, 9); d3 = rotr(d3 ^ a0, 8); c2 += d3; b1 = rotr(b1 ^ c2, 7);
    a1 += b2 + word(m, s, 11); d0 = rotr(d0 ^ a1, 8); c3 += d0; b2 = rotr(b2 ^ c3, 7);
    a2 += b3 + word(m, s, 13); d1 = rotr(d1 ^ a2, 8); c0 += d1; b3 = rotr(b3 ^ c0, 7);
    a3 += b0 + word(m, s, 15); d2 = rotr(d2 ^ a3, 8); c1 += d2; b0 = rotr(b0 ^ c1, 7);
  }
  store<u32>(out, a0 ^ c0); store<u32>(out, a1 ^ c1, 4); store<u32>(out, a2 ^ c2, 8); store<u32>(out, a3 ^ c3, 12);
  store<u32>(out, b0 ^ d0, 16); store<u32>(out, b1 ^ d1, 20); store<u32>(out, b2 ^ d2, 24); store<u32>(out, b3 ^ d3, 28);
  store<u32>(out, c0 ^ h0, 32); store<u32>(out, c1 ^ h1, 36); store<u32>(out, c2 ^ h2, 40); store<u32>(out, c3 ^ h3, 44);
  store<u32>(out, d0 ^ h4, 48); store<u32>(out, d1 ^ h5, 52); store<u32>(out, d2 ^ h6, 56); store<u32>(out, d3 ^ h7, 60);
}

@inline
function vector(m: usize, s: usize, k: usize): v128 {
  return v128.load(m + ((<usize>load<u8>(s + k)) << 4));
}
@inline
function add(a: v128, b: v128): v128 { return i32x4.add(a, b); }
@inline
function xor(a: v128, b: v128): v128 { return v128.xor(a, b); }
@inline
function r16(a: v128): v128 { return v128.shuffle<u8>(a, a, 2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13); }
@inline
function r8(a: v128): v128 { return v128.shuffle<u8>(a, a, 1, 2, 3, 0, 5, 6, 7, 4, 9, 10, 11, 8, 13, 14, 15, 12); }
@inline
function r12(a: v128): v128 { return v128.or(i32x4.shr_u(a, 12), i32x4.shl(a, 20)); }
@inline
function r7(a: v128): v128 { return v128.or(i32x4.shr_u(a, 7), i32x4.shl(a, 25)); }

/** 16 message vectors at `m`, 8 chaining vectors at `cv` (0: the initial value), 16 vectors of output at `out`. */
export function compress4(m: usize, cv: usize, length: u32, flags: u32, out: usize): void {
  let h0 = i32x4.splat(IV0), h1 = i32x4.splat(IV1), h2 = i32x4.splat(IV2), h3 = i32x4.splat(IV3);
  let h4 = i32x4.splat(IV4), h5 = i32x4.splat(IV5), h6 = i32x4.splat(IV6), h7 = i32x4.splat(IV7);
  let c0 = h0, c1 = h1, c2 = h2, c3 = h3;
  if (cv) {
    h0 = v128.load(cv); h1 = v128.load(cv, 16); h2 = v128.load(cv, 32); h3 = v128.load(cv, 48);
    h4 = v128.load(cv, 64); h5 = v128.load(cv, 80); h6 = v128.load(cv, 96); h7 = v128.load(cv, 112);
  }
  let a0 = h0, a1 = h1, a2 = h2, a3 = h3, b0 = h4, b1 = h5, b2 = h6, b3 = h7;
  let d0 = i32x4.splat(0), d1 = d0, d2 = i32x4.splat(length), d3 = i32x4.splat(flags);
  for (let s = SCHEDULE, end = SCHEDULE + 112; s < end; s += 16) {
    a0 = add(add(a0, b0), vector(m, s, 0)); d0 = r16(xor(d0, a0)); c0 = add(c0, d0); b0 = r12(xor(b0, c0));
    a1 = add(add(a1, b1), vector(m, s, 2)); d1 = r16(xor(d1, a1)); c1 = add(c1, d1); b1 = r12(xor(b1, c1));
    a2 = add(add(a2, b2), vector(m, s, 4)); d2 = r16(xor(d2, a2)); c2 = add(c2, d2); b2 = r12(xor(b2, c2));
    a3 = add(add(a3, b3), vector(m, s, 6)); d3 = r16(xor(d3, a3)); c3 = add(c3, d3); b3 = r12(xor(b3, c3));
    a0 = add(add(a0, b0), vector(m, s, 1)); d0 = r8(xor(d0, a0)); c0 = add(c0, d0); b0 = r7(xor(b0, c0));
    a1 = add(add(a1, b1), vector(m, s, 3)); d1 = r8(xor(d1, a1)); c1 = add(c1, d1); b1 = r7(xor(b1, c1));
    a2 = add(add(a2, b2), vector(m, s, 5)); d2 = r8(xor(d2, a2)); c2 = add(c2, d2); b2 = r7(xor(b2, c2));
    a3 = add(add(a3, b3), vector(m, s, 7)); d3 = r8(xor(d3, a3)); c3 = add(c3, d3); b3 = r7(xor(b3, c3));
    a0 = add(add(a0, b1), vector(m, s, 8)); d3 = r16(xor(d3, a0)); c2 = add(c2, d3); b1 = r12(xor(b1, c2));
    a1 = add(add(a1, b2), vector(m, s, 10)); d0 = r16(xor(d0, a1)); c3 = add(c3, d0); b2 = r12(xor(b2, c3));
    a2 = add(add(a2, b3), vector(m, s, 12)); d1 = r16(xor(d1, a2)); c0 = add(c0, d1); b3 = r12(xor(b3, c0));
    a3 = add(add(a3, b0), vector(m, s, 14)); d2 = r16(xor(d2, a3)); c1 = add(c1, d2); b0 = r12(xor(b0, c1));
    a0 = add(add(a0, b1), vector(m, s, 9)); d3 = r8(xor(d3, a0)); c2 = add(c2, d3); b1 = r7(xor(b1, c2));
    a1 = add(add(a1, b2), vector(m, s, 11)); d0 = r8(xor(d0, a1)); c3 = add(c3, d0); b2 = r7(xor(b2, c3));
    a2 = add(add(a2, b3), vector(m, s, 13)); d1 = r8(xor(d1, a2)); c0 = add(c0, d1); b3 = r7(xor(b3, c0));
    a3 = add(add(a3, b0), vector(m, s, 15)); d2 = r8(xor(d2, a3)); c1 = add(c1, d2); b0 = r7(xor(b0, c1));
  }
  v128.store(out, xor(a0, c0)); v128.store(out, xor(a1, c1), 16); v128.store(out, xor(a2, c2), 32); v128.store(out, xor(a3, c3), 48);
  v128.store(out, xor(b0, d0), 64); v128.store(out, xor(b1, d1), 80); v128.store(out, xor(b2, d2), 96); v128.store(out, xor(b3, d3), 112);
  v128.store(out, xor(c0, h0), 128); v128.store(out, xor(c1, h1), 144); v128.store(out, xor(c2, h2), 160); v128.store(out, xor(c3, h3), 176);
  v128.store(out, xor(d0, h4), 192); v128.store(out, xor(d1, h5), 208); v128.store(out, xor(d2, h6), 224); v128.store(out, xor(d3, h7), 240);
}

/**
 * Four rows of four words, the rows `stride` bytes apart, become four vectors 16 bytes apart that hold word w of every
 * row (the other way round with `stride` 16 at the source and the wide one at the target).
 */
@inline
export function transpose(from: usize, stride: usize, to: usize, toStride: usize): void {
  const a = v128.load(from), b = v128.load(from + stride), c = v128.load(from + 2 * stride), d = v128.load(from + 3 * stride);
  const ab0 = v128.shuffle<u32>(a, b, 0, 4, 1, 5), ab1 = v128.shuffle<u32>(a, b, 2, 6, 3, 7);
  const cd0 = v128.shuffle<u32>(c, d, 0, 4, 1, 5), cd1 = v128.shuffle<u32>(c, d, 2, 6, 3, 7);
  v128.store(to, v128.shuffle<u64>(ab0, cd0, 0, 2));
  v128.store(to + toStride, v128.shuffle<u64>(ab0, cd0, 1, 3));
  v128.store(to + 2 * toStride, v128.shuffle<u64>(ab1, cd1, 0, 2));
  v128.store(to + 3 * toStride, v128.shuffle<u64>(ab1, cd1, 1, 3));
}
