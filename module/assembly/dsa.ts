/**
 * ML-DSA-65 (FIPS 204), pure mode, empty context: key from seed, signing, verification. A secret key exists only while it signs: it is made from the seed,
 * used and overwritten. Signing repeats until a signature fits (4 to 5 times on average); the number of rounds depends on the key, the message and fresh
 * randomness, as the standard allows, and no round branches on a coefficient.
 */
import { giveBack, here, take } from './arena';
import {
  highBits, isShort, lowBits, multiply, multiplyRow, POLY, positive, Q, transform, transformBack,
} from './dsa-ring';
import {
  CHALLENGE, packMask, sampleChallenge, sampleMask, sampleMatrix, sampleSecret, unpackMask,
} from './dsa-sampling';
import { absorb, absorbByte, finishShake, RATE_SHAKE256, SPONGE, squeeze, start } from './keccak';

const K: usize = 6;
const L: usize = 5;
const GAMMA1: i32 = 1 << 19;
const GAMMA2: i32 = 261888;
/** tau eta. */
const BETA: i32 = 196;
const OMEGA: i32 = 55;
const D: i32 = 13;
const MASK_BYTES: usize = 640;
const HINTS: usize = CHALLENGE + L * MASK_BYTES;
export const PUBLIC_KEY: usize = 32 + 320 * K;
export const SIGNATURE: usize = HINTS + <usize>OMEGA + K;

/** A key while it is in use. */
const RHO: usize = 0;
const SECRET: usize = 32;
const TR: usize = 64;
const S1: usize = 128;
const S2: usize = S1 + L * POLY;
const T0: usize = S2 + K * POLY;
const MATRIX: usize = T0 + K * POLY;
const PUBLIC: usize = MATRIX + K * L * POLY;
const KEY: usize = PUBLIC + PUBLIC_KEY;

/** H: SHAKE256 of what was absorbed. */
function hash(s: usize, out: usize, length: usize): void {
  finishShake(s, RATE_SHAKE256);
  squeeze(s, RATE_SHAKE256, out, length);
}

/** Ten bits a coefficient: four in five bytes. */
function packHigh(out: usize, p: usize): void {
  for (let i: usize = 0; i < POLY; i += 16, out += 5) {
    const four =
      <u64>load<u32>(p + i) | (<u64>load<u32>(p + i, 4) << 10) | (<u64>load<u32>(p + i, 8) << 20) | (<u64>load<u32>(p + i, 12) << 30);
    store<u32>(out, <u32>four);
    store<u8>(out, <u8>(four >> 32), 4);
  }
}

/** t1 2^d of a public key. */
function unpackHigh(p: usize, bytes: usize): void {
  for (let i: usize = 0; i < POLY; i += 16, bytes += 5) {
    const four = <u64>load<u32>(bytes) | (<u64>load<u8>(bytes, 4) << 32);
    store<i32>(p + i, <i32>(four & 1023) << D);
    store<i32>(p + i, <i32>((four >> 10) & 1023) << D, 4);
    store<i32>(p + i, <i32>((four >> 20) & 1023) << D, 8);
    store<i32>(p + i, <i32>(four >> 30) << D, 12);
  }
}

/** KeyGen_internal (algorithm 6). s1 and s2 stay as they were drawn; the public key is at PUBLIC. */
function makeKey(key: usize, seed: usize): void {
  const mark = here();
  const s = take(SPONGE);
  const drawn = take(128);
  const t = take(POLY);
  const transformed = take(L * POLY);
  start(s);
  absorb(s, RATE_SHAKE256, seed, 32);
  absorbByte(s, RATE_SHAKE256, <u32>K);
  absorbByte(s, RATE_SHAKE256, <u32>L);
  hash(s, drawn, 128);
  memory.copy(key + RHO, drawn, 32);
  memory.copy(key + PUBLIC, drawn, 32);
  memory.copy(key + SECRET, drawn + 96, 32);
  for (let i: usize = 0; i < L + K; i++) sampleSecret(key + S1 + i * POLY, drawn + 32, <u32>i);
  memory.copy(transformed, key + S1, L * POLY);
  for (let i: usize = 0; i < L; i++) transform(transformed + i * POLY);
  for (let i: usize = 0; i < K; i++) {
    const row = key + MATRIX + i * L * POLY;
    for (let j: usize = 0; j < L; j++) sampleMatrix(row + j * POLY, key + RHO, <u32>i, <u32>j);
    multiplyRow(t, row, transformed);
    transformBack(t);
    const s2 = key + S2 + i * POLY;
    const t0 = key + T0 + i * POLY;
    for (let j: usize = 0; j < POLY; j += 4) {
      // Power2Round (algorithm 35); the sum may be up to q + 3.
      let r = positive(load<i32>(t + j)) + load<i32>(s2 + j);
      r = positive(positive(r) - Q);
      const high = (r + (1 << (D - 1)) - 1) >> D;
      store<i32>(t0 + j, r - (high << D));
      store<i32>(t + j, high);
    }
    packHigh(key + PUBLIC + 32 + 320 * i, t);
  }
  start(s);
  absorb(s, RATE_SHAKE256, key + PUBLIC, PUBLIC_KEY);
  hash(s, key + TR, 64);
  giveBack(mark);
}

export function publicKey(seed: usize, out: usize): void {
  const mark = here();
  const key = take(KEY);
  makeKey(key, seed);
  memory.copy(out, key + PUBLIC, PUBLIC_KEY);
  giveBack(mark);
}

/** mu = H(tr || 0 || 0 || message): pure mode, no context. */
function messageHash(s: usize, tr: usize, message: usize, length: usize, mu: usize): void {
  start(s);
  absorb(s, RATE_SHAKE256, tr, 64);
  absorbByte(s, RATE_SHAKE256, 0);
  absorbByte(s, RATE_SHAKE256, 0);
  absorb(s, RATE_SHAKE256, message, length);
  hash(s, mu, 64);
}

/** Four bits a coefficient into the sponge. `bytes` has room for 128. */
function absorbHigh(s: usize, p: usize, bytes: usize): void {
  for (let i: usize = 0; i < 128; i++) store<u8>(bytes + i, load<u32>(p + 8 * i) | (load<u32>(p + 8 * i, 4) << 4));
  absorb(s, RATE_SHAKE256, bytes, 128);
}

/** Sign_internal (algorithm 7). `random` is 32 bytes: fresh ones, or zero for the deterministic variant. */
export function sign(seed: usize, message: usize, length: usize, random: usize, out: usize): void {
  const mark = here();
  const key = take(KEY);
  const s = take(SPONGE);
  const mu = take(64);
  const maskSeed = take(64);
  const y = take(L * POLY);
  const w = take(K * POLY);
  const z = take(L * POLY);
  const c = take(POLY);
  const t = take(POLY);
  const bytes = take(128);
  makeKey(key, seed);
  for (let i: usize = 0; i < L + K + K; i++) transform(key + S1 + i * POLY);
  messageHash(s, key + TR, message, length, mu);
  start(s);
  absorb(s, RATE_SHAKE256, key + SECRET, 32);
  absorb(s, RATE_SHAKE256, random, 32);
  absorb(s, RATE_SHAKE256, mu, 64);
  hash(s, maskSeed, 64);
  for (let kappa: u32 = 0; ; kappa += <u32>L) {
    for (let i: usize = 0; i < L; i++) sampleMask(y + i * POLY, maskSeed, kappa + <u32>i);
    memory.copy(z, y, L * POLY);
    for (let i: usize = 0; i < L; i++) transform(z + i * POLY);
    start(s);
    absorb(s, RATE_SHAKE256, mu, 64);
    for (let i: usize = 0; i < K; i++) {
      const wi = w + i * POLY;
      multiplyRow(wi, key + MATRIX + i * L * POLY, z);
      transformBack(wi);
      for (let j: usize = 0; j < POLY; j += 4) {
        const a = positive(load<i32>(wi + j));
        store<i32>(wi + j, a);
        store<i32>(t + j, highBits(a));
      }
      absorbHigh(s, t, bytes);
    }
    hash(s, out, CHALLENGE);
    sampleChallenge(c, out);
    transform(c);
    if (!answer(key, c, y, z, t)) continue;
    for (let i: usize = 0; i < L; i++) packMask(out + CHALLENGE + i * MASK_BYTES, z + i * POLY);
    if (hint(key, c, w, t, out + HINTS)) break;
  }
  giveBack(mark);
}

/** z = y + c s1; false when it would leak information. */
function answer(key: usize, c: usize, y: usize, z: usize, t: usize): bool {
  for (let i: usize = 0; i < L; i++) {
    multiply(t, c, key + S1 + i * POLY);
    transformBack(t);
    const zi = z + i * POLY;
    for (let j: usize = 0; j < POLY; j += 4) store<i32>(zi + j, centred(load<i32>(y + i * POLY + j) + load<i32>(t + j)));
    if (!isShort(zi, GAMMA1 - BETA)) return false;
  }
  return true;
}

/** To between -q/2 and q/2, for |a| up to 1.5 q; what is between -2 q and 2 q comes to between -q and q at least. */
@inline
function centred(a: i32): i32 {
  const p = positive(positive(a) - Q);
  return p - ((((Q >> 1) - p) >> 31) & Q);
}

/** The hint (algorithms 39 and 20) of w - c s2 + c t0; false when a bound is broken and the round counts for nothing. */
function hint(key: usize, c: usize, w: usize, t: usize, out: usize): bool {
  memory.fill(out, 0, <usize>OMEGA + K);
  let ones: i32 = 0;
  for (let i: usize = 0; i < K; i++) {
    const wi = w + i * POLY;
    multiply(t, c, key + S2 + i * POLY);
    transformBack(t);
    for (let j: usize = 0; j < POLY; j += 4) {
      const a = positive(load<i32>(wi + j) - positive(load<i32>(t + j)));
      store<i32>(wi + j, a);
      store<i32>(t + j, lowBits(a, highBits(a)));
    }
    if (!isShort(t, GAMMA2 - BETA)) return false;
    multiply(t, c, key + T0 + i * POLY);
    transformBack(t);
    if (!isShort(t, GAMMA2)) return false;
    for (let j: usize = 0; j < POLY; j += 4) {
      const a = load<i32>(wi + j);
      const moved = positive(positive(load<i32>(t + j)) + a - Q);
      // Hints are public as soon as they are in a signature, and a round with too many counts for nothing.
      if (highBits(a) != highBits(moved)) {
        if (ones == OMEGA) return false;
        store<u8>(out + <usize>ones, <u8>(j >> 2));
        ones++;
      }
    }
    store<u8>(out + <usize>OMEGA + i, <u8>ones);
  }
  return true;
}

/** Verify_internal (algorithm 8). Everything in it is public. */
export function verify(key: usize, message: usize, length: usize, signature: usize): bool {
  const mark = here();
  const valid = isValid(key, message, length, signature);
  giveBack(mark);
  return valid;
}

function isValid(key: usize, message: usize, length: usize, signature: usize): bool {
  const hints = signature + HINTS;
  if (!isHintCanonical(hints)) return false;
  const s = take(SPONGE);
  const mu = take(64);
  const z = take(L * POLY);
  const row = take(L * POLY);
  const c = take(POLY);
  const t = take(POLY);
  const w = take(POLY);
  const bytes = take(128);
  for (let i: usize = 0; i < L; i++) {
    unpackMask(z + i * POLY, signature + CHALLENGE + i * MASK_BYTES);
    if (!isShort(z + i * POLY, GAMMA1 - BETA)) return false;
    transform(z + i * POLY);
  }
  start(s);
  absorb(s, RATE_SHAKE256, key, PUBLIC_KEY);
  hash(s, mu, 64);
  messageHash(s, mu, message, length, mu);
  sampleChallenge(c, signature);
  transform(c);
  start(s);
  absorb(s, RATE_SHAKE256, mu, 64);
  let at: usize = 0;
  for (let i: usize = 0; i < K; i++) {
    for (let j: usize = 0; j < L; j++) sampleMatrix(row + j * POLY, key, <u32>i, <u32>j);
    multiplyRow(w, row, z);
    unpackHigh(t, key + 32 + 320 * i);
    transform(t);
    multiply(t, c, t);
    // Between -2 q and 2 q, and the way back needs half of that.
    for (let j: usize = 0; j < POLY; j += 4) store<i32>(w + j, centred(load<i32>(w + j) - load<i32>(t + j)));
    transformBack(w);
    for (let j: usize = 0; j < POLY; j += 4) {
      const a = positive(load<i32>(w + j));
      store<i32>(w + j, a);
      store<i32>(t + j, highBits(a));
    }
    // UseHint (algorithm 40), for the coefficients that have one.
    for (const end = <usize>load<u8>(hints + <usize>OMEGA + i); at < end; at++) {
      const j = 4 * <usize>load<u8>(hints + at);
      const a = load<i32>(w + j);
      const high = load<i32>(t + j);
      store<i32>(t + j, (high + (lowBits(a, high) > 0 ? 1 : 15)) & 15);
    }
    absorbHigh(s, t, bytes);
  }
  hash(s, mu, CHALLENGE);
  for (let i: usize = 0; i < CHALLENGE; i++) if (load<u8>(mu + i) != load<u8>(signature + i)) return false;
  return true;
}

/** HintBitUnpack (algorithm 21): places ascend inside a polynomial, and what is not used is zero. One signature, one spelling. */
function isHintCanonical(hints: usize): bool {
  let at: i32 = 0;
  for (let i: usize = 0; i < K; i++) {
    const end = <i32>load<u8>(hints + <usize>OMEGA + i);
    if (end < at || end > OMEGA) return false;
    for (let first = at; at < end; at++)
      if (at > first && load<u8>(hints + <usize>at - 1) >= load<u8>(hints + <usize>at)) return false;
  }
  for (; at < OMEGA; at++) if (load<u8>(hints + <usize>at) != 0) return false;
  return true;
}
