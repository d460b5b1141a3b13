/** A miner notices a fee that rose, and a window that changed, without the notice that the pool's document gives. */
import { expect, test } from 'vitest';
import { TermNotices } from '../../miner/books/terms.ts';
import type { TermsFrom } from '../../protocol/books/books-terms.ts';
import { INTERVAL_CUTS } from '../../protocol/network.ts';
import { truth, watched } from './watched-lists.ts';

const CUTS = 240;
const DAY = INTERVAL_CUTS / CUTS;
const from = (from_slice: number, fee_ppm: number): TermsFrom => ({
  from_slice,
  fee_ppm,
  slice_cuts: CUTS,
  window_thousandths: 8_000,
});
const terms = (...pplns: TermsFrom[]) => ({ pplns, solo: [from(0, 10_000)] });
const pool = (fee_ppm: number, ...changes: [number, number][]) => ({
  services: ['pplns', 'solo'].map((service) => ({
    service,
    fee_ppm: service === 'solo' ? 10_000 : fee_ppm,
    fee_changes: service === 'solo' ? [] : changes.map(([slice, ppm]) => ({ from_slice: slice, fee_ppm: ppm })),
  })),
});

test('a fee that rises within a day of an answer that did not announce it is found, also after a restart of the miner', () => {
  for (const isRestarted of [false, true]) {
    let notices = new TermNotices('fee');
    expect(notices.note(terms(from(0, 10_000)), pool(10_000), 7 * CUTS)).toEqual([]);
    if (isRestarted) {
      const saved = JSON.parse(JSON.stringify(notices.save()));
      notices = new TermNotices('fee');
      notices.restore(saved);
    }
    const risen = terms(from(0, 10_000), from(8, 990_000));
    expect(notices.note(risen, pool(990_000), 8 * CUTS)).toEqual([
      { service: 'pplns', slice: 8, announced: 10_000, now: 990_000 },
    ]);
  }
});

test('a rise with its notice, a lower fee, and a rise that was taken back are no finding', () => {
  const notices = new TermNotices('fee');
  const at = (slice: number, fee: number, ...changes: [number, number][]) =>
    notices.note(terms(from(0, 10_000), from(8, 5_000), from(8 + DAY, 20_000)), pool(fee, ...changes), slice * CUTS);
  // The same announcement is seen in each slice; the last answer before it is one of slice 6.
  expect(at(6, 10_000)).toEqual([]);
  for (let slice = 7; slice < 8 + DAY; slice++)
    expect(at(slice, slice < 8 ? 10_000 : 5_000, [8, 5_000], [8 + DAY, 20_000]), `${slice}`).toEqual([]);
  expect(at(8 + DAY, 20_000)).toEqual([]);
});

test('terms of before a slice, from a cache, and a document of after it: a fee that fell between them is no rise, and one that is never kept is found', () => {
  const notices = new TermNotices('fee');
  const before = terms(from(0, 10_000));
  for (const height of [7 * CUTS, 8 * CUTS - 1]) expect(notices.note(before, pool(5_000), height)).toEqual([]);
  expect(notices.note(terms(from(0, 10_000), from(8, 5_000)), pool(5_000), 8 * CUTS)).toEqual([]);
  const found = [{ service: 'pplns', slice: 8, announced: 5_000, now: 10_000 }];
  expect(notices.note(before, pool(5_000), 8 * CUTS)).toEqual(found);
});

test('an announced reduction that is not kept is found', () => {
  const notices = new TermNotices('fee');
  notices.note(terms(from(0, 10_000)), pool(10_000, [9, 1_000]), 7 * CUTS);
  expect(notices.note(terms(from(0, 10_000)), pool(10_000), 9 * CUTS)).toMatchObject([{ announced: 1_000 }]);
});

test('documents of pools that announce nothing, or of any other form, accuse nobody', () => {
  const notices = new TermNotices('fee');
  const wrong = [undefined, null, 'x', {}, { services: [null] }, { services: [{ service: 'pplns', fee_ppm: 'x' }] }];
  for (const each of [...wrong, { services: [{ service: 'pplns', fee_ppm: 1, fee_changes: [{}] }] }])
    expect(notices.note(terms(from(0, 10_000)), each, 7 * CUTS)).toEqual([]);
  notices.restore([['pplns', 1], ['pplns', 7, 1, [[1]]], 'x', null]);
  expect(notices.note(terms(from(0, 990_000)), undefined, 8 * CUTS)).toEqual([]);
});

test('a window that changes without notice is found, whichever way; one with its notice, and one that is taken back, are not', () => {
  const DUE = 10 + 1 + DAY;
  const saying = (window_thousandths: number, ...changes: [number, number][]) => ({
    services: [
      {
        service: 'pplns',
        window_thousandths,
        window_changes: changes.map(([slice, each]) => ({ from_slice: slice, window_thousandths: each })),
      },
    ],
  });
  const inForce = (window_thousandths: number) => terms({ ...from(0, 10_000), window_thousandths });
  const after = (...said: [slice: number, pool: unknown][]) => {
    let notices = new TermNotices('window');
    for (const [slice, each] of said) expect(notices.note(inForce(8_000), each, slice * CUTS)).toEqual([]);
    const saved = JSON.parse(JSON.stringify(notices.save()));
    notices = new TermNotices('window');
    notices.restore(saved);
    return (slice: number, now: number) => notices.note(inForce(now), undefined, slice * CUTS);
  };
  for (const now of [4_000, 16_000])
    expect(after([10, saying(8_000)])(11, now)).toEqual([{ service: 'pplns', slice: 11, announced: 8_000, now }]);
  const announced: [number, unknown][] = [
    [10, saying(8_000)],
    [10, saying(8_000, [DUE, 4_000])],
    [DUE - 1, saying(8_000, [DUE, 4_000])],
  ];
  expect(after(...announced)(DUE - 1, 4_000)).toMatchObject([{ announced: 8_000, now: 4_000 }]);
  expect(after(...announced)(DUE, 4_000)).toEqual([]);
  expect(after(...announced)(DUE, 8_000)).toEqual([]);
  expect(after(...announced)(DUE, 5_000)).toMatchObject([{ announced: 4_000, now: 5_000 }]);
  // A pool of an earlier release says no window: nothing is held against it.
  expect(after([10, pool(10_000)])(11, 4_000)).toEqual([]);
});

test('a miner says fee_unannounced and window_unannounced, and does not accuse a pool without the document', async () => {
  const published = truth.evidence.terms as NonNullable<typeof truth.evidence.terms>;
  const cuts = published.terms.pplns[0]?.slice_cuts as number;
  const newest = 1_000;
  const { watch, alarms, answers } = watched(truth, { height: (newest + 2) * cuts });
  const say = (slice: number, fee_ppm: number, window_thousandths: number) => {
    const risen = [
      ...published.terms.pplns,
      { ...(published.terms.pplns[0] as TermsFrom), from_slice: slice, fee_ppm, window_thousandths },
    ];
    answers.set('terms', { ...published, height: slice * cuts, terms: { pplns: risen, solo: published.terms.solo } });
  };
  say(newest, 10_000, 8_000);
  await watch.round().catch(() => undefined);
  const { services } = pool(10_000);
  const saying = services.map((each) => ({
    ...each,
    window_thousandths: each.service === 'pplns' ? 8_000 : undefined,
    window_changes: [],
  }));
  answers.set('pool', { services: saying });
  await watch.round().catch(() => undefined);
  say(newest + 1, 990_000, 4_000);
  for (let round = 0; round < 3; round++) await watch.round().catch(() => undefined);
  for (const kind of ['fee_unannounced', 'window_unannounced'])
    expect(alarms.filter((alarm) => alarm.startsWith(kind))).toHaveLength(3);
});
