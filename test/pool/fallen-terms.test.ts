import { expect, test } from 'vitest';
import { joinedTerms, relationOf } from '../../pool/edits/fallen-terms.ts';
import { feeInForce, parseSchedule } from '../../pool/edits/fee-schedule.ts';
import { minimumAt, parseMinimums } from '../../pool/edits/minimum-schedule.ts';
import type { Terms } from '../../pool/edits/terms-rows.ts';
import { randomOf } from '../random.ts';

const NOW = 1_800_000_000_000;
const DAY = 86_400_000;
type Fees = readonly { from: number; ppm: number | null }[];

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
  const service = { fees: options, windows: [{ from: 0, window: 8_000 }] };
  return {
    ...{ editions: editions.split(''), slice, chain: 'one' },
    rows: {
      terms_in_force: JSON.stringify({ services: { 0: service, 1: service } }),
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
  for (let i = 0; i < 300; i++) {
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
