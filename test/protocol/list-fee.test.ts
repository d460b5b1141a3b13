import { expect, test } from 'vitest';
import { listFee, sliceCutsOf, type TermsFrom, termsFault } from '../../protocol/books/books-terms.ts';

const from = (from_slice: number, fee_ppm: number): TermsFrom => ({
  from_slice,
  fee_ppm,
  slice_cuts: 240,
  window_thousandths: 8_000,
});
const terms = { pplns: [from(0, 10_000), from(10, 5_000), from(20, 990_000)], solo: [from(0, 7_000)] };
const window = (...slices: number[]) => slices.map((slice) => ({ slice }));

test('a list has the lowest fee of its slice and its window: no work is paid under a higher fee than it was done under', () => {
  const fee = (slice: number, ...slices: number[]) =>
    listFee({ terms, window_fee_from: 0 }, { service: 'pplns', slice, window: window(...slices) });
  expect(fee(20, 19, 18)).toBe(5_000);
  expect(fee(21, 20, 19)).toBe(5_000);
  expect(fee(30, 29, 28)).toBe(990_000);
  expect(fee(10, 9, 8)).toBe(5_000);
  expect(fee(5, 4)).toBe(10_000);
  expect(listFee({ terms, window_fee_from: 0 }, { service: 'solo', slice: 20, window: [] })).toBe(7_000);
});

test('lists of an earlier release keep the fee of their slice', () => {
  const asked = { service: 'pplns' as const, slice: 20, window: window(19) };
  expect(listFee({ terms }, asked)).toBe(990_000);
  expect(listFee({ terms, window_fee_from: 21 }, asked)).toBe(990_000);
  expect(listFee({ terms, window_fee_from: 20 }, asked)).toBe(5_000);
});

test('a slice has a whole number of cuts from one on: without one no deadline follows from the terms', () => {
  const cutsOf = (slice_cuts: unknown) => {
    const list = [{ ...from(0, 1), slice_cuts: slice_cuts as number }];
    return [sliceCutsOf({ pplns: list, solo: list }), termsFault({ pplns: list, solo: list })];
  };
  for (const cuts of [1, 240]) expect(cutsOf(cuts)).toEqual([cuts, undefined]);
  for (const cuts of [0, -1, 0.5, '240', null, undefined]) expect(cutsOf(cuts)).toEqual([undefined, 'slice_cuts']);
  expect(sliceCutsOf({ pplns: [], solo: [] })).toBeUndefined();
});
