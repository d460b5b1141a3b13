import fc from 'fast-check';
import { expect, test } from 'vitest';
import { IdentitySet } from '../../pool/books/identity-set.ts';
import { toHex } from '../../protocol/bytes.ts';
import { seed } from '../level.ts';

/** Few different bytes, so that many are the same and many nearly so. */
const identity = fc.uint8Array({ minLength: 24, maxLength: 24, max: 1 });

test('it holds what a set of texts holds, zeros included, however it grows', () => {
  fc.assert(
    fc.property(fc.array(identity, { maxLength: 3_000, size: 'max' }), (identities) => {
      const [set, model] = [new IdentitySet(), new Set<string>()];
      for (const each of [new Uint8Array(24), ...identities, new Uint8Array(24)]) {
        const isNew = !model.has(toHex(each));
        if (set.add(each) !== isNew) throw new Error(`${toHex(each)} is ${isNew ? 'known' : 'lost'}`);
        model.add(toHex(each));
      }
      expect(set.size).toBe(model.size);
    }),
    { seed, numRuns: 30 },
  );
});

test('a hundred thousand nonces of one header', () => {
  const set = new IdentitySet();
  const one = new Uint8Array(24).fill(7);
  const view = new DataView(one.buffer);
  for (const isNew of [true, false])
    for (let i = 0; i < 100_000; i++) {
      view.setUint32(16, i, true);
      if (set.add(one) !== isNew) throw new Error(`${i} is ${isNew ? 'known' : 'lost'}`);
    }
  expect(set.size).toBe(100_000);
});
