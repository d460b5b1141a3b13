/** The SHA-384 that programs install in place of the portable one gives the same digests, each in memory of its own. */
import { sha384 } from '@noble/hashes/sha2.js';
import { expect, test } from 'vitest';
import { nativeSha384, nativeSha384OfTwo } from '../../runtime/native/native-sha384.ts';
import { count, seed } from '../level.ts';
import { randomOf } from '../random.ts';

test('OpenSSL and the portable SHA-384 agree, in one piece and in two', () => {
  const random = randomOf(seed);
  for (let i = 0; i < count({ quick: 200, full: 1_000, deep: 20_000 }); i++) {
    const bytes = Uint8Array.from({ length: random(600) }, () => random(256));
    const digest = sha384(bytes);
    const at = random(bytes.length + 1);
    expect(nativeSha384(bytes)).toEqual(digest);
    expect(nativeSha384OfTwo(bytes.subarray(0, at), bytes.subarray(at))).toEqual(digest);
  }
  const first = nativeSha384(new Uint8Array(1));
  const kept = Uint8Array.from(first);
  nativeSha384(new Uint8Array(2));
  expect(first).toEqual(kept);
});
