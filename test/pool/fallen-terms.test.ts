import { expect, test } from 'vitest';
import { joinedTerms, relationOf } from '../../pool/edits/fallen-terms.ts';
import { feeInForce, parseSchedule, withFee, withOptionFee } from '../../pool/edits/fee-schedule.ts';
import { minimumAt, parseMinimums } from '../../pool/edits/minimum-schedule.ts';
import type { Terms } from '../../pool/edits/terms-rows.ts';
import { INTERVAL_CUTS } from '../../protocol/network.ts';
import { count } from '../level.ts';
import { randomOf } from '../random.ts';

const NOW = 1_800_000_000_000;
const DAY = 86_400_000;
type Fees = readonly { from: number; ppm: number | null }[];

const service = (fees: Fees) => ({ fees, windows: [{ from: 0, window: 8_000 }] });

function terms(
  editions: string,
  slice: number,
  {
    options = [{ from: 0, ppm: 10_000 }],
    edits = [],
    minimums = [[1_000, 0]],
  }: {
    options?: Fees;
    edits?: Fees;
    minimums?: readonly (readonly [atoms: number, ageMillis: number])[];
  } = {},
): Terms {
  return {
    editions: editions.split(''),
    slice,
    chain: 'one',
    rows: {
      terms_in_force: JSON.stringify({ services: { 0: service(options), 1: service(options) } }),
      edit_fee_pplns: JSON.stringify(edits),
      payout_min_schedule: JSON.stringify(minimums.map(([atoms, age]) => ({ atoms: String(atoms), at: NOW - age }))),
    },
  };
}

const options = (each: Pick<Terms, 'rows'>) => JSON.parse(each.rows.terms_in_force ?? '').services[0].fees;
const fee = (each: Pick<Terms, 'rows'>, slice: number) =>
  feeInForce(parseSchedule(each.rows.edit_fee_pplns ?? '[]') ?? [], options(each), slice);
const minimum = (each: Pick<Terms, 'rows'>, millis: number) =>
  minimumAt(parseMinimums(each.rows.payout_min_schedule ?? '[]') ?? [], millis) as bigint;

test('a database that lacks announced changes fell; one with changes or slices of its own went on without the instance', () => {
  const known = terms('abc', 10);
  expect(relationOf(known, terms('abc', 10))).toBe('kept');
  expect(relationOf(known, terms('abc', 3))).toBe('kept');
  expect(relationOf(known, terms('abcde', 20))).toBe('kept');
  expect(relationOf(known, terms('abcde', 9))).toBe('apart');
  expect(relationOf(known, terms('ab', 10))).toBe('fell');
  expect(relationOf(known, terms('ab', 11))).toBe('apart');
  expect(relationOf(known, terms('abd', 10))).toBe('apart');
  expect(relationOf(known, terms('abdefgh', 10))).toBe('apart');
});

test('a database that is new, of which the accountant has announced nothing yet, has nothing of its own', () => {
  const { rows, ...rest } = terms('x', -1);
  expect(relationOf(terms('abc', 10), { ...rest, rows: { payout_min_started: '1' } })).toBe('fell');
  expect(relationOf(terms('abc', 10), { ...rest, editions: [], rows })).toBe('fell');
});

test('joined terms are known to all instances that noted either', () => {
  const [found, known] = [terms('abd', 20), terms('abc', 10)];
  const joined = { ...found, ...joinedTerms(found, known, { opened: [20, 20], nowMillis: NOW }) };
  expect(relationOf(known, joined)).toBe('kept');
  expect(relationOf(found, joined)).toBe('kept');
});

test('no fee and no smallest payout of joined terms is above that of either, whatever was announced', () => {
  const random = randomOf(7);
  const some = (): Fees =>
    Array.from({ length: random(4) }, (_, i) => ({
      from: i * 40 + random(40),
      ppm: random(4) === 0 ? null : random(5) * 5_000,
    }));
  const choice = () => ({
    options: [
      { from: 0, ppm: random(5) * 5_000 },
      ...some().map(({ from, ppm }) => ({ from: from + 1, ppm: ppm ?? 1 })),
    ],
    edits: some(),
    minimums: [[1 + random(9), 3 * DAY - random(DAY)] as const, [1 + random(9), random(2 * DAY)] as const],
  });
  for (let i = 0; i < 100; i++) {
    const slice = random(130);
    const [found, known] = [terms('abd', slice, choice()), terms('abc', 10, choice())];
    const joined = joinedTerms(found, known, { opened: [slice, slice], nowMillis: NOW });
    const slices = Array.from({ length: 200 }, (_, each) => each);
    expect(slices.map((each) => fee(joined, each))).toEqual(
      slices.map((each) => (each > slice ? Math.min(fee(found, each), fee(known, each)) : fee(found, each))),
    );
    const times = Array.from({ length: 12 }, (_, hours) => NOW + (hours * DAY) / 4);
    const isHigher = (each: Terms) => times.some((millis) => minimum(joined, millis) > minimum(each, millis));
    expect([found, known].some(isHigher)).toBe(false);
  }
});

/** A day of four slices. */
const SLICE_CUTS = INTERVAL_CUTS / 4;
const DAY_SLICES = 4;

test('whatever is edited, lost and brought back by whom: no slice has a higher fee than an instance that is there announced within the last day', () => {
  const faults: string[] = [];
  for (let seed = 0; seed < count({ quick: 60, full: 320, deep: 10_000 }); seed++) {
    const random = randomOf(seed);
    let [clock, names] = [10, 0];
    let database = terms('a', clock);
    const copies = [database];
    const opened = new Map<number, number>();
    const instances = Array.from({ length: 3 }, () => ({
      isUp: true,
      known: undefined as Terms | undefined,
      said: [] as { at: number; fees: number[] }[],
    }));
    type Instance = (typeof instances)[number];
    const slicesFrom = (from: number) => Array.from({ length: 3 * DAY_SLICES }, (_, i) => from + i);
    const settle = (one: Instance) => {
      const { known } = one;
      const relation = known === undefined ? 'kept' : relationOf(known, database);
      const at = { opened: [database.slice, database.slice], nowMillis: NOW };
      if (relation === 'fell') database = { ...database, ...known, slice: database.slice };
      if (relation === 'apart') database = { ...database, ...joinedTerms(database, known as Terms, at) };
      one.known = database;
    };
    const refresh = (one: Instance) => {
      settle(one);
      const fees: number[] = [];
      for (const slice of slicesFrom(clock)) fees[slice] = opened.get(slice) ?? fee(database, slice);
      one.said.push({ at: clock, fees });
    };
    const change = (one: Instance, isOption: boolean, ppm: number) => {
      settle(one);
      const moment = { slice: Math.max(clock, database.slice), opened: database.slice, sliceCuts: SLICE_CUTS };
      const { edit_fee_pplns: text = '[]' } = database.rows;
      const next = isOption
        ? withOptionFee(options(database), ppm, moment)
        : withFee(parseSchedule(text) ?? [], ppm === 0 ? null : ppm, { ...moment, options: options(database) });
      const rows = isOption
        ? { terms_in_force: JSON.stringify({ services: { 0: service(next as Fees), 1: service(next as Fees) } }) }
        : { edit_fee_pplns: JSON.stringify(next ?? JSON.parse(text)) };
      const editions = [...database.editions, `${seed} ${++names}`];
      database = { ...database, editions, rows: { ...database.rows, ...rows } };
      refresh(one);
    };
    for (let i = 0; i < 60; i++) {
      const one = instances[random(3)] as Instance;
      const deed = random(12);
      if (deed < 4 && one.isUp) change(one, deed === 0, random(5) * 5_000);
      if (deed === 4) one.isUp = false;
      if (deed === 5 || !instances.some(({ isUp }) => isUp)) {
        // Those that are there look every second.
        for (const each of instances) if (each.isUp) settle(each);
        one.isUp = true;
        refresh(one);
      }
      if (deed === 6) database = copies[copies.length - 1 - random(Math.min(copies.length, 30))] as Terms;
      if (deed > 6) {
        for (const each of instances) if (each.isUp) settle(each);
        for (const each of instances) if (each.isUp) refresh(each);
        clock += random(3) === 0 ? random(6) : 1;
        for (let slice = database.slice + 1; slice <= clock; slice++) {
          const ppm = opened.get(slice) ?? fee(database, slice);
          const promises = instances.flatMap(({ isUp, said }) => (isUp ? said : []));
          const isHigher = promises.some(({ at, fees }) => at > slice - DAY_SLICES && ppm > (fees[slice] ?? ppm));
          if (isHigher && !opened.has(slice)) faults.push(`seed ${seed} slice ${slice}`);
          opened.set(slice, ppm);
          database = { ...database, slice };
        }
      }
      copies.push(database);
    }
  }
  expect(faults).toEqual([]);
});
