/**
 * What ML-DSA-65 draws from SHAKE (FIPS 204, section 7.3). The matrix and the challenge are public. The secrets of a key are drawn by rejection, so the time
 * tells how many half-bytes of the stream were refused, and nothing about those that were taken; FIPS 204 allows that.
 */
import { giveBack, here, take } from './arena';
import { POLY, Q } from './dsa-ring';
import {
  absorb, absorbByte, finishShake, permute, RATE_SHAKE128, RATE_SHAKE256, SPONGE, squeeze, start,
} from './keccak';

const GAMMA1: i32 = 1 << 19;
const TAU: i32 = 49;
export const CHALLENGE: usize = 48;

/** RejNTTPoly (algorithm 30): entry (row, column) of the matrix, already transformed. */
export function sampleMatrix(out: usize, rho: usize, row: u32, column: u32): void {
  const mark = here();
  const s = take(SPONGE);
  start(s);
  absorb(s, RATE_SHAKE128, rho, 32);
  absorbByte(s, RATE_SHAKE128, column);
  absorbByte(s, RATE_SHAKE128, row);
  finishShake(s, RATE_SHAKE128);
  const end = out + POLY;
  for (;;) {
    // 168 bytes are 56 candidates of three.
    for (let i = s; i < s + RATE_SHAKE128; i += 3) {
      const candidate = <i32>(load<u32>(i) & 0x7fffff);
      if (candidate < Q) {
        store<i32>(out, candidate);
        out += 4;
        if (out == end) {
          giveBack(mark);
          return;
        }
      }
    }
    permute(s);
  }
}

/** RejBoundedPoly (algorithm 31) for eta = 4: coefficients from -4 to 4. */
export function sampleSecret(out: usize, seed: usize, nonce: u32): void {
  const mark = here();
  const s = take(SPONGE);
  start(s);
  absorb(s, RATE_SHAKE256, seed, 64);
  absorbByte(s, RATE_SHAKE256, nonce);
  absorbByte(s, RATE_SHAKE256, 0);
  finishShake(s, RATE_SHAKE256);
  // A refused half-byte is written too, and overwritten by the next: room for one more than is needed.
  const drawn = take(POLY + 8);
  let at: u32 = 0;
  while (at < 256) {
    for (let i: usize = 0; i < RATE_SHAKE256; i++) {
      const both = <i32>load<u8>(s + i);
      const low = both & 15;
      const high = both >> 4;
      store<i32>(drawn + (<usize>at << 2), 4 - low);
      at += <u32>(low - 9) >> 31;
      if (at == 256) break;
      store<i32>(drawn + (<usize>at << 2), 4 - high);
      at += <u32>(high - 9) >> 31;
      if (at == 256) break;
    }
    permute(s);
  }
  memory.copy(out, drawn, POLY);
  giveBack(mark);
}

/** One polynomial of ExpandMask (algorithm 34): coefficients of 20 bits, from -gamma1 + 1 to gamma1. */
export function sampleMask(out: usize, seed: usize, nonce: u32): void {
  const mark = here();
  const s = take(SPONGE);
  const bytes = take(640);
  start(s);
  absorb(s, RATE_SHAKE256, seed, 64);
  absorbByte(s, RATE_SHAKE256, nonce & 0xff);
  absorbByte(s, RATE_SHAKE256, nonce >> 8);
  finishShake(s, RATE_SHAKE256);
  squeeze(s, RATE_SHAKE256, bytes, 640);
  unpackMask(out, bytes);
  giveBack(mark);
}

/** Two coefficients in five bytes (BitUnpack with gamma1 - 1 and gamma1). The read of eight bytes stays inside the working memory or the signature. */
export function unpackMask(out: usize, bytes: usize): void {
  for (let i: usize = 0; i < POLY; i += 8, bytes += 5) {
    const pair = <u64>load<u32>(bytes) | (<u64>load<u8>(bytes, 4) << 32);
    store<i32>(out + i, GAMMA1 - <i32>(pair & 0xfffff));
    store<i32>(out + i, GAMMA1 - <i32>(pair >> 20), 4);
  }
}

export function packMask(out: usize, p: usize): void {
  for (let i: usize = 0; i < POLY; i += 8, out += 5) {
    const pair = <u64>(GAMMA1 - load<i32>(p + i)) | (<u64>(GAMMA1 - load<i32>(p + i, 4)) << 20);
    store<u32>(out, <u32>pair);
    store<u8>(out, <u8>(pair >> 32), 4);
  }
}

/** SampleInBall (algorithm 29): 49 coefficients of 1 or -1. The challenge is, or may become, public. */
export function sampleChallenge(out: usize, challenge: usize): void {
  const mark = here();
  const s = take(SPONGE);
  start(s);
  absorb(s, RATE_SHAKE256, challenge, CHALLENGE);
  finishShake(s, RATE_SHAKE256);
  memory.fill(out, 0, POLY);
  let signs = load<u64>(s);
  let at: usize = 8;
  for (let i: i32 = 256 - TAU; i < 256; i++) {
    let j: i32;
    do {
      if (at == RATE_SHAKE256) {
        permute(s);
        at = 0;
      }
      j = load<u8>(s + at++);
    } while (j > i);
    store<i32>(out + 4 * i, load<i32>(out + 4 * j));
    store<i32>(out + 4 * j, 1 - 2 * <i32>(signs & 1));
    signs >>= 1;
  }
  giveBack(mark);
}
