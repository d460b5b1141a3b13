/**
 * scrypt (RFC 7914) with r = 8 and p = 1. Its table of 1,024 N bytes lies behind everything else in memory; the host grows the memory of an instance that it uses for
 * this alone, and drops it. Which row is read next depends on the password: that is what makes scrypt hard, and its authors say so.
 */
import { giveBack, here, take } from './arena';
import { pbkdf2_256 } from './hmac';

const BLOCK: usize = 1024;

@inline
function turn(x: v128, by: i32): v128 {
  return v128.or(i32x4.shl(x, by), i32x4.shr_u(x, 32 - by));
}

/** Salsa20/8 on a block whose words are in diagonal order: a quarter round works on four columns at once. */
@inline
function mixBlocks(block: usize, out: usize): void {
  // Starts with the last of the sixteen.
  let a = v128.load(block, 960), b = v128.load(block, 976), c = v128.load(block, 992), d = v128.load(block, 1008);
  for (let i: usize = 0; i < 16; i++) {
    const at = block + 64 * i;
    const a0 = v128.xor(a, v128.load(at)), b0 = v128.xor(b, v128.load(at, 16));
    const c0 = v128.xor(c, v128.load(at, 32)), d0 = v128.xor(d, v128.load(at, 48));
    a = a0; b = b0; c = c0; d = d0;
    for (let round = 0; round < 4; round++) {
      b = v128.xor(b, turn(i32x4.add(a, d), 7));
      c = v128.xor(c, turn(i32x4.add(b, a), 9));
      d = v128.xor(d, turn(i32x4.add(c, b), 13));
      a = v128.xor(a, turn(i32x4.add(d, c), 18));
      // Rows instead of columns.
      b = v128.shuffle<i32>(b, b, 3, 0, 1, 2);
      c = v128.shuffle<i32>(c, c, 2, 3, 0, 1);
      d = v128.shuffle<i32>(d, d, 1, 2, 3, 0);
      d = v128.xor(d, turn(i32x4.add(a, b), 7));
      c = v128.xor(c, turn(i32x4.add(d, a), 9));
      b = v128.xor(b, turn(i32x4.add(c, d), 13));
      a = v128.xor(a, turn(i32x4.add(b, c), 18));
      b = v128.shuffle<i32>(b, b, 1, 2, 3, 0);
      c = v128.shuffle<i32>(c, c, 2, 3, 0, 1);
      d = v128.shuffle<i32>(d, d, 3, 0, 1, 2);
    }
    a = i32x4.add(a, a0); b = i32x4.add(b, b0); c = i32x4.add(c, c0); d = i32x4.add(d, d0);
    // Even blocks to the first half, odd ones to the second.
    const to = out + 64 * (i >> 1) + 512 * (i & 1);
    v128.store(to, a); v128.store(to, b, 16); v128.store(to, c, 32); v128.store(to, d, 48);
  }
}

/** The place of each word of a block in diagonal order: vector a holds 0 5 10 15, b 4 9 14 3, c 8 13 2 7, d 12 1 6 11. */
const DIAGONAL: usize = memory.data<u8>([0, 5, 10, 15, 4, 9, 14, 3, 8, 13, 2, 7, 12, 1, 6, 11]);

function toDiagonal(from: usize, to: usize): void {
  for (let i: usize = 0; i < BLOCK; i += 64)
    for (let j: usize = 0; j < 16; j++)
      store<u32>(to + i + 4 * j, load<u32>(from + i + 4 * <usize>load<u8>(DIAGONAL + j)));
}

function fromDiagonal(from: usize, to: usize): void {
  for (let i: usize = 0; i < BLOCK; i += 64)
    for (let j: usize = 0; j < 16; j++)
      store<u32>(to + i + 4 * <usize>load<u8>(DIAGONAL + j), load<u32>(from + i + 4 * j));
}

@inline
function xorBlock(to: usize, from: usize): void {
  for (let i: usize = 0; i < BLOCK; i += 16) v128.store(to + i, v128.xor(v128.load(to + i), v128.load(from + i)));
}

/** 32 bytes to `out`. `salt` has four bytes of room behind it; `table` has 1,024 times n bytes. */
export function scrypt(password: usize, passwordLength: usize, salt: usize, saltLength: usize, n: u32, table: usize, out: usize): void {
  const mark = here();
  const block = take(BLOCK + 4);
  let x = take(BLOCK);
  let y = take(BLOCK);
  pbkdf2_256(password, passwordLength, salt, saltLength, block, BLOCK);
  toDiagonal(block, x);
  for (let i: u32 = 0; i < n; i++) {
    memory.copy(table + <usize>i * BLOCK, x, BLOCK);
    mixBlocks(x, y);
    const swap = x; x = y; y = swap;
  }
  for (let i: u32 = 0; i < n; i++) {
    // The first word of the last block is the first in diagonal order too.
    const row = load<u32>(x, 960) & (n - 1);
    xorBlock(x, table + <usize>row * BLOCK);
    mixBlocks(x, y);
    const swap = x; x = y; y = swap;
  }
  fromDiagonal(x, block);
  pbkdf2_256(password, passwordLength, block, BLOCK, out, 32);
  memory.fill(table, 0, <usize>n * BLOCK);
  giveBack(mark);
}
