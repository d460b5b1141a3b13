import fc from 'fast-check';
import { expect, test } from 'vitest';
import { EditRefusal, insistPayoutMin, readValue } from '../../pool/edits/editable.ts';
import {
  type FeeSchedule,
  feeAt,
  feeChanges,
  feeInForce,
  MOST_ANNOUNCED,
  type OptionFees,
  parseSchedule,
  withFee,
  withOptionFee,
} from '../../pool/edits/fee-schedule.ts';
import { INTERVAL_CUTS } from '../../protocol/network.ts';
import { seed } from '../level.ts';

const CUTS = 240;
const DAY = INTERVAL_CUTS / CUTS;
const at = (slice: number, file = 10_000, opened = slice) => ({
  options: [{ from: 0, ppm: file }],
  slice,
  opened,
  sliceCuts: CUTS,
});
const made = (schedule: FeeSchedule | undefined): FeeSchedule => schedule as FeeSchedule;

test('a lower fee holds from the next slice on, a higher one a day later', () => {
  expect(withFee([], 5_000, at(7))).toEqual([{ from: 8, ppm: 5_000 }]);
  const rise = made(withFee([], 20_000, at(7)));
  expect(rise).toEqual([{ from: 8 + DAY, ppm: 20_000 }]);
  expect(feeAt(rise, 7 + DAY)).toBeUndefined();
  expect(feeAt(rise, 8 + DAY)).toBe(20_000);
  // The day is whole wherever in its slice the chain is: the slice of the announcement does not count.
  expect((rise[0]?.from as number) * CUTS - 8 * CUTS).toBeGreaterThanOrEqual(INTERVAL_CUTS);
});

test('a lower fee that was announced is a promise: going back on it needs the notice of a rise', () => {
  const lower = made(withFee([], 5_000, at(7)));
  expect(withFee(lower, 8_000, at(7))).toEqual([...lower, { from: 8 + DAY, ppm: 8_000 }]);
  expect(withFee(lower, null, at(7))).toEqual([...lower, { from: 8 + DAY, ppm: null }]);
});

test('a rise that was announced is taken back at once, and what holds now stays', () => {
  const rise = made(withFee([], 20_000, at(7)));
  expect(withFee(rise, null, at(8))).toEqual([]);
  const set = [{ from: 3, ppm: 10_000 }];
  expect(withFee(made(withFee(set, 20_000, at(7))), 10_000, at(7))).toEqual(set);
});

test('a rise takes the place of rises that were announced before, not of lower fees', () => {
  const small = made(withFee([], 10_001, at(7)));
  expect(withFee(small, 500_000, at(8))).toEqual([{ from: 9 + DAY, ppm: 500_000 }]);
  expect(withFee(small, 10_001, at(8))).toEqual(small);
  const dip = made(withFee(made(withFee([], 5_000, at(7))), 8_000, at(7)));
  expect(withFee(dip, 7_000, at(8))).toEqual([dip[0], { from: 9 + DAY, ppm: 7_000 }]);
  // Of a schedule of an earlier version: the lower fee after the same rise was promised too.
  const old = [
    { from: 8 + DAY, ppm: 20_000 },
    { from: 9 + DAY, ppm: 15_000 },
  ];
  expect(withFee(old, 20_000, at(9))).toEqual([...old, { from: 10 + DAY, ppm: 20_000 }]);
});

test('books that are behind the chain keep the fees of the slices that they open later', () => {
  const set = [
    { from: 3, ppm: 1_000 },
    { from: 20, ppm: 2_000 },
  ];
  const lower = made(withFee(set, 500, at(22, 50_000, 15)));
  expect(lower).toEqual([...set, { from: 23, ppm: 500 }]);
  expect(made(withFee(lower, 400, at(22, 50_000, 15)))).toEqual([...set, { from: 23, ppm: 400 }]);
  expect(made(withFee(lower, 400, at(30, 50_000, 22)))).toEqual([...lower.slice(1), { from: 31, ppm: 400 }]);
  // Back to the options between two fees is kept as long as the first one is.
  const back = [set[0], { from: 20, ppm: null }] as FeeSchedule;
  expect(withFee(back, 500, at(22, 600, 15))).toEqual([...back, { from: 23, ppm: 500 }]);
  expect(withFee(back, 500, at(22, 600, 20))).toEqual([{ from: 23, ppm: 500 }]);
});

test('back to the options is announced like every other change', () => {
  const set = [{ from: 3, ppm: 5_000 }];
  expect(withFee(set, null, at(7))).toEqual([...set, { from: 8 + DAY, ppm: null }]);
  expect(withFee(set, null, at(7, 2_000))).toEqual([...set, { from: 8, ppm: null }]);
  expect(feeAt([...set, { from: 8, ppm: null }], 8)).toBeUndefined();
});

test('what is announced is bounded', () => {
  const lower = Array.from({ length: MOST_ANNOUNCED }, (_, i) => ({ from: 8 + i, ppm: 9_000 - i }));
  expect(withFee(lower, 20_000, at(7))).toBeUndefined();
  expect(withFee(lower, 20_000, at(8))).toBeUndefined();
  expect(withFee(lower, 20_000, at(9))).toHaveLength(MOST_ANNOUNCED);
});

test('a schedule that no edit wrote is not read', () => {
  const good = [
    { from: 1, ppm: 5 },
    { from: 2, ppm: null },
  ];
  expect(parseSchedule(JSON.stringify(good))).toEqual(good);
  for (const text of ['', '{}', 'null', '[1]', '[{"from":1}]', '[{"from":1,"ppm":1000001}]', '[{"from":1,"ppm":-1}]'])
    expect(parseSchedule(text), text).toBeUndefined();
  expect(parseSchedule(JSON.stringify([...good].reverse()))).toBeUndefined();
});

test('values are read as the options are', () => {
  expect(readValue('payout_min', '1.50')).toBe('1.5');
  expect(readValue('payout_min', '100')).toBe('100');
  expect(readValue('fee_solo', '0.0001')).toBe('0.0001');
  expect(readValue('notice', '  back at noon ')).toBe('back at noon');
  const wrong: [Parameters<typeof readValue>[0], string][] = [
    ['payout_min', '0'],
    ['payout_min', '-1'],
    ['payout_min', '1e3'],
    ['payout_min', '0.000000001'],
    ['fee_pplns', '100.1'],
    ['fee_pplns', '1,5'],
    ['fee_pplns', ''],
    ['pool_name', '<b>'],
    ['pool_name', ''],
    ['notice', 'a\nb'],
    ['notice', 'a\u202eb'],
    ['notice', 'a\u2028b'],
    ['notice', 'a\u200fb'],
    ['notice', '\u200b'],
    ['pause_note', 'a\u{e0041}b'],
    ['pause_note', ' '],
    ['pause_note', 'x'.repeat(501)],
  ];
  for (const [name, word] of wrong) expect(() => readValue(name, word), `${name} ${word}`).toThrow(EditRefusal);
});

test('an edited minimum payout is bounded, by that of the options where it is higher', () => {
  const coin = 100_000_000n;
  expect(() => insistPayoutMin('100', coin)).not.toThrow();
  expect(() => insistPayoutMin('100.00000001', coin)).toThrow(EditRefusal);
  expect(() => insistPayoutMin('500', 500n * coin)).not.toThrow();
  expect(() => insistPayoutMin('501', 500n * coin)).toThrow(EditRefusal);
  // A row of the books is read whatever it is: the books must not stop because of the bound.
  expect(readValue('payout_min', '21000000')).toBe('21000000');
});

test('a restart with a higher fee has the notice of an edit, one with a lower fee or the old one none', () => {
  const moment = { slice: 7, opened: 7, sliceCuts: CUTS };
  const one: OptionFees = [{ from: 0, ppm: 10_000 }];
  const rise = withOptionFee(one, 990_000, moment);
  expect(rise).toEqual([...one, { from: 8 + DAY, ppm: 990_000 }]);
  expect(feeChanges([], rise, 7)).toEqual([{ from: 8 + DAY, ppm: 990_000 }]);
  // Every further restart with it keeps the day; a larger rise has its own; the old fee takes it back.
  expect(withOptionFee(rise, 990_000, { ...moment, slice: 9 })).toEqual(rise);
  expect(withOptionFee(rise, 995_000, { ...moment, slice: 9 })).toEqual([...one, { from: 10 + DAY, ppm: 995_000 }]);
  expect(withOptionFee(rise, 10_000, moment)).toEqual(one);
  expect(withOptionFee(rise, 5_000, moment)).toEqual([...one, { from: 8, ppm: 5_000 }]);
  // A lower fee of a moment ago is a promise.
  const lower = withOptionFee(one, 5_000, moment);
  expect(withOptionFee(lower, 10_000, moment)).toEqual([...lower, { from: 8 + DAY, ppm: 10_000 }]);
});

test('an edit does not count a rise of the options as the fee that it is compared with', () => {
  const options = [
    { from: 0, ppm: 10_000 },
    { from: 50, ppm: 990_000 },
  ];
  const moment = { options, slice: 7, opened: 7, sliceCuts: CUTS };
  expect(withFee([], 500_000, moment)).toEqual([{ from: 8 + DAY, ppm: 500_000 }]);
  // Back to options that are to rise is a rise.
  expect(withFee([{ from: 3, ppm: 20_000 }], null, moment)?.at(-1)).toEqual({ from: 8 + DAY, ppm: null });
});

test('a rise takes no announced fee away that a higher fee of the options lies under', () => {
  const options: OptionFees = [
    { from: 0, ppm: 10_000 },
    { from: 8 + DAY, ppm: 30_000 },
  ];
  const lower: FeeSchedule = [{ from: 8 + DAY, ppm: 20_000 }];
  const moment = { ...at(7 + DAY), options };
  for (const ppm of [null, 25_000]) {
    const next = made(withFee(lower, ppm, moment));
    expect(feeInForce(next, options, 8 + DAY)).toBe(20_000);
    expect(feeInForce(next, options, 7 + 2 * DAY)).toBe(20_000);
    expect(feeInForce(next, options, 8 + 2 * DAY)).toBe(ppm ?? 30_000);
  }
});

test('whatever an operator edits and restarts with, no slice has a higher fee than was announced a day before', () => {
  // A day of four slices.
  const [sliceCuts, day] = [INTERVAL_CUTS / 4, 4];
  const ppm = fc.integer({ min: 0, max: 4 }).map((n) => n * 10_000);
  const act = fc.oneof(
    fc.record({ kind: fc.constant('edit' as const), ppm: fc.option(ppm, { nil: null }) }),
    fc.record({ kind: fc.constant('restart' as const), ppm }),
    fc.record({ kind: fc.constant('pass' as const), slices: fc.integer({ min: 1, max: day + 3 }) }),
  );
  fc.assert(
    fc.property(fc.array(act, { maxLength: 60 }), (acts) => {
      let [schedule, options, slice]: [FeeSchedule, OptionFees, number] = [[], [{ from: 0, ppm: 10_000 }], 0];
      const said: { slice: number; schedule: FeeSchedule; options: OptionFees }[] = [];
      for (const each of acts) {
        const moment = { slice, opened: slice, sliceCuts };
        if (each.kind === 'edit') schedule = withFee(schedule, each.ppm, { ...moment, options }) ?? schedule;
        else if (each.kind === 'restart') options = withOptionFee(options, each.ppm, moment);
        for (let n = each.kind === 'pass' ? each.slices : 0; n > 0; n--) {
          said.push({ slice, schedule, options });
          slice++;
          for (const before of said.slice(-day))
            expect(feeInForce(schedule, options, slice)).toBeLessThanOrEqual(
              feeInForce(before.schedule, before.options, slice),
            );
        }
      }
    }),
    { seed },
  );
});
