/** HMAC (FIPS 198-1) and PBKDF2 (SP 800-132) over SHA-512 and SHA-256. A keyed HMAC is two states: the inner and the outer one, each one block in. */
import { giveBack, here, take } from './arena';
import {
  BLOCK_256, BLOCK_512, blocks256, blocks512, finish256, finish512, STATE_256, STATE_512, start256, start512,
} from './sha2';

export const KEYED_512: usize = 2 * STATE_512;
const KEYED_256: usize = 2 * STATE_256;

@inline
function pad(block: usize, length: usize, mask: u64): void {
  for (let i: usize = 0; i < length; i += 8) store<u64>(block + i, load<u64>(block + i) ^ mask);
}
const INNER: u64 = 0x3636363636363636;
/** From the inner padding to the outer one. */
const OUTER: u64 = 0x3636363636363636 ^ 0x5c5c5c5c5c5c5c5c;

export function key512(keyed: usize, key: usize, length: usize): void {
  const mark = here();
  const block = take(BLOCK_512);
  memory.fill(block, 0, BLOCK_512);
  if (length > BLOCK_512) {
    start512(keyed);
    finish512(keyed, key, length, 0, block, 64);
  } else memory.copy(block, key, length);
  pad(block, BLOCK_512, INNER);
  start512(keyed);
  blocks512(keyed, block, 1);
  pad(block, BLOCK_512, OUTER);
  start512(keyed + STATE_512);
  blocks512(keyed + STATE_512, block, 1);
  giveBack(mark);
}

/** 64 bytes to `out`, which may be `bytes`. */
export function mac512(keyed: usize, bytes: usize, length: usize, out: usize): void {
  const mark = here();
  const state = take(STATE_512);
  memory.copy(state, keyed, STATE_512);
  finish512(state, bytes, length, BLOCK_512, out, 64);
  memory.copy(state, keyed + STATE_512, STATE_512);
  finish512(state, out, 64, BLOCK_512, out, 64);
  giveBack(mark);
}

export function hmac512(key: usize, keyLength: usize, bytes: usize, length: usize, out: usize): void {
  const mark = here();
  const keyed = take(KEYED_512);
  key512(keyed, key, keyLength);
  mac512(keyed, bytes, length, out);
  giveBack(mark);
}

/** One block of 64 bytes: all that a phrase needs. `salt` has four bytes of room behind it. */
export function pbkdf2_512(password: usize, passwordLength: usize, salt: usize, saltLength: usize, rounds: u32, out: usize): void {
  const mark = here();
  const keyed = take(KEYED_512);
  const u = take(64);
  key512(keyed, password, passwordLength);
  store<u32>(salt + saltLength, bswap<u32>(1));
  mac512(keyed, salt, saltLength + 4, u);
  memory.copy(out, u, 64);
  for (let i: u32 = 1; i < rounds; i++) {
    mac512(keyed, u, 64, u);
    for (let j: usize = 0; j < 64; j += 8) store<u64>(out + j, load<u64>(out + j) ^ load<u64>(u + j));
  }
  giveBack(mark);
}

function key256(keyed: usize, key: usize, length: usize): void {
  const mark = here();
  const block = take(BLOCK_256);
  memory.fill(block, 0, BLOCK_256);
  if (length > BLOCK_256) {
    start256(keyed);
    finish256(keyed, key, length, 0, block);
  } else memory.copy(block, key, length);
  pad(block, BLOCK_256, INNER);
  start256(keyed);
  blocks256(keyed, block, 1);
  pad(block, BLOCK_256, OUTER);
  start256(keyed + STATE_256);
  blocks256(keyed + STATE_256, block, 1);
  giveBack(mark);
}

/** PBKDF2-HMAC-SHA256 with one round, as scrypt uses it. `salt` has four bytes of room behind it; `length` is a multiple of 32. */
export function pbkdf2_256(password: usize, passwordLength: usize, salt: usize, saltLength: usize, out: usize, length: usize): void {
  const mark = here();
  const keyed = take(KEYED_256);
  const state = take(STATE_256);
  key256(keyed, password, passwordLength);
  for (let i: usize = 0; i < length; i += 32) {
    store<u32>(salt + saltLength, bswap<u32>(<u32>(i / 32) + 1));
    memory.copy(state, keyed, STATE_256);
    finish256(state, salt, saltLength + 4, BLOCK_256, out + i);
    memory.copy(state, keyed + STATE_256, STATE_256);
    finish256(state, out + i, 32, BLOCK_256, out + i);
  }
  giveBack(mark);
}
