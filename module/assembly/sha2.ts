/** SHA-256, SHA-384 and SHA-512 (FIPS 180-4). No step depends on the data. */
import { giveBack, here, take } from './arena';
import { CUBE_ROOTS, ROOTS_384, ROOTS_512 } from './sha2-tables';

export const STATE_512: usize = 64;
export const BLOCK_512: usize = 128;
export const STATE_256: usize = 32;
export const BLOCK_256: usize = 64;

export function start512(state: usize): void {
  memory.copy(state, ROOTS_512, 64);
}

export function start384(state: usize): void {
  memory.copy(state, ROOTS_384, 64);
}

export function start256(state: usize): void {
  for (let i: usize = 0; i < 8; i++) store<u32>(state + 4 * i, load<u32>(ROOTS_512 + 8 * i, 4));
}

const WORDS: usize = memory.data(640, 16);

/** Whole blocks. */
export function blocks512(state: usize, bytes: usize, count: usize): void {
  for (; count > 0; count--, bytes += 128) {
    for (let i: usize = 0; i < 128; i += 8) store<u64>(WORDS + i, bswap<u64>(load<u64>(bytes + i)));
    for (let i: usize = 128; i < 640; i += 8) {
      const w15 = load<u64>(WORDS + i - 120), w2 = load<u64>(WORDS + i - 16);
      const s0 = rotr<u64>(w15, 1) ^ rotr<u64>(w15, 8) ^ (w15 >> 7);
      const s1 = rotr<u64>(w2, 19) ^ rotr<u64>(w2, 61) ^ (w2 >> 6);
      store<u64>(WORDS + i, load<u64>(WORDS + i - 128) + s0 + load<u64>(WORDS + i - 56) + s1);
    }
    let a = load<u64>(state), b = load<u64>(state, 8), c = load<u64>(state, 16), d = load<u64>(state, 24);
    let e = load<u64>(state, 32), f = load<u64>(state, 40), g = load<u64>(state, 48), h = load<u64>(state, 56);
    for (let i: usize = 0; i < 640; i += 8) {
      const t1 =
        h +
        (rotr<u64>(e, 14) ^ rotr<u64>(e, 18) ^ rotr<u64>(e, 41)) +
        (g ^ (e & (f ^ g))) +
        load<u64>(CUBE_ROOTS + i) +
        load<u64>(WORDS + i);
      const t2 = (rotr<u64>(a, 28) ^ rotr<u64>(a, 34) ^ rotr<u64>(a, 39)) + ((a & b) | (c & (a | b)));
      h = g; g = f; f = e; e = d + t1; d = c; c = b; b = a; a = t1 + t2;
    }
    store<u64>(state, load<u64>(state) + a); store<u64>(state, load<u64>(state, 8) + b, 8);
    store<u64>(state, load<u64>(state, 16) + c, 16); store<u64>(state, load<u64>(state, 24) + d, 24);
    store<u64>(state, load<u64>(state, 32) + e, 32); store<u64>(state, load<u64>(state, 40) + f, 40);
    store<u64>(state, load<u64>(state, 48) + g, 48); store<u64>(state, load<u64>(state, 56) + h, 56);
  }
  memory.fill(WORDS, 0, 640);
}

/** The last bytes and the padding; `before` bytes in whole blocks went in already. The digest's first `size` bytes (a multiple of 8) go to `out`. */
export function finish512(state: usize, bytes: usize, length: usize, before: u64, out: usize, size: usize): void {
  const whole = length / 128;
  blocks512(state, bytes, whole);
  const mark = here();
  const tail = take(256);
  memory.fill(tail, 0, 256);
  const left = length - 128 * whole;
  memory.copy(tail, bytes + 128 * whole, left);
  store<u8>(tail + left, 0x80);
  const blocks: usize = left < 112 ? 1 : 2;
  store<u64>(tail + 128 * blocks - 8, bswap<u64>((before + length) << 3));
  blocks512(state, tail, blocks);
  giveBack(mark);
  for (let i: usize = 0; i < size; i += 8) store<u64>(out + i, bswap<u64>(load<u64>(state + i)));
}

export function blocks256(state: usize, bytes: usize, count: usize): void {
  for (; count > 0; count--, bytes += 64) {
    for (let i: usize = 0; i < 64; i += 4) store<u32>(WORDS + i, bswap<u32>(load<u32>(bytes + i)));
    for (let i: usize = 64; i < 256; i += 4) {
      const w15 = load<u32>(WORDS + i - 60), w2 = load<u32>(WORDS + i - 8);
      const s0 = rotr<u32>(w15, 7) ^ rotr<u32>(w15, 18) ^ (w15 >> 3);
      const s1 = rotr<u32>(w2, 17) ^ rotr<u32>(w2, 19) ^ (w2 >> 10);
      store<u32>(WORDS + i, load<u32>(WORDS + i - 64) + s0 + load<u32>(WORDS + i - 28) + s1);
    }
    let a = load<u32>(state), b = load<u32>(state, 4), c = load<u32>(state, 8), d = load<u32>(state, 12);
    let e = load<u32>(state, 16), f = load<u32>(state, 20), g = load<u32>(state, 24), h = load<u32>(state, 28);
    for (let i: usize = 0; i < 256; i += 4) {
      const t1 =
        h +
        (rotr<u32>(e, 6) ^ rotr<u32>(e, 11) ^ rotr<u32>(e, 25)) +
        (g ^ (e & (f ^ g))) +
        load<u32>(CUBE_ROOTS + 2 * i, 4) +
        load<u32>(WORDS + i);
      const t2 = (rotr<u32>(a, 2) ^ rotr<u32>(a, 13) ^ rotr<u32>(a, 22)) + ((a & b) | (c & (a | b)));
      h = g; g = f; f = e; e = d + t1; d = c; c = b; b = a; a = t1 + t2;
    }
    store<u32>(state, load<u32>(state) + a); store<u32>(state, load<u32>(state, 4) + b, 4);
    store<u32>(state, load<u32>(state, 8) + c, 8); store<u32>(state, load<u32>(state, 12) + d, 12);
    store<u32>(state, load<u32>(state, 16) + e, 16); store<u32>(state, load<u32>(state, 20) + f, 20);
    store<u32>(state, load<u32>(state, 24) + g, 24); store<u32>(state, load<u32>(state, 28) + h, 28);
  }
  memory.fill(WORDS, 0, 256);
}

export function finish256(state: usize, bytes: usize, length: usize, before: u64, out: usize): void {
  const whole = length / 64;
  blocks256(state, bytes, whole);
  const mark = here();
  const tail = take(128);
  memory.fill(tail, 0, 128);
  const left = length - 64 * whole;
  memory.copy(tail, bytes + 64 * whole, left);
  store<u8>(tail + left, 0x80);
  const blocks: usize = left < 56 ? 1 : 2;
  store<u64>(tail + 64 * blocks - 8, bswap<u64>((before + length) << 3));
  blocks256(state, tail, blocks);
  giveBack(mark);
  for (let i: usize = 0; i < 32; i += 4) store<u32>(out + i, bswap<u32>(load<u32>(state + i)));
}

export function sha256(bytes: usize, length: usize, out: usize): void {
  const mark = here();
  const state = take(STATE_256);
  start256(state);
  finish256(state, bytes, length, 0, out);
  giveBack(mark);
}

export function sha384(bytes: usize, length: usize, out: usize): void {
  const mark = here();
  const state = take(STATE_512);
  start384(state);
  finish512(state, bytes, length, 0, out, 48);
  giveBack(mark);
}
