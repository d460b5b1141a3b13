/**
 * Targets and work (ledger rule 5). A hash value meets a target when, read as a 256-bit big-endian integer, it is at or
 * below it. The work of a target is the expected number of hashes, floor(2^256 / (target + 1)); there is no other unit
 * of difficulty.
 */
import { type Bytes, bigintFromBytesBE, bigintToBytesBE } from '../bytes.ts';
import { ProtocolError } from '../errors.ts';

const SPACE = 1n << 256n;
export const MAX_TARGET = SPACE - 1n;

export const targetFromBytes = (bytes: Bytes): bigint => {
  if (bytes.length !== 32) throw new ProtocolError('out_of_range', 'a target has 32 bytes');
  return bigintFromBytesBE(bytes);
};

export const targetToBytes = (target: bigint): Uint8Array<ArrayBuffer> => bigintToBytesBE(target, 32);

export function workOfTarget(target: bigint): bigint {
  if (target < 0n || target > MAX_TARGET) throw new ProtocolError('out_of_range', 'a target has 256 bits');
  return SPACE / (target + 1n);
}

/** The easiest target whose work is at least `work`. */
export function targetOfWork(work: bigint): bigint {
  if (work < 1n || work > SPACE) throw new ProtocolError('out_of_range', 'work is from 1 to 2^256');
  return SPACE / work - 1n;
}

/** Compares bytes without making an integer of them: this runs once per share. */
export function meetsTarget(hash: Bytes, target: Bytes): boolean {
  for (let i = 0; i < 32; i++) {
    const difference = (hash[i] as number) - (target[i] as number);
    if (difference !== 0) return difference < 0;
  }
  return true;
}

/** How many bytes of a hash a double holds. */
const SEVEN = 7;

/**
 * About the work of the hardest target that a hash meets, for figures: to seven bytes, and 2^53 - 1 at most. No integer of 256 bits is
 * made: this runs once per share.
 */
export function workOfHash(hash: Bytes): number {
  let zeros = 0;
  while (zeros < hash.length - SEVEN && hash[zeros] === 0) zeros++;
  let leading = 0;
  for (let i = zeros; i < zeros + SEVEN; i++) leading = leading * 256 + (hash[i] as number);
  return Math.min(Number.MAX_SAFE_INTEGER, Math.floor(256 ** (zeros + SEVEN) / (leading + 1)));
}
