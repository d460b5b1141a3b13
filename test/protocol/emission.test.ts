import fc from 'fast-check';
import { expect, test } from 'vitest';
import { ATOMS_PER_COIN } from '../../protocol/amount.ts';
import {
  emissionOfInterval,
  firstInterval,
  nextInterval,
  splitHalves,
  subsidyOfCut,
  TOTAL_EMISSION,
} from '../../protocol/ledger/emission.ts';
import { INTERVAL_CUTS } from '../../protocol/network.ts';
import { seed } from '../level.ts';

test('the first day emits 540,000 coins, 15.625 a cut', () => {
  expect(firstInterval().amount).toBe(540_000n * ATOMS_PER_COIN);
  expect(subsidyOfCut(firstInterval().amount, 0)).toBe(1_562_500_000n);
});

test('the shares of the emission are reached on the days of the specification, the last atom on day 12,650', () => {
  const milestones = [
    [50_00n, 231],
    [90_00n, 767],
    [99_00n, 1533],
    [99_90n, 2300],
    [99_99n, 3066],
  ] as const;
  const reached: number[] = [];
  let state = firstInterval();
  let last = 0;
  for (;;) {
    const paid = TOTAL_EMISSION - state.remaining;
    const next = milestones[reached.length];
    if (next !== undefined && paid * 10_000n >= TOTAL_EMISSION * next[0]) reached.push(state.interval + 1);
    if (state.amount > 0n) last = state.interval + 1;
    if (state.remaining === 0n) break;
    state = nextInterval(state);
  }
  expect(reached).toEqual(milestones.map(([, day]) => day));
  expect(last).toBe(12_650);
  expect(nextInterval(state).amount).toBe(0n);
});

test('the cuts of any interval add up to its amount', () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 13_000 }), (interval) => {
      const { amount } = emissionOfInterval(interval);
      let sum = 0n;
      for (let k = 0; k < INTERVAL_CUTS; k++) sum += subsidyOfCut(amount, k);
      expect(sum).toBe(amount);
    }),
    { seed, numRuns: 20 },
  );
});

test('halves add up', () => {
  fc.assert(
    fc.property(fc.bigInt({ min: 0n, max: 1n << 64n }), (value) => {
      const { work, stake } = splitHalves(value);
      expect(work + stake).toBe(value);
      expect(stake - work === 0n || stake - work === 1n).toBe(true);
    }),
    { seed },
  );
});
