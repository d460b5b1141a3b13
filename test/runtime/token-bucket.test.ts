import { expect, test } from 'vitest';
import { fullBucket, give, refill, take } from '../../runtime/clients/token-bucket.ts';

const RATE = { perSecond: 10, burst: 5 };

test('a burst, then the rate; a clock that goes back refills nothing', () => {
  let bucket = fullBucket(RATE, 1_000);
  for (let i = 0; i < 5; i++) bucket = take(bucket, RATE, 1_000) ?? expect.fail('within the burst');
  expect(take(bucket, RATE, 1_000)).toBeUndefined();
  expect(take(bucket, RATE, 1_099)).toBeUndefined();
  expect(take(bucket, RATE, 1_100)).toEqual({ tokens: 0, atMillis: 1_100 });
  expect(refill(bucket, RATE, 0)).toEqual({ tokens: 0, atMillis: 0 });
  expect(refill(bucket, RATE, 60_000).tokens).toBe(5);
});

test('what is given never exceeds the burst', () => {
  const empty = { tokens: 0, atMillis: 0 };
  expect(give(empty, RATE, 4)).toEqual({ tokens: 4, atMillis: 0 });
  expect(give(empty, RATE, 9)).toEqual({ tokens: 5, atMillis: 0 });
});
