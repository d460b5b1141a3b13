/** Work of a single hash, against the exact work of its 256 bits. */
import { expect, test } from 'vitest';
import {
  MAX_TARGET,
  targetFromBytes,
  targetOfWork,
  targetToBytes,
  workOfHash,
  workOfTarget,
} from '../../protocol/ledger/target.ts';

test('the work of a hash is that of the hardest target it meets, to seven bytes', () => {
  for (let bits = 0; bits <= 256; bits++)
    for (const more of [0n, 1n, (1n << BigInt(bits)) >> 1n, (1n << BigInt(bits)) / 3n]) {
      const value = (1n << BigInt(bits)) - 1n - more;
      if (value < 0n) continue;
      const exact = workOfTarget(value);
      const work = workOfHash(targetToBytes(value));
      expect(Number.isSafeInteger(work)).toBe(true);
      if (exact > BigInt(Number.MAX_SAFE_INTEGER)) expect(work).toBe(Number.MAX_SAFE_INTEGER);
      else expect(Math.abs(work - Number(exact))).toBeLessThanOrEqual(1 + Number(exact) / 2 ** 48);
    }
  expect(workOfHash(new Uint8Array(32))).toBe(Number.MAX_SAFE_INTEGER);
  expect(workOfHash(new Uint8Array(32).fill(255))).toBe(1);
});

test('a target has 32 bytes, and work is from 1 to that of the hardest target', () => {
  for (const target of [0n, 1n, MAX_TARGET]) {
    expect(targetFromBytes(targetToBytes(target))).toBe(target);
    expect(targetOfWork(workOfTarget(target))).toBe(target);
  }
  for (const length of [0, 31, 33]) expect(() => targetFromBytes(new Uint8Array(length))).toThrow('32 bytes');
  for (const target of [-1n, MAX_TARGET + 1n]) expect(() => workOfTarget(target)).toThrow('256 bits');
  for (const work of [0n, -1n, MAX_TARGET + 2n]) expect(() => targetOfWork(work)).toThrow('from 1');
});
