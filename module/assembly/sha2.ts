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

// One algorithm for words of 64 bits (SHA-384, SHA-512) and of 32 (SHA-256). Which of the two is known when this is compiled, so nothing is decided while it runs.

@inline
function rounds<T>(): usize {
  return sizeof<T>() == 8 ? 80 : 64;
}
@inline
function low<T>(w: T): T {
  return sizeof<T>() == 8
    ? rotr<T>(w, <T>1) ^ rotr<T>(w, <T>8) ^ (w >> <T>7)
    : rotr<T>(w, <T>7) ^ rotr<T>(w, <T>18) ^ (w >> <T>3);
}
@inline
function high<T>(w: T): T {
  return sizeof<T>() == 8
    ? rotr<T>(w, <T>19) ^ rotr<T>(w, <T>61) ^ (w >> <T>6)
    : rotr<T>(w, <T>17) ^ rotr<T>(w, <T>19) ^ (w >> <T>10);
}
@inline
function mixE<T>(e: T): T {
  return sizeof<T>() == 8
    ? rotr<T>(e, <T>14) ^ rotr<T>(e, <T>18) ^ rotr<T>(e, <T>41)
    : rotr<T>(e, <T>6) ^ rotr<T>(e, <T>11) ^ rotr<T>(e, <T>25);
}
@inline
function mixA<T>(a: T): T {
  return sizeof<T>() == 8
    ? rotr<T>(a, <T>28) ^ rotr<T>(a, <T>34) ^ rotr<T>(a, <T>39)
    : rotr<T>(a, <T>2) ^ rotr<T>(a, <T>13) ^ rotr<T>(a, <T>22);
}
/** The constant of a round; one of 32 bits is the upper half of one of 64. */
@inline
function constant<T>(i: usize): T {
  return load<T>(CUBE_ROOTS + i * (8 / sizeof<T>()) + 8 - sizeof<T>());
}
/** To and from big-endian. */
@inline
function swapped<T>(at: usize): T {
  return bswap<T>(load<T>(at));
}

/** Whole blocks of 16 words. */
function blocks<T>(state: usize, bytes: usize, count: usize): void {
  const word: usize = sizeof<T>();
  const end = rounds<T>() * word;
  for (; count > 0; count--, bytes += 16 * word) {
    for (let i: usize = 0; i < 16 * word; i += word) store<T>(WORDS + i, swapped<T>(bytes + i));
    for (let i: usize = 16 * word; i < end; i += word)
      store<T>(
        WORDS + i,
        load<T>(WORDS + i - 16 * word) +
          low<T>(load<T>(WORDS + i - 15 * word)) +
          load<T>(WORDS + i - 7 * word) +
          high<T>(load<T>(WORDS + i - 2 * word)),
      );
    let a = load<T>(state), b = load<T>(state + word), c = load<T>(state + 2 * word), d = load<T>(state + 3 * word);
    let e = load<T>(state + 4 * word), f = load<T>(state + 5 * word), g = load<T>(state + 6 * word);
    let h = load<T>(state + 7 * word);
    for (let i: usize = 0; i < end; i += word) {
      const t1 = h + mixE<T>(e) + (g ^ (e & (f ^ g))) + constant<T>(i) + load<T>(WORDS + i);
      const t2 = mixA<T>(a) + ((a & b) | (c & (a | b)));
      h = g; g = f; f = e; e = d + t1; d = c; c = b; b = a; a = t1 + t2;
    }
    add<T>(state, a); add<T>(state + word, b); add<T>(state + 2 * word, c); add<T>(state + 3 * word, d);
    add<T>(state + 4 * word, e); add<T>(state + 5 * word, f); add<T>(state + 6 * word, g); add<T>(state + 7 * word, h);
  }
  memory.fill(WORDS, 0, end);
}
@inline
function add<T>(at: usize, value: T): void {
  store<T>(at, load<T>(at) + value);
}

/** The last bytes and the padding; `before` bytes in whole blocks went in already. The digest's first `size` bytes (whole words) go to `out`. */
function finish<T>(state: usize, bytes: usize, length: usize, before: u64, out: usize, size: usize): void {
  const word: usize = sizeof<T>();
  const block: usize = 16 * word;
  const whole = length / block;
  blocks<T>(state, bytes, whole);
  const mark = here();
  const tail = take(2 * block);
  memory.fill(tail, 0, 2 * block);
  const left = length - block * whole;
  memory.copy(tail, bytes + block * whole, left);
  store<u8>(tail + left, 0x80);
  const count: usize = left < block - 2 * word ? 1 : 2;
  store<u64>(tail + block * count - 8, bswap<u64>((before + length) << 3));
  blocks<T>(state, tail, count);
  giveBack(mark);
  for (let i: usize = 0; i < size; i += word) store<T>(out + i, swapped<T>(state + i));
}

export function blocks512(state: usize, bytes: usize, count: usize): void {
  blocks<u64>(state, bytes, count);
}
export function blocks256(state: usize, bytes: usize, count: usize): void {
  blocks<u32>(state, bytes, count);
}
/** `size`: 48 for SHA-384, 64 for SHA-512. */
export function finish512(state: usize, bytes: usize, length: usize, before: u64, out: usize, size: usize): void {
  finish<u64>(state, bytes, length, before, out, size);
}
export function finish256(state: usize, bytes: usize, length: usize, before: u64, out: usize): void {
  finish<u32>(state, bytes, length, before, out, 32);
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
