/** Cache and dataset items (pow.md P5 and P6). Items are made several at a time, their reads interleaved. */
import { compress, compress4, transpose, WHOLE } from './blake3';
import { INDEX, ITEM, MESSAGE, OUTPUT, PARENT, PRIMES } from './scratch';

const PRIME: u32 = 0x01000193;

/** Items `from` to `to` of the first chain; the item before `from` is in place (for 0: the 32-byte seed at `seed`). */
export function cacheChain(cache: usize, seed: usize, from: u32, to: u32): void {
  for (let i = from; i < to; i++) {
    const at = cache + ((<usize>i) << 6);
    if (i == 0) {
      memory.fill(at, 0, 64);
      memory.copy(at, seed, 32);
      compress(at, 0, 32, WHOLE, at);
    } else compress(at - 64, 0, 64, WHOLE, at);
  }
}

/** One of the three passes, over items `from` to `to`. */
export function cachePass(cache: usize, log2: u32, scratch: usize, from: u32, to: u32): void {
  const last = (<u32>1 << log2) - 1;
  const shift = 32 - log2;
  const m = scratch + MESSAGE;
  for (let i = from; i < to; i++) {
    const at = cache + ((<usize>i) << 6);
    const before = cache + ((<usize>((i - 1) & last)) << 6);
    const other = cache + ((<usize>(load<u32>(at) >> shift)) << 6);
    v128.store(m, v128.xor(v128.load(before), v128.load(other)));
    v128.store(m, v128.xor(v128.load(before, 16), v128.load(other, 16)), 16);
    v128.store(m, v128.xor(v128.load(before, 32), v128.load(other, 32)), 32);
    v128.store(m, v128.xor(v128.load(before, 48), v128.load(other, 48)), 48);
    compress(m, 0, 64, WHOLE, at);
  }
}

/** Hashes groups of four 64-byte blocks, contiguous at `from`, to `to`. */
@inline
function hashFours(scratch: usize, from: usize, to: usize, count: u32): void {
  const m = scratch + MESSAGE, out = scratch + OUTPUT;
  for (let h: u32 = 0; h < count; h += 4) {
    const source = from + ((<usize>h) << 6), target = to + ((<usize>h) << 6);
    for (let q: usize = 0; q < 4; q++) transpose(source + (q << 4), 64, m + (q << 6), 16);
    compress4(m, 0, 64, WHOLE, out);
    for (let q: usize = 0; q < 4; q++) transpose(out + (q << 6), 16, target + (q << 4), 64);
  }
}

/**
 * The items whose indices are at INDEX, `count` of them, an even number, to `to`, contiguous and rounded up to fours.
 * Each of the 64 steps first touches the parents of all items with plain loads, so that their misses overlap, and mixes
 * afterwards.
 */
export function items(cache: usize, log2: u32, scratch: usize, to: usize, count: u32): u32 {
  const mask = (<u32>1 << log2) - 1;
  const shift = 32 - log2;
  const m = scratch + ITEM, parents = scratch + PARENT, indices = scratch + INDEX;
  const prime = v128.load(PRIMES);
  for (let h: u32 = 0; h < count; h++) {
    const index = load<u32>(indices + (<usize>h << 2));
    const at = m + (<usize>h << 6), from = cache + (<usize>(index & mask) << 6);
    memory.copy(at, from, 64);
    store<u32>(at, load<u32>(at) ^ index);
  }
  hashFours(scratch, m, m, count);
  for (let h: u32 = 0; h < count; h++) {
    const p = ((load<u32>(indices + (<usize>h << 2)) * PRIME) ^ load<u32>(m + (<usize>h << 6))) >> shift;
    store<u32>(parents + (<usize>h << 2), cache + (<usize>p << 6));
  }
  let touched: u32 = 0;
  for (let k: u32 = 0; k < 64; k++) {
    for (let slot = parents, last = parents + (<usize>count << 2); slot < last; slot += 8) {
      const two = load<u64>(slot);
      touched ^= load<u32>(<usize>two) ^ load<u32>(<usize>(two >> 32));
    }
    const next = k + 1, word = <usize>(next & 15) << 2;
    for (let h: u32 = 0; h < count; h++) {
      const at = m + (<usize>h << 6), slot = <usize>h << 2, from = <usize>load<u32>(parents + slot);
      v128.store(at, v128.xor(i32x4.mul(v128.load(at), prime), v128.load(from)));
      v128.store(at, v128.xor(i32x4.mul(v128.load(at, 16), prime), v128.load(from, 16)), 16);
      v128.store(at, v128.xor(i32x4.mul(v128.load(at, 32), prime), v128.load(from, 32)), 32);
      v128.store(at, v128.xor(i32x4.mul(v128.load(at, 48), prime), v128.load(from, 48)), 48);
      const p = (((load<u32>(indices + slot) ^ next) * PRIME) ^ load<u32>(at + word)) >> shift;
      store<u32>(parents + slot, cache + (<usize>p << 6));
    }
  }
  hashFours(scratch, m, to, count);
  return touched;
}

/** Dataset items `from` to `to`, both multiples of `width`, into their place; `width` of them interleaved. */
export function datasetSlice(cache: usize, log2: u32, scratch: usize, dataset: usize, from: u32, to: u32, width: u32): u32 {
  let touched: u32 = 0;
  const indices = scratch + INDEX;
  for (let i = from; i < to; i += width) {
    for (let h: u32 = 0; h < width; h++) store<u32>(indices + (<usize>h << 2), i + h);
    touched ^= items(cache, log2, scratch, dataset + (<usize>i << 6), width);
  }
  return touched;
}
