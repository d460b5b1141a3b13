/** Rates of buckets that are not over and of pools that are young: work over the seconds it was done in. */
import { expect, test } from 'vitest';
import { countedSeconds } from '../../pool/stats/counted.ts';
import { ratesSince, windowSeconds } from '../../pool/stats/rates.ts';

/** One hash a second since `began`, of which the books know those that are five seconds old. */
function workOf(tier: number, bucket: number, began: number, now: number): number {
  const from = Math.max(began, bucket * tier);
  return Math.max(0, Math.min((bucket + 1) * tier, now - 5) - from);
}

test.each([60, 600, 3600])('a steady miner has no dip at the edge of a bucket of %i s', (tier) => {
  const began = 10 * 3600 + 1_234;
  let shown = 0;
  const dips: { secondsAfterStart: number; rate: number }[] = [];
  for (let now = began + 40; now < began + 3 * tier; now++)
    for (const bucket of [0, 1, 2].map((back) => Math.floor(now / tier) - back)) {
      if ((bucket + 1) * tier <= began) continue;
      const seconds = countedSeconds({ tier, bucket }, began, now);
      if (seconds === undefined) continue;
      const rate = workOf(tier, bucket, began, now) / seconds;
      if (!(rate > 0.75 && rate < 1.2)) dips.push({ secondsAfterStart: now - began, rate });
      shown++;
    }
  expect(dips).toEqual([]);
  expect(shown).toBeGreaterThan(2 * tier);
});

test('a bucket that has just begun has no point, and the first of all has one', () => {
  expect(countedSeconds({ tier: 600, bucket: 5 }, 10, 3_020)).toBeUndefined();
  expect(countedSeconds({ tier: 600, bucket: 5 }, 10, 3_100)).toBe(92);
  expect(countedSeconds({ tier: 600, bucket: 5 }, 3_010, 3_020)).toBe(30);
  expect(countedSeconds({ tier: 600, bucket: 4 }, 10, 3_600)).toBe(600);
});

test('no window reaches back before the first share', () => {
  expect(windowSeconds(86_400, 1_000, 1_240)).toBe(240);
  expect(windowSeconds(86_400, 1_000, 1_010)).toBe(60);
  expect(windowSeconds(600, 1_000, 9_000)).toBe(600);
  expect(windowSeconds(600, undefined, 9_000)).toBe(600);
  // A clock that was set back.
  expect(windowSeconds(600, 9_500, 9_000)).toBe(600);
  const day = 86_400;
  const rates = { tenMinutes: 60, hour: 60, day: 60 * (3_600 / day) };
  // The pool is old, the miner came an hour ago.
  expect(ratesSince(rates, 1, 10 * day - 3_600, 10 * day)).toEqual({ tenMinutes: 60, hour: 60, day: 60 });
  // Both are as young: the pool's rates are right as they are.
  expect(ratesSince(rates, 9 * day, 9 * day - 40, 9 * day + 240)).toEqual(rates);
});
