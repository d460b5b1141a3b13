/** What anchors have to pay: the closed form against the rule, cut by cut. */
import { expect, test } from 'vitest';
import { emissionOfInterval, splitHalves, subsidyOfCut } from '../../protocol/ledger/emission.ts';
import { workHalves } from '../../protocol/ledger/work-reward.ts';
import { INTERVAL_CUTS } from '../../protocol/network.ts';

const byRule = (from: number, through: number, cuts = INTERVAL_CUTS): bigint => {
  let sum = 0n;
  for (let height = from; height <= through; height++) {
    const { amount } = emissionOfInterval(Math.floor(height / cuts));
    sum += splitHalves(subsidyOfCut(amount, height % cuts, cuts)).work;
  }
  return sum;
};

test.each([
  [0, 0],
  [0, 95],
  [17, 400],
  [INTERVAL_CUTS - 3, INTERVAL_CUTS + 5],
  [INTERVAL_CUTS * 3 - 1, INTERVAL_CUTS * 3],
  [INTERVAL_CUTS * 2_000 + 7, INTERVAL_CUTS * 2_000 + 90],
  [INTERVAL_CUTS * 9_000 - 50, INTERVAL_CUTS * 9_000 + 50],
])('work halves of cuts %i to %i', (from, through) => {
  expect(workHalves(from, through, INTERVAL_CUTS)).toBe(byRule(from, through));
});

test.each([24, 36, 120, 17_280])('intervals of %i cuts of a development chain', (cuts) => {
  for (const [from, through] of [
    [0, 0],
    [0, 3 * cuts],
    [cuts - 1, cuts],
    [5 * cuts + 7, 7 * cuts + 2],
    [9_000 * cuts - 20, 9_000 * cuts + 20],
  ] as const)
    expect(workHalves(from, through, cuts)).toBe(byRule(from, through, cuts));
});

test('nothing is nothing, after the last atom too; ranges add up whichever way they are cut', () => {
  expect(workHalves(5, 4, INTERVAL_CUTS)).toBe(0n);
  expect(workHalves(INTERVAL_CUTS * 20_000, INTERVAL_CUTS * 30_000, INTERVAL_CUTS)).toBe(0n);
  const [from, middle, through] = [1_234, 5 * INTERVAL_CUTS + 17, 9 * INTERVAL_CUTS - 2];
  expect(workHalves(from, middle, INTERVAL_CUTS) + workHalves(middle + 1, through, INTERVAL_CUTS)).toBe(
    workHalves(from, through, INTERVAL_CUTS),
  );
  // A late interval first, then an early one: nothing is remembered wrongly.
  expect(workHalves(0, 0, INTERVAL_CUTS)).toBe(781_250_000n);
});
