/**
 * ML-KEM-768 (FIPS 203): keys from a seed, encapsulation with a given coin, decapsulation with implicit rejection. A private key is kept as its seed of 64 bytes (d, z)
 * and worked out anew. The matrix is public, and so is the time that drawing it takes; nothing else depends on what it works on.
 */
import { giveBack, here, take } from './arena';
import {
  absorb, absorbByte, finishSha3, finishShake, permute, RATE_SHA3_256, RATE_SHA3_512, RATE_SHAKE128, RATE_SHAKE256, SPONGE, squeeze,
  start,
} from './keccak';
import {
  add, multiplyRow, pack1, pack10, pack12, pack4, POLY, Q, raise, subtractFrom, transform, transformBack, unpack1, unpack10, unpack12,
  unpack4,
} from './kem-ring';

const K: usize = 3;
const VECTOR: usize = K * POLY;
const PACKED: usize = 384;
const COMPRESSED: usize = 320;
export const KEY: usize = K * PACKED + 32;
export const CIPHERTEXT: usize = K * COMPRESSED + 128;
export const SEED: usize = 64;

/** SampleNTT (algorithm 7): entry (row, column) of the matrix. */
function sampleMatrix(out: usize, rho: usize, row: u32, column: u32): void {
  const mark = here();
  const s = take(SPONGE);
  start(s);
  absorb(s, RATE_SHAKE128, rho, 32);
  absorbByte(s, RATE_SHAKE128, column);
  absorbByte(s, RATE_SHAKE128, row);
  finishShake(s, RATE_SHAKE128);
  const end = out + POLY;
  while (out < end) {
    for (let i = s; i < s + RATE_SHAKE128 && out < end; i += 3) {
      const three = load<u32>(i);
      const low = <i32>(three & 0xfff), high = <i32>((three >> 12) & 0xfff);
      if (low < Q) {
        store<i16>(out, <i16>low);
        out += 2;
      }
      if (high < Q && out < end) {
        store<i16>(out, <i16>high);
        out += 2;
      }
    }
    permute(s);
  }
  giveBack(mark);
}

/** SamplePolyCBD (algorithm 8) for eta = 2: each half-byte is a difference of two sums of two bits. */
function sampleNoise(out: usize, seed: usize, nonce: u32): void {
  const mark = here();
  const s = take(SPONGE);
  start(s);
  absorb(s, RATE_SHAKE256, seed, 32);
  absorbByte(s, RATE_SHAKE256, nonce);
  finishShake(s, RATE_SHAKE256);
  for (let i: usize = 0; i < 128; i += 4) {
    const bits = load<u32>(s + i);
    const sums = (bits & 0x55555555) + ((bits >> 1) & 0x55555555);
    for (let j: usize = 0; j < 8; j++) {
      const two = sums >> (4 * <u32>j);
      store<i16>(out + 4 * i + 2 * j, <i16>(<i32>(two & 3) - <i32>((two >> 2) & 3)));
    }
  }
  giveBack(mark);
}

/** SHA3-256. */
function hash(bytes: usize, length: usize, out: usize): void {
  const mark = here();
  const s = take(SPONGE);
  start(s);
  absorb(s, RATE_SHA3_256, bytes, length);
  finishSha3(s, RATE_SHA3_256, out, 32);
  giveBack(mark);
}

/** out = row `row` of the matrix, or of its transpose, times a vector, / 2^16. */
function multiplyMatrixRow(out: usize, rho: usize, row: u32, transposed: bool, vector: usize): void {
  const mark = here();
  const entries = take(VECTOR);
  for (let column: u32 = 0; column < K; column++)
    sampleMatrix(entries + <usize>column * POLY, rho, transposed ? column : row, transposed ? row : column);
  multiplyRow(out, entries, vector);
  giveBack(mark);
}

/** K-PKE.KeyGen (algorithm 13): the public key, and the secret vector where it is wanted. */
function keyPair(d: usize, key: usize, secret: usize): void {
  const mark = here();
  const s = take(SPONGE);
  const seeds = take(64);
  const noise = take(POLY);
  const row = take(POLY);
  start(s);
  absorb(s, RATE_SHA3_512, d, 32);
  absorbByte(s, RATE_SHA3_512, K);
  finishSha3(s, RATE_SHA3_512, seeds, 64);
  for (let i: u32 = 0; i < K; i++) {
    sampleNoise(secret + <usize>i * POLY, seeds + 32, i);
    transform(secret + <usize>i * POLY);
  }
  for (let i: u32 = 0; i < K; i++) {
    multiplyMatrixRow(row, seeds, i, false, secret);
    raise(row);
    sampleNoise(noise, seeds + 32, <u32>K + i);
    transform(noise);
    add(row, noise);
    pack12(key + <usize>i * PACKED, row);
  }
  memory.copy(key + K * PACKED, seeds, 32);
  giveBack(mark);
}

/** ML-KEM.KeyGen (algorithm 16), the public half: the private one is the seed. */
export function publicKey(seed: usize, key: usize): void {
  const mark = here();
  keyPair(seed, key, take(VECTOR));
  giveBack(mark);
}

/** The modulus check (section 7.2): a key with a coefficient of q or more is none. */
export function isKey(key: usize): bool {
  const mark = here();
  const p = take(POLY);
  let sound = true;
  for (let i: usize = 0; i < K; i++) sound = unpack12(p, key + i * PACKED) && sound;
  giveBack(mark);
  return sound;
}

/** K-PKE.Encrypt (algorithm 14). */
function encrypt(key: usize, message: usize, coin: usize, out: usize): void {
  const mark = here();
  const t = take(VECTOR);
  const y = take(VECTOR);
  const p = take(POLY);
  const noise = take(POLY);
  for (let i: u32 = 0; i < K; i++) {
    unpack12(t + <usize>i * POLY, key + <usize>i * PACKED);
    sampleNoise(y + <usize>i * POLY, coin, i);
    transform(y + <usize>i * POLY);
  }
  for (let i: u32 = 0; i < K; i++) {
    multiplyMatrixRow(p, key + K * PACKED, i, true, y);
    transformBack(p);
    sampleNoise(noise, coin, <u32>K + i);
    add(p, noise);
    pack10(out + <usize>i * COMPRESSED, p);
  }
  multiplyRow(p, t, y);
  transformBack(p);
  sampleNoise(noise, coin, 2 * <u32>K);
  add(p, noise);
  unpack1(noise, message);
  add(p, noise);
  pack4(out + K * COMPRESSED, p);
  giveBack(mark);
}

/** The shared secret of a message and a key, then the coin of its encryption: 64 bytes. */
function secretAndCoin(key: usize, message: usize, out: usize): void {
  const mark = here();
  const s = take(SPONGE);
  const digest = take(32);
  hash(key, KEY, digest);
  start(s);
  absorb(s, RATE_SHA3_512, message, 32);
  absorb(s, RATE_SHA3_512, digest, 32);
  finishSha3(s, RATE_SHA3_512, out, 64);
  giveBack(mark);
}

/** ML-KEM.Encaps_internal (algorithm 17) for a key that `isKey`: `message` is the coin of 32 bytes. */
export function encapsulate(key: usize, message: usize, ciphertext: usize, shared: usize): void {
  const mark = here();
  const both = take(64);
  secretAndCoin(key, message, both);
  encrypt(key, message, both + 32, ciphertext);
  memory.copy(shared, both, 32);
  giveBack(mark);
}

/** The same shared secret without the ciphertext. */
export function sharedOf(key: usize, message: usize, shared: usize): void {
  const mark = here();
  const both = take(64);
  secretAndCoin(key, message, both);
  memory.copy(shared, both, 32);
  giveBack(mark);
}

/** ML-KEM.Decaps_internal (algorithm 18). A ciphertext that was not made with this key gives a pseudorandom secret, in the same time. */
export function decapsulate(seed: usize, ciphertext: usize, shared: usize): void {
  const mark = here();
  const key = take(KEY);
  const secret = take(VECTOR);
  const u = take(VECTOR);
  const p = take(POLY);
  const w = take(POLY);
  const message = take(32);
  const both = take(64);
  const rejected = take(32);
  const again = take(CIPHERTEXT + 16);
  const s = take(SPONGE);
  keyPair(seed, key, secret);
  for (let i: usize = 0; i < K; i++) {
    unpack10(u + i * POLY, ciphertext + i * COMPRESSED);
    transform(u + i * POLY);
  }
  unpack4(w, ciphertext + K * COMPRESSED);
  multiplyRow(p, secret, u);
  transformBack(p);
  subtractFrom(p, w);
  pack1(message, p);
  secretAndCoin(key, message, both);
  start(s);
  absorb(s, RATE_SHAKE256, seed + 32, 32);
  absorb(s, RATE_SHAKE256, ciphertext, CIPHERTEXT);
  finishShake(s, RATE_SHAKE256);
  squeeze(s, RATE_SHAKE256, rejected, 32);
  encrypt(key, message, both + 32, again);
  let difference: u64 = 0;
  for (let i: usize = 0; i < CIPHERTEXT; i += 8) difference |= load<u64>(ciphertext + i) ^ load<u64>(again + i);
  // All ones where something differs.
  const reject: u64 = 0 - ((difference | (0 - difference)) >> 63);
  for (let i: usize = 0; i < 32; i += 8) {
    const good = load<u64>(both + i);
    store<u64>(shared + i, good ^ ((good ^ load<u64>(rejected + i)) & reject));
  }
  giveBack(mark);
}
