/** Tuning while mining, as a pure schedule: simulated candidates with noise, pauses and a clock that settles slowly. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { TURN_TIMES, Turns } from '../../kernels/gpu/tune.ts';
import { count, seed } from '../level.ts';

/** Dispatches of 45 ms at the given rates until the best is known. Returns how long the device worked. */
function play(turns: Turns, rates: readonly number[], noise: (n: number) => number = () => 1): number {
  let worked = 0;
  for (let n = 0; turns.result === undefined && n < 100_000; n++) {
    const candidate = turns.current;
    const millis = 45 * noise(n);
    worked += millis;
    turns.record(candidate, (rates[candidate] as number) * 45, millis);
  }
  return worked;
}

test('the fastest wins; who is far behind gets one short turn', () => {
  const turns = new Turns(5);
  const worked = play(turns, [500, 540, 300, 530, 100]);
  expect(turns.result).toBe(1);
  expect(turns.rate(1)).toBeCloseTo(540_000, 0);
  const { warmUpMillis, heatMillis, settleMillis, turnMillis, turns: rounds } = TURN_TIMES;
  // Two finalists within five percent of the best.
  expect(worked).toBeLessThan(warmUpMillis + 5 * heatMillis + 2 * rounds * (settleMillis + turnMillis) + 60 * 45);
});

test('a difference that is only noise chooses the first', () => {
  const turns = new Turns(3);
  play(turns, [500, 501, 500.5], (n) => 1 + ((n * 7919) % 100) / 10_000);
  expect(turns.result).toBe(0);
});

test('one candidate needs no trial; others than the current one are not heard', () => {
  expect(new Turns(1).result).toBe(0);
  const turns = new Turns(2);
  for (let n = 0; n < 1_000; n++) turns.record(1, 1e9, 45);
  expect(turns.current).toBe(0);
  expect(turns.result).toBeUndefined();
});

test('whatever the rates and the noise, it ends, and with one that is not clearly worse', () => {
  fc.assert(
    fc.property(
      fc.array(fc.integer({ min: 1, max: 1_000 }), { minLength: 1, maxLength: 6 }),
      fc.array(fc.double({ min: 0.99, max: 1.01, noNaN: true }), { minLength: 16, maxLength: 16 }),
      (rates, noise) => {
        const turns = new Turns(rates.length);
        play(turns, rates, (n) => noise[n % 16] as number);
        expect(turns.result).toBeDefined();
        expect(rates[turns.result as number]).toBeGreaterThan(Math.max(...rates) * 0.93);
      },
    ),
    { seed, numRuns: count({ quick: 50, full: 300, deep: 10_000 }) },
  );
});
