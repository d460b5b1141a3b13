import { expect, test } from 'vitest';
import { fromHex, toHex } from '../../protocol/bytes.ts';
import { fromNativeHex, nativeHex } from '../../runtime/native/native-hex.ts';

const bytes = Uint8Array.from({ length: 1_000 }, (_, i) => (i * 7_919) % 256);
const text = toHex(bytes);

test('the same text and the same bytes as the portable functions, parts of an array included', () => {
  expect(nativeHex(bytes)).toBe(text);
  expect(nativeHex(bytes.subarray(3, 900))).toBe(text.slice(6, 1_800));
  expect(fromNativeHex(text)).toEqual(bytes);
  expect(fromNativeHex('')).toEqual(new Uint8Array(0));
});

test('the same errors, wherever a wrong character is', () => {
  const outcome = (read: (value: string) => unknown, value: string) => {
    try {
      return read(value);
    } catch (error) {
      return (error as Error).message;
    }
  };
  // The last ones have the low byte of a digit or a letter.
  for (const wrong of ['', 'g', 'A', 'F', ' ', '/', ':', '`', '\0', '\u00b1', '\u0130', '\u2f61', '\uff10'])
    for (const at of [0, 1, 2, 777, 1_998, 1_999]) {
      const value = text.slice(0, at) + wrong + text.slice(at + 1);
      expect(typeof outcome(fromNativeHex, value), `'${wrong}' at ${at}`).toBe('string');
      expect(outcome(fromNativeHex, value)).toBe(outcome(fromHex, value));
    }
});
