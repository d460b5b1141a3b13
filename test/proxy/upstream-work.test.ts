/** The share work that a proxy asks its pool for. */
import { expect, test } from 'vitest';
import { PACE } from '../../miner/work/pace.ts';
import { MOST_SHARES_PER_SECOND, UpstreamWork } from '../../proxy/upstream-work.ts';

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

test('a farm of one fast rig is credited what it hashes, whatever work the pool began with', () => {
  const RATE = 500e6;
  for (let first = 1; first < 64 * RATE; first *= 64)
    for (const perSecond of [1, 5, MOST_SHARES_PER_SECOND]) {
      const wishes = new UpstreamWork(perSecond, 0);
      let work = first;
      const creditedIn = (second: number): number => {
        const at = second * 1_000;
        // A rig sends no more shares than it may: those that it finds beyond are lost to it.
        const shares = Math.min(RATE / work, PACE.sharesPerSecond);
        for (let share = 0; share < shares; share++) wishes.add(BigInt(Math.round(work)), at);
        if (wishes.isDue(BigInt(Math.round(work)), at))
          work = Number(wishes.password(BigInt(Math.round(work)), at).slice(2));
        return shares * work;
      };
      for (let second = 1; second <= 3_600; second++) creditedIn(second);
      expect(creditedIn(3_601) / RATE, `${first} at first, ${perSecond} a second`).toBeGreaterThan(0.999);
    }
});

test('a pool that takes fewer shares a second than are wanted is asked for work of which all can be sent', () => {
  const work = new UpstreamWork(5, 0);
  work.most = 1;
  const at = run(work, 0, 5 * MINUTE, 1_000_000n);
  expect(work.isDue(200_000n, at)).toBe(true);
  const wish = Number(work.password(200_000n, at).slice(2));
  expect(Math.abs(wish - 2_000_000)).toBeLessThan(10_000);
});
