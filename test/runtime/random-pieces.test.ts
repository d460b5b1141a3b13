import { expect, test } from 'vitest';
import { randomPieces } from '../../runtime/native/random-pieces.ts';

test('no piece is given twice, whatever the lengths, and none changes afterwards', () => {
  const next = randomPieces();
  const pieces = Array.from({ length: 2_000 }, (_, i) => next(16 + (i % 17)));
  const then = pieces.map((piece) => Buffer.from(piece).toString('hex'));
  expect(new Set(then.map((text) => text.slice(0, 32))).size).toBe(pieces.length);
  next(4_096);
  expect(pieces.map((piece) => Buffer.from(piece).toString('hex'))).toEqual(then);
  expect(pieces.every((piece, i) => piece.length === 16 + (i % 17))).toBe(true);
  expect(() => next(4_097)).toThrow(/at most 4096/);
});
