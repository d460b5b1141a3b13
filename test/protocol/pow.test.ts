import { expect, test } from 'vitest';
import { fromHex } from '../../protocol/bytes.ts';
import { isDatasetSeed, powPreHash } from '../../protocol/crypto/pow.ts';
import { checkReference } from './pow-reference.ts';
import { DEVELOPMENT, vectorsOf } from './pow-vectors.ts';

test.each(vectorsOf('development'))('the reference reproduces development epoch $epoch', (vector) => {
  checkReference(DEVELOPMENT, vector);
});

test('a seed is compared with the derived one', () => {
  const [vector] = vectorsOf('mainnet');
  expect(isDatasetSeed(1, 0, fromHex(vector!.dataset_seed))).toBe(true);
  expect(isDatasetSeed(2, 0, fromHex(vector!.dataset_seed))).toBe(false);
});

test('a header of another length is refused', () => {
  expect(() => powPreHash(new Uint8Array(311))).toThrow(/312 bytes/);
});
