/**
 * The hash (pow.md P8 to P12), `count` of them interleaved: every round first touches the pages of all hashes with
 * plain loads, so that their misses overlap (WebAssembly has no prefetch), and mixes afterwards.
 */
import { CHUNK_END, CHUNK_START, compress4, ROOT, transpose, WHOLE } from './blake3';
import { items } from './dataset';
import { INDEX, IO, MESSAGE, OUTPUT, PADDED, PAGE, PRIMES, SEED_IN_STATE, SELECT, STATE, STATE_STRIDE } from './scratch';

const PRIME: u32 = 0x01000193;

/** "SVC_POW_V1" as in memory. */
const LABEL: usize = memory.data<u8>([0x53, 0x56, 0x43, 0x5f, 0x50, 0x4f, 0x57, 0x5f, 0x56, 0x31]);

/** The row of a page with its words rotated by the round. */
@inline
function rotated(row: v128, round: u32): v128 {
  if (round == 1) return v128.shuffle<u32>(row, row, 1, 2, 3, 0);
  if (round == 2) return v128.shuffle<u32>(row, row, 2, 3, 0, 1);
  if (round == 3) return v128.shuffle<u32>(row, row, 3, 0, 1, 2);
  return row;
}

@inline
function mixRow(at: usize, rows: usize, k: usize, prime: v128, round: u32): void {
  const row = rotated(v128.load(rows ^ (k << 4)), round);
  v128.store(at + (k << 4), v128.xor(i32x4.mul(v128.load(at + (k << 4)), prime), row));
}

/** Mixes a page into the state at `at`. `rows` is the address of its row r, so the k-th row to take is at rows ^ 16k. */
@inline
function mixPage(at: usize, rows: usize, prime: v128, round: u32): void {
  mixRow(at, rows, 0, prime, round);
  mixRow(at, rows, 1, prime, round);
  mixRow(at, rows, 2, prime, round);
  mixRow(at, rows, 3, prime, round);
  mixRow(at, rows, 4, prime, round);
  mixRow(at, rows, 5, prime, round);
  mixRow(at, rows, 6, prime, round);
  mixRow(at, rows, 7, prime, round);
}

/** The selector g of round `i` of the hash with state `at`. */
@inline
function selector(at: usize, i: u32): u32 {
  return ((i ^ load<u32>(at + SEED_IN_STATE + 60)) * PRIME) ^ load<u32>(at + (<usize>(i & 31) << 2));
}

/** The address of row r of the page that `g` selects; pages are aligned, so the row's bits do not disturb the page's. */
@inline
function rowsOf(dataset: usize, g: u32, shift: u32): usize {
  return dataset + ((<usize>(g >> shift) << 7) | (<usize>(g & 7) << 4));
}

/** Reads from both cache lines of the page. */
@inline
function touch(rows: usize): u32 {
  return load<u32>(rows) ^ load<u32>(rows ^ 64);
}

/**
 * Touches the pages of all hashes. As few instructions as possible: a processor looks ahead over some hundred of them,
 * and only the misses it sees together overlap.
 */
@inline
function touchAll(selected: usize, count: u32): u32 {
  let touched: u32 = 0, slot = selected;
  const last = selected + (<usize>count << 2), fours = selected + (<usize>(count & ~3) << 2);
  for (; slot < fours; slot += 16) {
    const a = load<u64>(slot), b = load<u64>(slot, 8);
    touched ^= touch(<usize>a) ^ touch(<usize>(a >> 32)) ^ touch(<usize>b) ^ touch(<usize>(b >> 32));
  }
  for (; slot < last; slot += 4) touched ^= touch(load<u32>(slot));
  return touched;
}

/** One round of all hashes on the dataset; `round` is i mod 4, a constant, so that the rotation costs one instruction. */
@inline
function fullRound(scratch: usize, count: u32, dataset: usize, shift: u32, i: u32, round: u32, prime: v128): u32 {
  const selected = scratch + SELECT, last = selected + (<usize>count << 2);
  const touched = touchAll(selected, count);
  let at = scratch + STATE;
  for (let slot = selected; slot < last; slot += 4) {
    mixPage(at, load<u32>(slot), prime, round);
    store<u32>(slot, rowsOf(dataset, selector(at, i + 1), shift));
    at += STATE_STRIDE;
  }
  return touched;
}

/** One round of all hashes from the cache: their pages are computed first, all items interleaved. */
@inline
function lightRound(scratch: usize, count: u32, cache: usize, log2: u32, shift: u32, i: u32, round: u32, prime: v128): u32 {
  const selected = scratch + SELECT, indices = scratch + INDEX;
  for (let h: usize = 0; h < <usize>count; h++) {
    const p = load<u32>(selected + (h << 2)) >> shift;
    store<u32>(indices + (h << 3), p << 1);
    store<u32>(indices + (h << 3), (p << 1) + 1, 4);
  }
  const touched = items(cache, log2, scratch, scratch + PAGE, count << 1);
  for (let h: usize = 0; h < <usize>count; h++) {
    const at = scratch + STATE + h * STATE_STRIDE, slot = selected + (h << 2);
    mixPage(at, scratch + PAGE + ((h << 7) | (<usize>(load<u32>(slot) & 7) << 4)), prime, round);
    store<u32>(slot, selector(at, i + 1));
  }
  return touched;
}

/** The seeds are in the states: doubles them into the mix and writes the selector of round 0. */
@inline
function beginMix(scratch: usize, count: u32): void {
  for (let h: usize = 0; h < <usize>count; h++) {
    const at = scratch + STATE + h * STATE_STRIDE;
    memory.copy(at, at + SEED_IN_STATE, 64);
    memory.copy(at + 64, at + SEED_IN_STATE, 64);
    store<u32>(scratch + SELECT + (h << 2), selector(at, 0));
  }
}
function mixFull(scratch: usize, count: u32, dataset: usize, pagesLog2: u32): u32 {
  const prime = v128.load(PRIMES), shift = 32 - pagesLog2;
  let touched: u32 = 0;
  beginMix(scratch, count);
  for (let slot = scratch + SELECT, last = slot + (<usize>count << 2); slot < last; slot += 4)
    store<u32>(slot, rowsOf(dataset, load<u32>(slot), shift));
  for (let i: u32 = 0; i < 64; i += 4) {
    touched ^= fullRound(scratch, count, dataset, shift, i, 0, prime);
    touched ^= fullRound(scratch, count, dataset, shift, i + 1, 1, prime);
    touched ^= fullRound(scratch, count, dataset, shift, i + 2, 2, prime);
    touched ^= fullRound(scratch, count, dataset, shift, i + 3, 3, prime);
  }
  return touched;
}

function mixLight(scratch: usize, count: u32, cache: usize, cacheLog2: u32, pagesLog2: u32): u32 {
  const prime = v128.load(PRIMES), shift = 32 - pagesLog2;
  let touched: u32 = 0;
  beginMix(scratch, count);
  for (let i: u32 = 0; i < 64; i += 4) {
    touched ^= lightRound(scratch, count, cache, cacheLog2, shift, i, 0, prime);
    touched ^= lightRound(scratch, count, cache, cacheLog2, shift, i + 1, 1, prime);
    touched ^= lightRound(scratch, count, cache, cacheLog2, shift, i + 2, 2, prime);
    touched ^= lightRound(scratch, count, cache, cacheLog2, shift, i + 3, 3, prime);
  }
  return touched;
}

@inline
function fnv4(a: v128, b: v128, prime: v128): v128 { return v128.xor(i32x4.mul(a, prime), b); }

/** Four seeds, from pre-hashes and nonces in the message vectors, into four states from the h-th on. */
@inline
function seeds4(scratch: usize, h: usize): void {
  const out = scratch + OUTPUT, at = scratch + STATE + h * STATE_STRIDE + SEED_IN_STATE;
  compress4(scratch + MESSAGE, 0, 40, WHOLE, out);
  for (let q: usize = 0; q < 4; q++) transpose(out + (q << 6), 16, at + (q << 4), STATE_STRIDE);
}

/** Folds four mixes and finishes four hashes: 8 output vectors, word w of hash h in lane h, at OUTPUT. */
@inline
function finish4(scratch: usize, h: usize): void {
  const m = scratch + MESSAGE, at = scratch + STATE + h * STATE_STRIDE, fold = scratch + OUTPUT;
  const prime = v128.load(PRIMES);
  transpose(at + SEED_IN_STATE, STATE_STRIDE, m, 16);
  transpose(at + SEED_IN_STATE + 16, STATE_STRIDE, m + 64, 16);
  for (let k: usize = 0; k < 8; k++) {
    transpose(at + (k << 4), STATE_STRIDE, fold, 16);
    const word = fnv4(fnv4(fnv4(v128.load(fold), v128.load(fold, 16), prime), v128.load(fold, 32), prime), v128.load(fold, 48), prime);
    v128.store(m + 128 + (k << 4), word);
  }
  compress4(m, 0, 64, WHOLE, fold);
}

/** Pre-hashes of four headers (312 bytes each, at `headers`; `count` of them exist, the last is repeated for the rest). */
function preHashes4(scratch: usize, headers: usize, count: u32): void {
  const m = scratch + MESSAGE, out = scratch + OUTPUT, padded = scratch + PADDED;
  for (let h: u32 = 0; h < 4; h++) {
    const at = padded + <usize>h * 320, header = headers + <usize>min<u32>(h, count - 1) * 312;
    memory.copy(at, LABEL, 10);
    memory.copy(at + 10, header, 304);
    memory.fill(at + 314, 0, 6);
  }
  for (let block: usize = 0; block < 5; block++) {
    for (let q: usize = 0; q < 4; q++) transpose(padded + (block << 6) + (q << 4), 320, m + (q << 6), 16);
    const flags = (block == 0 ? CHUNK_START : 0) | (block == 4 ? CHUNK_END | ROOT : 0);
    compress4(m, block == 0 ? 0 : out, block == 4 ? 58 : 64, flags, out);
  }
  memory.copy(m, out, 128);
}

/** Seeds of `count` headers at `headers` into the states, 4 at a time. */
function headerSeeds(scratch: usize, headers: usize, count: u32): void {
  const m = scratch + MESSAGE;
  for (let h: u32 = 0; h < count; h += 4) {
    const group = headers + <usize>h * 312, left = count - h;
    preHashes4(scratch, group, left);
    for (let lane: u32 = 0; lane < 4; lane++) {
      const nonce = group + <usize>min<u32>(lane, left - 1) * 312 + 304;
      store<u32>(m + 128 + (<usize>lane << 2), load<u32>(nonce));
      store<u32>(m + 144 + (<usize>lane << 2), load<u32>(nonce, 4));
    }
    memory.fill(m + 160, 0, 96);
    seeds4(scratch, h);
  }
}

/** Writes `count` finished hashes, 32 bytes each, to `to`. */
function writeHashes(scratch: usize, to: usize, count: u32): void {
  const out = scratch + OUTPUT;
  for (let h: u32 = 0; h < count; h += 4) {
    finish4(scratch, h);
    for (let lane: u32 = 0; lane < min<u32>(4, count - h); lane++)
      for (let w: usize = 0; w < 8; w++)
        store<u32>(to + (<usize>(h + lane) << 5) + (w << 2), load<u32>(out + (w << 4) + (<usize>lane << 2)));
  }
}

/** Hashes of `count` headers at `headers` to `to`, from the dataset, `width` interleaved. */
export function hashFull(scratch: usize, headers: usize, to: usize, count: u32, dataset: usize, pagesLog2: u32, width: u32): u32 {
  let touched: u32 = 0;
  for (let h: u32 = 0; h < count; h += width) {
    const group = min<u32>(width, count - h);
    headerSeeds(scratch, headers + <usize>h * 312, group);
    touched ^= mixFull(scratch, group, dataset, pagesLog2);
    writeHashes(scratch, to + (<usize>h << 5), group);
  }
  return touched;
}

/** The same from the cache alone. */
export function hashLight(scratch: usize, headers: usize, to: usize, count: u32, cache: usize, cacheLog2: u32, pagesLog2: u32, width: u32): u32 {
  let touched: u32 = 0;
  for (let h: u32 = 0; h < count; h += width) {
    const group = min<u32>(width, count - h);
    headerSeeds(scratch, headers + <usize>h * 312, group);
    touched ^= mixLight(scratch, group, cache, cacheLog2, pagesLog2);
    writeHashes(scratch, to + (<usize>h << 5), group);
  }
  return touched;
}

/** Seeds of the nonces from `nonce` on, with the pre-hash at `pre`. */
@inline
function nonceSeeds(scratch: usize, pre: usize, nonce: u64, width: u32): void {
  const m = scratch + MESSAGE;
  for (let h: u32 = 0; h < width; h += 4) {
    for (let w: usize = 0; w < 8; w++) v128.store(m + (w << 4), i32x4.splat(load<u32>(pre + (w << 2))));
    for (let lane: u32 = 0; lane < 4; lane++) {
      const n = nonce + h + lane;
      store<u32>(m + 128 + (<usize>lane << 2), <u32>n);
      store<u32>(m + 144 + (<usize>lane << 2), <u32>(n >> 32));
    }
    memory.fill(m + 160, 0, 96);
    seeds4(scratch, h);
  }
}

/** Whether the hash in `lane` of OUTPUT, a big-endian number, is at or below the one at `target`. */
@inline
function meets(out: usize, lane: u32, target: usize): bool {
  for (let w: usize = 0; w < 8; w++) {
    const a = bswap<u32>(load<u32>(out + (w << 4) + (<usize>lane << 2))), b = bswap<u32>(load<u32>(target + (w << 2)));
    if (a != b) return a < b;
  }
  return true;
}

/** Records the hits of one group: u64 nonce and 32 bytes of hash each, from slot `found` on, as long as there is room. */
@inline
function collect(scratch: usize, nonce: u64, width: u32, valid: u32, target: usize, hits: usize, room: u32, before: u32): u32 {
  const out = scratch + OUTPUT;
  let found = before;
  for (let h: u32 = 0; h < width; h += 4) {
    finish4(scratch, h);
    for (let lane: u32 = 0; lane < 4; lane++)
      if (h + lane < valid && meets(out, lane, target)) {
        if (found < room) {
          const at = hits + <usize>found * 40;
          store<u64>(at, nonce + h + lane);
          for (let w: usize = 0; w < 8; w++) store<u32>(at + 8 + (w << 2), load<u32>(out + (w << 4) + (<usize>lane << 2)));
        }
        found++;
      }
  }
  return found;
}

/**
 * Tries `count` nonces from `nonce` on, `width` (a multiple of 4) interleaved, with the pre-hash at IO and the target
 * at IO + 32; hits go to `hits`. Returns how many there were, which may be more than `room` had place for.
 */
export function searchFull(scratch: usize, nonce: u64, count: u32, hits: usize, room: u32, dataset: usize, pagesLog2: u32, width: u32): u32 {
  const pre = scratch + IO, target = scratch + IO + 32;
  let found: u32 = 0;
  for (let n: u32 = 0; n < count; n += width) {
    nonceSeeds(scratch, pre, nonce + n, width);
    mixFull(scratch, width, dataset, pagesLog2);
    found = collect(scratch, nonce + n, width, count - n, target, hits, room, found);
  }
  return found;
}

export function searchLight(scratch: usize, nonce: u64, count: u32, hits: usize, room: u32, cache: usize, cacheLog2: u32, pagesLog2: u32, width: u32): u32 {
  const pre = scratch + IO, target = scratch + IO + 32;
  let found: u32 = 0;
  for (let n: u32 = 0; n < count; n += width) {
    nonceSeeds(scratch, pre, nonce + n, width);
    mixLight(scratch, width, cache, cacheLog2, pagesLog2);
    found = collect(scratch, nonce + n, width, count - n, target, hits, room, found);
  }
  return found;
}

/** The pre-hash of the header at `header`, 32 bytes to `to`. */
export function preHash(scratch: usize, header: usize, to: usize): void {
  preHashes4(scratch, header, 1);
  for (let w: usize = 0; w < 8; w++) store<u32>(to + (w << 2), load<u32>(scratch + MESSAGE + (w << 4)));
}
