import fc from 'fast-check';
import { expect, test } from 'vitest';
import { PUBLIC_RATE_LIMIT, RateLimiter } from '../../node/api/rate-limit.ts';
import { seed } from '../level.ts';

test('nobody gets more than burst plus rate, whatever the pattern, and the table stays bounded', () => {
  const limits = { perSecond: 10, burst: 30, strikes: 1_000_000, blockMillis: 1, maxClients: 4 };
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.integer({ min: 0, max: 300 }), fc.integer({ min: 1, max: 9 })), { maxLength: 200 }),
      (steps) => {
        const limiter = new RateLimiter(limits);
        let now = 0;
        let taken = 0;
        for (const [wait, cost] of steps) {
          now += wait;
          const verdict = limiter.take('a', cost, now);
          if (verdict.ok) taken += cost;
          else expect(limiter.take('a', cost, now + verdict.retryAfterMillis).ok).toBe(true);
          if (!verdict.ok) {
            now += verdict.retryAfterMillis;
            taken += cost;
          }
          expect(taken).toBeLessThanOrEqual(limits.burst + (now * limits.perSecond) / 1000 + 1e-6);
        }
      },
    ),
    { seed },
  );
  const limiter = new RateLimiter(limits);
  for (let i = 0; i < 100; i++) limiter.take(`client ${i}`, 1, i);
  expect(limiter.clients).toBe(4);
});

test('a clock that is set back neither gives nor blocks', () => {
  const limiter = new RateLimiter(PUBLIC_RATE_LIMIT);
  for (let i = 0; i < PUBLIC_RATE_LIMIT.burst; i++) expect(limiter.take('a', 1, 1_000_000).ok).toBe(true);
  expect(limiter.take('a', 1, 1_000).ok).toBe(false);
  expect(limiter.take('a', 1, 2_000).ok).toBe(true);
});
