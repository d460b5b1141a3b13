/**
 * The property every decoder of protocol/ has: an input is either a value that encodes back to the same bytes, or a
 * ProtocolError. Inputs are random bytes, and valid encodings cut, extended and mutated, because random bytes alone
 * rarely pass the first check.
 */
import fc from 'fast-check';
import { expect } from 'vitest';
import { type Bytes, concat, toHex } from '../../protocol/bytes.ts';
import { ProtocolError } from '../../protocol/errors.ts';
import { count, seed } from '../level.ts';

/** Any code point of Unicode. `unit: 'binary'` of fast-check makes a table of all million of them first, which takes a second. */
export const codePoint = fc
  .nat({ max: 0x10_ffff - 0x800 })
  .map((n) => String.fromCodePoint(n < 0xd800 ? n : n + 0x800));

export type Codec<T> = {
  readonly name: string;
  readonly decode: (bytes: Bytes) => T;
  readonly encode: (value: T) => Bytes;
  readonly samples: readonly Bytes[];
};

type Mutation = { at: number; byte: number; kind: 'set' | 'flip' | 'cut' | 'insert' | 'copy' };

function mutate(sample: Bytes, mutations: readonly Mutation[]): Bytes {
  let bytes = Uint8Array.from(sample);
  for (const { at, byte, kind } of mutations) {
    const place = bytes.length === 0 ? 0 : at % bytes.length;
    if (kind === 'cut') bytes = bytes.slice(0, place);
    else if (kind === 'insert') bytes = concat(bytes.subarray(0, place), Uint8Array.of(byte), bytes.subarray(place));
    else if (kind === 'copy') bytes = concat(bytes, bytes.subarray(place, place + (byte % 64)));
    else if (bytes.length > 0) bytes[place] = kind === 'set' ? byte : (bytes[place] as number) ^ (1 << (byte % 8));
  }
  return bytes;
}

export function arbitraryInput(samples: readonly Bytes[]): fc.Arbitrary<Bytes> {
  const mutation = fc.record({
    at: fc.nat({ max: 100_000 }),
    byte: fc.nat({ max: 255 }),
    kind: fc.constantFrom('set', 'flip', 'cut', 'insert', 'copy') as fc.Arbitrary<Mutation['kind']>,
  });
  return fc.oneof(
    { weight: 1, arbitrary: fc.uint8Array({ maxLength: 512 }) },
    {
      weight: 4,
      arbitrary: fc
        .tuple(fc.constantFrom(...samples), fc.array(mutation, { maxLength: 4 }))
        .map(([sample, mutations]) => mutate(sample, mutations)),
    },
  );
}

export function fuzzDecoder<T>(codec: Codec<T>): void {
  const runs = count({ quick: 300, full: 3000, deep: 100_000 });
  let accepted = 0;
  const refused = new Map<string, number>();
  fc.assert(
    fc.property(arbitraryInput(codec.samples), (bytes) => {
      let value: T;
      try {
        value = codec.decode(bytes);
      } catch (error) {
        if (!(error instanceof ProtocolError)) throw error;
        refused.set(error.code, (refused.get(error.code) ?? 0) + 1);
        return;
      }
      accepted++;
      expect(toHex(codec.encode(value))).toBe(toHex(bytes));
    }),
    { seed, numRuns: runs },
  );
  const reasons = [...refused].map(([code, times]) => `${code} ${times}`).join(', ');
  console.log(`fuzz ${codec.name}: ${runs} inputs, ${accepted} accepted, refused: ${reasons}`);
  expect(accepted).toBeGreaterThan(0);
  expect(refused.size).toBeGreaterThan(0);
}
