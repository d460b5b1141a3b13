/**
 * The ring of ML-KEM (FIPS 203): polynomials of 256 coefficients modulo q = 3,329, as 16-bit words. Products are Montgomery products (a b / 2^16), and rounding
 * is a multiplication, so nothing is divided; what is written as a branch depends on places, never on coefficients.
 */
export const Q: i32 = 3329;
export const POLY: usize = 512;
/** 1 / q modulo 2^16. */
const Q_INVERSE: i32 = 62209;
/** 2^32 / 128 modulo q: ends the inverse transform, and makes good for the 2^16 that a product lost. */
const LAST: i32 = 1441;
/** 2^32 modulo q: a product with it is a multiplication by 2^16. */
const UP: i32 = 1353;

/** a / 2^16 modulo q, between -q and q, for |a| below 2^15 q. */
@inline
function reduce(a: i32): i32 {
  const t = ((a * Q_INVERSE) << 16) >> 16;
  return (a - t * Q) >> 16;
}

/** The same residue between -q / 2 and q / 2, for |a| below 2^15: 20,159 / 2^26 is 1 / q. */
@inline
function centre(a: i32): i32 {
  return a - ((20159 * a + (1 << 25)) >> 26) * Q;
}

/** From between -q and q to between 0 and q - 1. */
@inline
function positive(a: i32): i32 {
  return a + ((a >> 31) & Q);
}

/** 17^brv(i) 2^16 modulo q, for i from 0 to 127 (FIPS 203, appendix A). */
const ZETAS: usize = memory.data(256, 16);
fillZetas();
function fillZetas(): void {
  // 2^16 and 17 2^16 modulo q.
  let power: i32 = 2285;
  for (let i: u32 = 0; i < 128; i++) {
    let place: usize = 0;
    for (let bit = 0; bit < 7; bit++) place |= ((i >> bit) & 1) << (6 - bit);
    store<i16>(ZETAS + 2 * place, <i16>centre(power));
    power = positive(reduce(power * 2226));
  }
}

/** NTT (algorithm 9). Takes coefficients between -q and q, and gives them centred. */
export function transform(p: usize): void {
  let zeta = ZETAS;
  for (let half: usize = 256; half >= 4; half >>= 1)
    for (let from = p; from < p + POLY; from += 2 * half) {
      zeta += 2;
      const z = <i32>load<i16>(zeta);
      for (let j = from, end = from + half; j < end; j += 2) {
        const t = reduce(z * load<i16>(j + half));
        const a = <i32>load<i16>(j);
        store<i16>(j + half, <i16>(a - t));
        store<i16>(j, <i16>(a + t));
      }
    }
  centreAll(p);
}

/** The inverse (algorithm 10), times 2^16: what a sum of products lost is made good. */
export function transformBack(p: usize): void {
  let zeta = ZETAS + 256;
  for (let half: usize = 4; half < POLY; half <<= 1)
    for (let from = p; from < p + POLY; from += 2 * half) {
      zeta -= 2;
      const z = <i32>load<i16>(zeta);
      for (let j = from, end = from + half; j < end; j += 2) {
        const a = <i32>load<i16>(j);
        const b = <i32>load<i16>(j + half);
        store<i16>(j, <i16>centre(a + b));
        store<i16>(j + half, <i16>reduce(z * (b - a)));
      }
    }
  for (let j = p, end = p + POLY; j < end; j += 2) store<i16>(j, <i16>reduce(LAST * load<i16>(j)));
}

/** out = sum of three products / 2^16: a row of the matrix, or a vector, times a vector (algorithms 11 and 12). Both are transformed; `b` is centred. */
export function multiplyRow(out: usize, a: usize, b: usize): void {
  let zeta = ZETAS + 128;
  for (let i: usize = 0; i < POLY; i += 8, zeta += 2) {
    const z = <i32>load<i16>(zeta);
    multiplyPair(out + i, a + i, b + i, z);
    multiplyPair(out + i + 4, a + i + 4, b + i + 4, -z);
  }
}

/** Modulo X^2 - z. */
@inline
function multiplyPair(out: usize, a: usize, b: usize, z: i32): void {
  let low: i32 = 0, high: i32 = 0, square: i32 = 0;
  for (let k: usize = 0; k < 3 * POLY; k += POLY) {
    const a0 = <i32>load<i16>(a + k), a1 = <i32>load<i16>(a + k, 2);
    const b0 = <i32>load<i16>(b + k), b1 = <i32>load<i16>(b + k, 2);
    low += a0 * b0;
    square += a1 * b1;
    high += a0 * b1 + a1 * b0;
  }
  store<i16>(out, <i16>reduce(low + z * reduce(square)));
  store<i16>(out, <i16>reduce(high), 2);
}

/** Times 2^16. */
export function raise(p: usize): void {
  for (let j = p, end = p + POLY; j < end; j += 2) store<i16>(j, <i16>reduce(UP * load<i16>(j)));
}

export function add(to: usize, p: usize): void {
  for (let i: usize = 0; i < POLY; i += 2) store<i16>(to + i, <i16>centre(<i32>load<i16>(to + i) + load<i16>(p + i)));
}

/** to = p - to. */
export function subtractFrom(to: usize, p: usize): void {
  for (let i: usize = 0; i < POLY; i += 2) store<i16>(to + i, <i16>centre(<i32>load<i16>(p + i) - load<i16>(to + i)));
}

export function centreAll(p: usize): void {
  for (let j = p, end = p + POLY; j < end; j += 2) store<i16>(j, <i16>centre(load<i16>(j)));
}

/** ByteEncode with 12 bits: two coefficients in three bytes. */
export function pack12(out: usize, p: usize): void {
  for (let i: usize = 0; i < POLY; i += 4, out += 3) {
    const pair = positive(load<i16>(p + i)) | (positive(load<i16>(p + i, 2)) << 12);
    store<u8>(out, <u8>pair);
    store<u8>(out, <u8>(pair >> 8), 1);
    store<u8>(out, <u8>(pair >> 16), 2);
  }
}

/** Whether every coefficient is below q. */
export function unpack12(out: usize, bytes: usize): bool {
  let large: i32 = 0;
  for (let i: usize = 0; i < POLY; i += 4, bytes += 3) {
    const low = <i32>load<u8>(bytes) | (<i32>(load<u8>(bytes, 1) & 15) << 8);
    const high = <i32>(load<u8>(bytes, 1) >> 4) | (<i32>load<u8>(bytes, 2) << 4);
    large |= (Q - 1 - low) | (Q - 1 - high);
    store<i16>(out + i, <i16>low);
    store<i16>(out + i, <i16>high, 2);
  }
  return large >= 0;
}

/** Compress (section 4.2.1): round(2^bits a / q) modulo 2^bits. The multiplication by 2^36 / q and one more replaces the division; it is exact below 2^24. */
@inline
function compress(a: i32, bits: i32): i32 {
  const scaled = <u64>((positive(a) << bits) + (Q >> 1));
  return <i32>((scaled * 20642679) >> 36) & ((1 << bits) - 1);
}

@inline
function expand(a: i32, bits: i32): i32 {
  return (a * Q + (1 << (bits - 1))) >> bits;
}

/** Four coefficients of 10 bits in five bytes. */
export function pack10(out: usize, p: usize): void {
  for (let i: usize = 0; i < POLY; i += 8, out += 5) {
    let four: u64 = 0;
    for (let j: usize = 0; j < 4; j++) four |= <u64>compress(load<i16>(p + i + 2 * j), 10) << (10 * <u64>j);
    store<u32>(out, <u32>four);
    store<u8>(out, <u8>(four >> 32), 4);
  }
}

export function unpack10(out: usize, bytes: usize): void {
  for (let i: usize = 0; i < POLY; i += 8, bytes += 5) {
    const four = <u64>load<u32>(bytes) | (<u64>load<u8>(bytes, 4) << 32);
    for (let j: usize = 0; j < 4; j++)
      store<i16>(out + i + 2 * j, <i16>expand(<i32>(four >> (10 * <u64>j)) & 1023, 10));
  }
}

/** Two coefficients of 4 bits in a byte. */
export function pack4(out: usize, p: usize): void {
  for (let i: usize = 0; i < POLY; i += 4, out++)
    store<u8>(out, <u8>(compress(load<i16>(p + i), 4) | (compress(load<i16>(p + i, 2), 4) << 4)));
}

export function unpack4(out: usize, bytes: usize): void {
  for (let i: usize = 0; i < POLY; i += 4, bytes++) {
    const pair = <i32>load<u8>(bytes);
    store<i16>(out + i, <i16>expand(pair & 15, 4));
    store<i16>(out + i, <i16>expand(pair >> 4, 4), 2);
  }
}

/** 32 bytes: one bit a coefficient. */
export function pack1(out: usize, p: usize): void {
  for (let i: usize = 0; i < 32; i++) {
    let byte: i32 = 0;
    for (let j: usize = 0; j < 8; j++) byte |= compress(load<i16>(p + 16 * i + 2 * j), 1) << <i32>j;
    store<u8>(out + i, <u8>byte);
  }
}

export function unpack1(out: usize, bytes: usize): void {
  for (let i: usize = 0; i < 32; i++) {
    const byte = <i32>load<u8>(bytes + i);
    for (let j: usize = 0; j < 8; j++) store<i16>(out + 16 * i + 2 * j, <i16>(-((byte >> <i32>j) & 1) & ((Q + 1) >> 1)));
  }
}
