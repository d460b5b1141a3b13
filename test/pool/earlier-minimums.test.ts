import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type EarlierMinimum, MAX_EARLIER, withEarlier } from '../../pool/payout/earlier-minimums.ts';
import { highestThreshold, judgeUnpaid } from '../../protocol/evidence/unpaid-evidence.ts';
import { seed } from '../level.ts';

const HOUR = 3_600_000;

test('whatever an account changes, the highest threshold of any time in the last days is still known', () => {
  const change = fc.record({ atoms: fc.bigInt({ min: 1n, max: 60n }), hours: fc.integer({ min: 0, max: 20 }) });
  fc.assert(
    fc.property(fc.array(change, { maxLength: 80 }), (changes) => {
      let [now, minimum, known]: [number, bigint, EarlierMinimum[]] = [1_000 * HOUR, 10n, []];
      const history: EarlierMinimum[] = [];
      for (const { atoms, hours } of changes) {
        now += hours * HOUR;
        if (minimum > atoms) known = withEarlier(known, { atoms: minimum, untilMillis: now });
        history.push({ atoms: minimum, untilMillis: now });
        minimum = atoms;
        expect(known.length).toBeLessThanOrEqual(MAX_EARLIER);
        // Each is higher than all after it: one that says nothing takes no place.
        expect(known.every((each, i) => i === 0 || each.atoms > (known[i - 1] as EarlierMinimum).atoms)).toBe(true);
        for (const bound of [HOUR, 26 * HOUR, 15 * 24 * HOUR]) {
          const whole = highestThreshold({ minimum, earlier: history }, now, bound);
          const kept = highestThreshold({ minimum, earlier: known }, now, bound);
          // Only one that is forgotten early would convict the pool.
          expect(kept).toBeGreaterThanOrEqual(whole);
          if (known.length < MAX_EARLIER) expect(kept).toBe(whole);
        }
      }
    }),
    { seed },
  );
});

test('with as many thresholds as are kept, a clock that was set back shortens none', () => {
  const now = 1_000 * HOUR;
  const before = Array.from({ length: MAX_EARLIER }, (_, i) => ({
    atoms: 100n + BigInt(i),
    untilMillis: i === 0 ? now : now - 480 * HOUR,
  }));
  const earlier = withEarlier(before, { atoms: 50n, untilMillis: now - 240 * HOUR });
  expect(highestThreshold({ minimum: 1n, earlier }, now + HOUR, 26 * HOUR)).toBe(100n);
});

test('the judge of what is owed: paid, below the threshold, paused, unpaid', () => {
  const facts = { credited: 100n, paid: 40n, threshold: 50n, advanced: 0n, isPaused: false };
  expect(judgeUnpaid(facts)).toBe('unpaid');
  expect(judgeUnpaid({ ...facts, threshold: 61n })).toBe('below');
  expect(judgeUnpaid({ ...facts, threshold: 60n })).toBe('unpaid');
  expect(judgeUnpaid({ ...facts, advanced: 11n })).toBe('below');
  expect(judgeUnpaid({ ...facts, advanced: 10n })).toBe('unpaid');
  expect(judgeUnpaid({ ...facts, isPaused: true })).toBe('paused');
  expect(judgeUnpaid({ ...facts, paid: 100n, threshold: 0n })).toBe('paid');
});
