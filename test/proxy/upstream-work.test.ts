/** The share work that a proxy asks its pool for. */
import { expect, test } from 'vitest';
import { UpstreamWork } from '../../proxy/upstream-work.ts';

const MINUTE = 60_000;

/** `perSecond` hashes per second for this long, in shares of a second each. */
function run(work: UpstreamWork, from: number, millis: number, perSecond: bigint): number {
  for (let at = from + 1_000; at <= from + millis; at += 1_000) work.add(perSecond, at);
  return from + millis;
}

test('a pool that chooses well is left alone, and one that does not is asked once', () => {
  const work = new UpstreamWork(5, 0);
  expect(work.password(undefined, 0)).toBe('');
  let at = run(work, 0, 5 * MINUTE, 1_000_000n);
  expect(work.isDue(200_000n, at)).toBe(false);
  expect(work.isDue(110_000n, at)).toBe(false);
  expect(work.isDue(10_000_000n, at)).toBe(true);
  expect(work.isDue(1_000n, at)).toBe(true);
  const first = Number(work.password(10_000_000n, at).slice(2));
  expect(Math.abs(first - 200_000)).toBeLessThan(1_000);
  // The pool cannot give that much: it is not asked again for the same.
  at = run(work, at, 5 * MINUTE, 1_000_000n);
  expect(work.isDue(64n, at)).toBe(false);
  at = run(work, at, 20 * MINUTE, 5_000_000n);
  expect(work.isDue(64n, at)).toBe(true);
  const wish = Number(work.password(64n, at).slice(2));
  expect(wish).toBeGreaterThan(900_000);
  expect(wish).toBeLessThan(1_010_000);
  // Any later login has the wish of its time.
  at = run(work, at, MINUTE / 2, 5_000_000n);
  expect(work.isDue(64n, at)).toBe(false);
  expect(work.password(64n, at)).toMatch(/^d=\d+$/);
});

test('few shares, or a login of a moment ago, are no reason for a wish', () => {
  const work = new UpstreamWork(5, 0);
  let at = run(work, 0, 19_000, 1_000_000n);
  expect(work.isDue(1n, at + MINUTE)).toBe(false);
  at = run(work, at, 30_000, 1_000_000n);
  expect(work.isDue(1n, at)).toBe(false);
  expect(work.password(1n, at)).toBe('');
  at = run(work, at, MINUTE, 1_000_000n);
  expect(work.isDue(1n, at)).toBe(true);
});
