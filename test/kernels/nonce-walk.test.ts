import { expect, test } from 'vitest';
import { NonceWalk } from '../../kernels/gpu/nonce-walk.ts';

const ANY = new Uint8Array(32).fill(255);
const job = (from: bigint, to: bigint, prefixBytes = 2) => {
  const header = new Uint8Array(312);
  header.set([1, 2, 3, 4, 5, 6, 7, 8], 304);
  return { id: 1, header, prefixBytes, nonces: { from, to }, target: ANY, epoch: 0 };
};
const FIXED = 0x0807n << 48n;

test('runs follow each other without a gap, within the bytes that the job leaves free', () => {
  const walk = new NonceWalk(job(5n, 12n), 1 << 20);
  expect([walk.next(3), walk.next(3), walk.next(3), walk.next(3)]).toEqual([
    { nonce: FIXED | 5n, count: 3 },
    { nonce: FIXED | 8n, count: 3 },
    { nonce: FIXED | 11n, count: 1 },
    undefined,
  ]);
});

test('a target that many meet makes runs shorter, so that their hits fit', () => {
  expect(new NonceWalk(job(0n, 1_000n), 64).next(1_000)).toEqual({ nonce: FIXED, count: 16 });
});

test('a run whose hits did not fit is searched again in halves, and the job is over when the last one is back', () => {
  const walk = new NonceWalk(job(0n, 5n), 1 << 20);
  const whole = walk.next(5) as { nonce: bigint; count: number };
  expect(walk.isOver).toBe(false);
  walk.settle(whole, false);
  expect(walk.isOver).toBe(false);
  const halves = [walk.next(5), walk.next(5)];
  expect(halves).toEqual([
    { nonce: FIXED | 2n, count: 3 },
    { nonce: FIXED, count: 2 },
  ]);
  expect(walk.next(5)).toBeUndefined();
  for (const half of halves) {
    expect(walk.isOver).toBe(false);
    walk.settle(half as { nonce: bigint; count: number }, true);
  }
  expect(walk.isOver).toBe(true);
});

test('how many nonces a block takes is read from the header', () => {
  const easy = job(0n, 1n);
  easy.header[274] = 1;
  expect(new NonceWalk(easy, 64).noncesPerBlock).toBeCloseTo(2 ** 24, -1);
  expect(new NonceWalk(job(0n, 1n), 64).noncesPerBlock).toBeGreaterThan(2 ** 63);
});
