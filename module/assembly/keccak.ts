/**
 * Keccak-f[1600] and the sponges of FIPS 202 that ML-DSA and ML-KEM need. A sponge is 208 bytes: the state of 200, then the place inside the
 * rate as u32. Callers that squeeze read the blocks from the state itself. No step depends on the data: the time is constant.
 */
export const SPONGE: usize = 208;
export const RATE_SHAKE128: usize = 168;
export const RATE_SHAKE256: usize = 136;
export const RATE_SHA3_256: usize = 136;
export const RATE_SHA3_512: usize = 72;
const PLACE: usize = 200;
const SHAKE: u64 = 0x1f;
const SHA3: u64 = 0x06;

const ROUNDS: usize = memory.data<u64>([
  0x0000000000000001, 0x0000000000008082, 0x800000000000808a, 0x8000000080008000,
  0x000000000000808b, 0x0000000080000001, 0x8000000080008081, 0x8000000000008009,
  0x000000000000008a, 0x0000000000000088, 0x0000000080008009, 0x000000008000000a,
  0x000000008000808b, 0x800000000000008b, 0x8000000000008089, 0x8000000000008003,
  0x8000000000008002, 0x8000000000000080, 0x000000000000800a, 0x800000008000000a,
  0x8000000080008081, 0x8000000000008080, 0x0000000080000001, 0x8000000080008008,
]);

export function permute(s: usize): void {
  let a00 = load<u64>(s, 0), a01 = load<u64>(s, 8), a02 = load<u64>(s, 16), a03 = load<u64>(s, 24), a04 = load<u64>(s, 32);
  let a05 = load<u64>(s, 40), a06 = load<u64>(s, 48), a07 = load<u64>(s, 56), a08 = load<u64>(s, 64), a09 = load<u64>(s, 72);
  let a10 = load<u64>(s, 80), a11 = load<u64>(s, 88), a12 = load<u64>(s, 96), a13 = load<u64>(s, 104), a14 = load<u64>(s, 112);
  let a15 = load<u64>(s, 120), a16 = load<u64>(s, 128), a17 = load<u64>(s, 136), a18 = load<u64>(s, 144), a19 = load<u64>(s, 152);
  let a20 = load<u64>(s, 160), a21 = load<u64>(s, 168), a22 = load<u64>(s, 176), a23 = load<u64>(s, 184), a24 = load<u64>(s, 192);
  for (let r = ROUNDS, end = ROUNDS + 192; r < end; r += 8) {
    const c0 = a00 ^ a05 ^ a10 ^ a15 ^ a20;
    const c1 = a01 ^ a06 ^ a11 ^ a16 ^ a21;
    const c2 = a02 ^ a07 ^ a12 ^ a17 ^ a22;
    const c3 = a03 ^ a08 ^ a13 ^ a18 ^ a23;
    const c4 = a04 ^ a09 ^ a14 ^ a19 ^ a24;
    const d0 = c4 ^ rotl<u64>(c1, 1);
    const d1 = c0 ^ rotl<u64>(c2, 1);
    const d2 = c1 ^ rotl<u64>(c3, 1);
    const d3 = c2 ^ rotl<u64>(c4, 1);
    const d4 = c3 ^ rotl<u64>(c0, 1);
    const b00 = a00 ^ d0;
    const b01 = rotl<u64>(a06 ^ d1, 44);
    const b02 = rotl<u64>(a12 ^ d2, 43);
    const b03 = rotl<u64>(a18 ^ d3, 21);
    const b04 = rotl<u64>(a24 ^ d4, 14);
    const b05 = rotl<u64>(a03 ^ d3, 28);
    const b06 = rotl<u64>(a09 ^ d4, 20);
    const b07 = rotl<u64>(a10 ^ d0, 3);
    const b08 = rotl<u64>(a16 ^ d1, 45);
    const b09 = rotl<u64>(a22 ^ d2, 61);
    const b10 = rotl<u64>(a01 ^ d1, 1);
    const b11 = rotl<u64>(a07 ^ d2, 6);
    const b12 = rotl<u64>(a13 ^ d3, 25);
    const b13 = rotl<u64>(a19 ^ d4, 8);
    const b14 = rotl<u64>(a20 ^ d0, 18);
    const b15 = rotl<u64>(a04 ^ d4, 27);
    const b16 = rotl<u64>(a05 ^ d0, 36);
    const b17 = rotl<u64>(a11 ^ d1, 10);
    const b18 = rotl<u64>(a17 ^ d2, 15);
    const b19 = rotl<u64>(a23 ^ d3, 56);
    const b20 = rotl<u64>(a02 ^ d2, 62);
    const b21 = rotl<u64>(a08 ^ d3, 55);
    const b22 = rotl<u64>(a14 ^ d4, 39);
    const b23 = rotl<u64>(a15 ^ d0, 41);
    const b24 = rotl<u64>(a21 ^ d1, 2);
    a00 = b00 ^ (~b01 & b02) ^ load<u64>(r);
    a01 = b01 ^ (~b02 & b03);
    a02 = b02 ^ (~b03 & b04);
    a03 = b03 ^ (~b04 & b00);
    a04 = b04 ^ (~b00 & b01);
    a05 = b05 ^ (~b06 & b07);
    a06 = b06 ^ (~b07 & b08);
    a07 = b07 ^ (~b08 & b09);
    a08 = b08 ^ (~b09 & b05);
    a09 = b09 ^ (~b05 & b06);
    a10 = b10 ^ (~b11 & b12);
    a11 = b11 ^ (~b12 & b13);
    a12 = b12 ^ (~b13 & b14);
    a13 = b13 ^ (~b14 & b10);
    a14 = b14 ^ (~b10 & b11);
    a15 = b15 ^ (~b16 & b17);
    a16 = b16 ^ (~b17 & b18);
    a17 = b17 ^ (~b18 & b19);
    a18 = b18 ^ (~b19 & b15);
    a19 = b19 ^ (~b15 & b16);
    a20 = b20 ^ (~b21 & b22);
    a21 = b21 ^ (~b22 & b23);
    a22 = b22 ^ (~b23 & b24);
    a23 = b23 ^ (~b24 & b20);
    a24 = b24 ^ (~b20 & b21);
  }
  store<u64>(s, a00, 0); store<u64>(s, a01, 8); store<u64>(s, a02, 16); store<u64>(s, a03, 24); store<u64>(s, a04, 32);
  store<u64>(s, a05, 40); store<u64>(s, a06, 48); store<u64>(s, a07, 56); store<u64>(s, a08, 64); store<u64>(s, a09, 72);
  store<u64>(s, a10, 80); store<u64>(s, a11, 88); store<u64>(s, a12, 96); store<u64>(s, a13, 104); store<u64>(s, a14, 112);
  store<u64>(s, a15, 120); store<u64>(s, a16, 128); store<u64>(s, a17, 136); store<u64>(s, a18, 144); store<u64>(s, a19, 152);
  store<u64>(s, a20, 160); store<u64>(s, a21, 168); store<u64>(s, a22, 176); store<u64>(s, a23, 184); store<u64>(s, a24, 192);
}

export function start(s: usize): void {
  memory.fill(s, 0, SPONGE);
}

export function absorb(s: usize, rate: usize, bytes: usize, length: usize): void {
  let at = <usize>load<u32>(s, PLACE);
  for (let i: usize = 0; i < length; ) {
    if (!(at & 7)) {
      // Whole lanes while there are any.
      while (length - i >= 8 && at < rate) {
        store<u64>(s + at, load<u64>(s + at) ^ load<u64>(bytes + i));
        at += 8;
        i += 8;
      }
    }
    if (at < rate && i < length) {
      store<u8>(s + at, load<u8>(s + at) ^ load<u8>(bytes + i));
      at++;
      i++;
    }
    if (at == rate) {
      permute(s);
      at = 0;
    }
  }
  store<u32>(s, <u32>at, PLACE);
}

export function absorbByte(s: usize, rate: usize, byte: u32): void {
  let at = <usize>load<u32>(s, PLACE);
  store<u8>(s + at, load<u8>(s + at) ^ <u8>byte);
  if (++at == rate) {
    permute(s);
    at = 0;
  }
  store<u32>(s, <u32>at, PLACE);
}

/** Pads, and leaves the first block of output in the state. */
function finish(s: usize, rate: usize, domain: u64): void {
  const at = <usize>load<u32>(s, PLACE);
  store<u8>(s + at, load<u8>(s + at) ^ <u8>domain);
  store<u8>(s + rate - 1, load<u8>(s + rate - 1) ^ 0x80);
  permute(s);
  store<u32>(s, 0, PLACE);
}

export function finishShake(s: usize, rate: usize): void {
  finish(s, rate, SHAKE);
}

/** Output of any length after `finishShake`; goes on where the last call ended. */
export function squeeze(s: usize, rate: usize, out: usize, length: usize): void {
  let at = <usize>load<u32>(s, PLACE);
  while (length > 0) {
    if (at == rate) {
      permute(s);
      at = 0;
    }
    const part = min(rate - at, length);
    memory.copy(out, s + at, part);
    at += part;
    out += part;
    length -= part;
  }
  store<u32>(s, <u32>at, PLACE);
}

/** SHA3-256 and SHA3-512 of what was absorbed. */
export function finishSha3(s: usize, rate: usize, out: usize, length: usize): void {
  finish(s, rate, SHA3);
  memory.copy(out, s, length);
}
