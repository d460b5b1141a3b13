import { expect, test } from 'vitest';
import { fromHex } from '../../protocol/bytes.ts';
import { isDatasetSeed, powEpoch, powMeets, powPreHash } from '../../protocol/pow.ts';
import { checkReference } from './pow-reference.ts';
import { DEVELOPMENT, vectorsOf } from './pow-vectors.ts';

test.each(vectorsOf('development'))('the reference reproduces development epoch $epoch', (vector) => {
  checkReference(DEVELOPMENT, vector);
});

test('a hash is read as a big-endian number and meets a target at or above it', () => {
  const pow = fromHex(`00${'00'.repeat(30)}ff`);
  expect(powMeets(pow, 255n)).toBe(true);
  expect(powMeets(pow, 254n)).toBe(false);
});

test('epochs follow the anchor height', () => {
  expect(powEpoch(1_036_799)).toBe(0);
  expect(powEpoch(1_036_800)).toBe(1);
  expect(powEpoch(250, 100)).toBe(2);
});

test('a seed is compared with the derived one', () => {
  const [vector] = vectorsOf('mainnet');
  expect(isDatasetSeed(1, 0, fromHex(vector!.dataset_seed))).toBe(true);
  expect(isDatasetSeed(2, 0, fromHex(vector!.dataset_seed))).toBe(false);
});

test('a header of another length is refused', () => {
  expect(() => powPreHash(new Uint8Array(311))).toThrow(/312 bytes/);
});
