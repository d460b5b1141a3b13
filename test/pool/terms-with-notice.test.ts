/**
 * What an operator changes about money has a day of notice, by a restart or in the running pool (books rule 3): the smallest
 * payout, which may fall at once, and the window, of which every change moves money between miners.
 */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type OpenSlice, slicesToOpen } from '../../pool/books/slices.ts';
import { parseInForce, withWindow } from '../../pool/books/terms-in-force.ts';
import {
  MINIMUM_NOTICE_MILLIS,
  type Minimums,
  minimumAt,
  minimumChanges,
  withMinimum,
} from '../../pool/edits/minimum-schedule.ts';
import { INTERVAL_CUTS } from '../../protocol/network.ts';
import { seed } from '../level.ts';

const HOUR = 3_600_000;
const START = 1_800_000_000_000;

test('a lower minimum counts at once, a higher one a day later, and it says when', () => {
  const first = withMinimum([], 1_000n, START);
  expect(minimumAt(first, START)).toBe(1_000n);
  const risen = withMinimum(first, 9_000n, START + HOUR);
  expect(minimumAt(risen, START + HOUR + MINIMUM_NOTICE_MILLIS - 1)).toBe(1_000n);
  expect(minimumAt(risen, START + HOUR + MINIMUM_NOTICE_MILLIS)).toBe(9_000n);
  expect(minimumChanges(risen, START + 2 * HOUR)).toEqual([
    { atoms: 9_000n, fromMillis: START + HOUR + MINIMUM_NOTICE_MILLIS },
  ]);
  const fallen = withMinimum(risen, 500n, START + 3 * HOUR);
  expect(minimumAt(fallen, START + 3 * HOUR)).toBe(500n);
  expect(minimumChanges(fallen, START + 3 * HOUR)).toEqual([]);
  // Going back on it is a rise.
  const back = withMinimum(fallen, 1_000n, START + 4 * HOUR);
  expect(minimumAt(back, START + 27 * HOUR)).toBe(500n);
  expect(minimumAt(back, START + 28 * HOUR)).toBe(1_000n);
});

const steps = fc.array(
  fc.record({
    atoms: fc.integer({ min: 1, max: 6 }),
    hours: fc.integer({ min: 0, max: 30 }),
    /** The clock is set back by so much. */
    back: fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 5_000 })),
  }),
  { minLength: 1, maxLength: 100 },
);

test('whatever is announced, and however the clock is set back: no minimum counts within a day of a lower one', () => {
  fc.assert(
    fc.property(steps, (changes) => {
      let minimums: Minimums = withMinimum([], 3n, START);
      let [now, hour, wish] = [START, 0, 3n];
      const wished: { atoms: bigint; untilHour: number }[] = [];
      for (const { atoms, hours, back } of changes) {
        hour += hours;
        now += (hours - back) * HOUR;
        if (BigInt(atoms) !== wish) wished.push({ atoms: wish, untilHour: hour });
        wish = BigInt(atoms);
        minimums = withMinimum(minimums, wish, now);
        const least = wished
          .filter(({ untilHour }) => untilHour > hour - 24)
          .reduce((low, each) => (each.atoms < low ? each.atoms : low), wish);
        expect((minimumAt(minimums, now) as bigint) <= least).toBe(true);
        // What is announced comes true if nothing else is announced, and a day later the wish counts.
        let last = minimumAt(minimums, now);
        for (const { atoms: next, fromMillis } of minimumChanges(minimums, now)) {
          expect(minimumAt(minimums, fromMillis - 1)).toBe(last);
          expect(minimumAt(minimums, fromMillis)).toBe(next);
          last = next;
        }
        expect([last, minimumAt(minimums, now + MINIMUM_NOTICE_MILLIS)]).toEqual([wish, wish]);
        expect(minimums.length).toBeLessThanOrEqual(64);
      }
    }),
    { seed },
  );
});

const CUTS = 240;
const DAY = INTERVAL_CUTS / CUTS;
const starts = fc.array(
  fc.record({ window: fc.integer({ min: 1, max: 3 }), slices: fc.integer({ min: 0, max: 200 }) }),
  {
    maxLength: 30,
  },
);

test('another window holds for slices that begin a day after the start that announced it, and never before', () => {
  fc.assert(
    fc.property(starts, (each) => {
      let windows: readonly { from: number; window: number }[] = [{ from: 0, window: 1 }];
      let slice = 0;
      const at = (number: number) => windows.findLast(({ from }) => from <= number)?.window;
      for (const { window, slices } of each) {
        const before = Array.from({ length: DAY + 2 }, (_, i) => at(slice + slices + i));
        slice += slices;
        windows = withWindow(windows, window, { slice, opened: slice, sliceCuts: CUTS });
        // Slices of the next day have a window that was announced before, or the one that was in force.
        const isKnown = (i: number) => [before[i], before[0]].includes(at(slice + i));
        expect(Array.from({ length: DAY + 1 }, (_, i) => i).filter((i) => !isKnown(i))).toEqual([]);
        expect(at(slice)).toBe(before[0]);
        expect(at(slice + DAY + 2)).toBe(window);
      }
    }),
    { seed, numRuns: 30 },
  );
});

test('a window that is announced again keeps its slice, and the old one again takes it back', () => {
  const now = { slice: 10, opened: 10, sliceCuts: CUTS };
  const announced = withWindow([{ from: 0, window: 8 }], 4, now);
  expect(announced).toEqual([
    { from: 0, window: 8 },
    { from: 10 + 1 + DAY, window: 4 },
  ]);
  expect(withWindow(announced, 4, { ...now, slice: 50, opened: 50 })).toEqual(announced);
  expect(withWindow(announced, 8, { ...now, slice: 50, opened: 50 })).toEqual([{ from: 0, window: 8 }]);
});

test('terms that the pool did not write are refused, whatever part of them is changed', () => {
  const fees = [{ from: 3, ppm: 10_000 }];
  const windows = [
    { from: 3, window: 8_000 },
    { from: 9, window: 4_000 },
  ];
  const parsed = (changes: object) => parseInForce(JSON.stringify({ services: { 0: { fees, windows, ...changes } } }));
  expect(parsed({})).toEqual({ 0: { fees, windows } });
  const [first, second] = windows as [object, object];
  for (const wrong of [
    ...[null, 5, 'x', {}, [], [null], [5], [second, first], [first, first]],
    ...['from', 'window'].flatMap((field) =>
      [-1, 0.5, '3', null].map((value) => [{ ...first, [field]: value }, second]),
    ),
    [{ ...first, window: 0 }],
  ])
    expect([wrong, parsed({ windows: wrong })]).toEqual([wrong, undefined]);
  for (const wrong of [null, 5, [], [{ from: 3 }], [{ from: 3, ppm: -1 }]])
    expect([wrong, parsed({ fees: wrong })]).toEqual([wrong, undefined]);
});

test('each service opens its slices from its own newest on, and a new pool begins with the present one', () => {
  const options = { sliceCuts: 10, services: [0, 1] } as unknown as Parameters<typeof slicesToOpen>[1];
  const opened = (height: number, ...newest: (number | undefined)[]) => {
    const open = newest.flatMap((number, service): [number, OpenSlice][] =>
      number === undefined ? [] : [[service, { service, number }]],
    );
    return slicesToOpen(new Map(open), options, height);
  };
  expect(opened(57, undefined, undefined)).toEqual([5]);
  expect(opened(57, 3, 3)).toEqual([4, 5]);
  expect(opened(57, 5, 5)).toEqual([]);
  expect(opened(57, 5, 3)).toEqual([4, 5]);
  expect(opened(57, 3, 5)).toEqual([4, 5]);
  expect(opened(57, 5, undefined)).toEqual([5]);
  expect(opened(47, 6, 6)).toEqual([]);
});
