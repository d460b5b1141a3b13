/**
 * The ring of ML-DSA (FIPS 204): polynomials of 256 coefficients modulo q = 8,380,417, as 32-bit words. Products are Montgomery products (a b / 2^32), so
 * nothing is divided; what is written as a branch depends on places, never on coefficients.
 */
export const Q: i32 = 8380417;
export const POLY: usize = 1024;
/** 1 / q modulo 2^32. */
const Q_INVERSE: i32 = 58728449;
/** 2^64 / 256 modulo q: ends the inverse transform, and makes good for the 2^32 that every product lost. */
const LAST: i32 = 41978;

/** a / 2^32 modulo q, between -q and q, for |a| below 2^31 q. */
@inline
export function reduce(a: i64): i32 {
  const t = <i32>a * Q_INVERSE;
  return <i32>((a - <i64>t * Q) >> 32);
}

/** From between -q and q to between 0 and q - 1. */
@inline
export function positive(a: i32): i32 {
  return a + ((a >> 31) & Q);
}

/** 1753^brv(i) 2^32 modulo q, for i from 0 to 255 (FIPS 204, appendix B). */
const ZETAS: usize = memory.data(1024, 16);
fillZetas();
function fillZetas(): void {
  // 2^32 and 1753 2^32 modulo q.
  let power: i32 = 4193792;
  for (let i: u32 = 0; i < 256; i++) {
    let place: usize = 0;
    for (let bit = 0; bit < 8; bit++) place |= ((i >> bit) & 1) << (7 - bit);
    store<i32>(ZETAS + 4 * place, power);
    power = positive(reduce(<i64>power * 2091667));
  }
}

/** NTT (algorithm 41). Grows each coefficient by at most 8 q. */
export function transform(p: usize): void {
  let zeta = ZETAS;
  for (let half: usize = 512; half >= 4; half >>= 1) {
    for (let from = p; from < p + POLY; from += 2 * half) {
      zeta += 4;
      const z = <i64>load<i32>(zeta);
      for (let j = from, end = from + half; j < end; j += 4) {
        const t = reduce(z * load<i32>(j + half));
        const a = load<i32>(j);
        store<i32>(j + half, a - t);
        store<i32>(j, a + t);
      }
    }
  }
}

/** The inverse (algorithm 42), times 2^32. Takes coefficients between -q and q and gives such. */
export function transformBack(p: usize): void {
  let zeta = ZETAS + 1024;
  for (let half: usize = 4; half < POLY; half <<= 1) {
    for (let from = p; from < p + POLY; from += 2 * half) {
      zeta -= 4;
      const z = -<i64>load<i32>(zeta);
      for (let j = from, end = from + half; j < end; j += 4) {
        const a = load<i32>(j);
        const b = load<i32>(j + half);
        store<i32>(j, a + b);
        store<i32>(j + half, reduce(z * (a - b)));
      }
    }
  }
  for (let j = p, end = p + POLY; j < end; j += 4) store<i32>(j, reduce(<i64>LAST * load<i32>(j)));
}

/** out = a b / 2^32, coefficient by coefficient. */
export function multiply(out: usize, a: usize, b: usize): void {
  for (let i: usize = 0; i < POLY; i += 4) store<i32>(out + i, reduce(<i64>load<i32>(a + i) * load<i32>(b + i)));
}

/** out = sum of five products / 2^32: a row of the matrix times a vector. */
export function multiplyRow(out: usize, row: usize, vector: usize): void {
  for (let i: usize = 0; i < POLY; i += 4) {
    const a = row + i;
    const b = vector + i;
    store<i32>(
      out + i,
      reduce(
        <i64>load<i32>(a) * load<i32>(b) +
          <i64>load<i32>(a, 1024) * load<i32>(b, 1024) +
          <i64>load<i32>(a, 2048) * load<i32>(b, 2048) +
          <i64>load<i32>(a, 3072) * load<i32>(b, 3072) +
          <i64>load<i32>(a, 4096) * load<i32>(b, 4096),
      ),
    );
  }
}

/** Whether every coefficient, which lies between -q and q, is less than `bound` away from a multiple of q. Looks at all of them. */
export function isShort(p: usize, bound: i32): bool {
  let long: i32 = 0;
  for (let i: usize = 0; i < POLY; i += 4) {
    const a = positive(load<i32>(p + i));
    // The distance from 0 or from q, whichever is less.
    const over = (Q >> 1) - a;
    const distance = a + ((over >> 31) & (Q - 2 * a));
    long |= (bound - 1 - distance) >> 31;
  }
  return long == 0;
}

const GAMMA2: i32 = 261888;

/** HighBits (algorithm 37) of a coefficient from 0 to q - 1: the nearest multiple of 2 gamma2, the last of them being 0. A multiplication by 2^46 / 523,776 replaces the division; it is exact for
 * all of them. */
@inline
export function highBits(a: i32): i32 {
  const high = <i32>((<u64>(a + GAMMA2 - 1) * 134348929) >> 46);
  return high & ((high - 16) >> 31);
}

/** LowBits: what highBits leaves, between -gamma2 and gamma2. */
@inline
export function lowBits(a: i32, high: i32): i32 {
  const low = a - high * 2 * GAMMA2;
  // Where the multiple 16 became 0, low is just below q: it is one less than q further down.
  return low - (((Q >> 1) - low) >> 31 & Q);
}
