/** A miner notices a fee that rose without the notice that the pool's document gives. */
import { expect, test } from 'vitest';
import { FeeNotices } from '../../miner/books/fee-notices.ts';
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
    let notices = new FeeNotices();
    expect(notices.note(terms(from(0, 10_000)), pool(10_000), 7 * CUTS)).toEqual([]);
    if (isRestarted) {
      const saved = JSON.parse(JSON.stringify(notices.save()));
      notices = new FeeNotices();
      notices.restore(saved);
    }
    const risen = terms(from(0, 10_000), from(8, 990_000));
    expect(notices.note(risen, pool(990_000), 8 * CUTS)).toEqual([
      { service: 'pplns', slice: 8, announced: 10_000, now: 990_000 },
    ]);
  }
});

test('a rise with its notice, a lower fee, and a rise that was taken back are no finding', () => {
  const notices = new FeeNotices();
  const at = (slice: number, fee: number, ...changes: [number, number][]) =>
    notices.note(terms(from(0, 10_000), from(8, 5_000), from(8 + DAY, 20_000)), pool(fee, ...changes), slice * CUTS);
  // The same announcement is seen in each slice; the last answer before it is one of slice 6.
  expect(at(6, 10_000)).toEqual([]);
  for (let slice = 7; slice < 8 + DAY; slice++)
    expect(at(slice, slice < 8 ? 10_000 : 5_000, [8, 5_000], [8 + DAY, 20_000]), `${slice}`).toEqual([]);
  expect(at(8 + DAY, 20_000)).toEqual([]);
});

test('an announced reduction that is not kept is found', () => {
  const notices = new FeeNotices();
  notices.note(terms(from(0, 10_000)), pool(10_000, [9, 1_000]), 7 * CUTS);
  expect(notices.note(terms(from(0, 10_000)), pool(10_000), 9 * CUTS)).toMatchObject([{ announced: 1_000 }]);
});

test('documents of pools that announce nothing, or of any other form, accuse nobody', () => {
  const notices = new FeeNotices();
  const wrong = [undefined, null, 'x', {}, { services: [null] }, { services: [{ service: 'pplns', fee_ppm: 'x' }] }];
  for (const each of [...wrong, { services: [{ service: 'pplns', fee_ppm: 1, fee_changes: [{}] }] }])
    expect(notices.note(terms(from(0, 10_000)), each, 7 * CUTS)).toEqual([]);
  notices.restore([['pplns', 1], ['pplns', 7, 1, [[1]]], 'x', null]);
  expect(notices.note(terms(from(0, 990_000)), undefined, 8 * CUTS)).toEqual([]);
});

test('a miner says fee_unannounced, and does not accuse a pool without the document', async () => {
  const published = truth.evidence.terms as NonNullable<typeof truth.evidence.terms>;
  const cuts = published.terms.pplns[0]?.slice_cuts as number;
  const newest = 1_000;
  const { watch, alarms, answers } = watched(truth, { height: (newest + 2) * cuts });
  const say = (slice: number, fee: number) => {
    const risen = [
      ...published.terms.pplns,
      { ...(published.terms.pplns[0] as TermsFrom), from_slice: slice, fee_ppm: fee },
    ];
    answers.set('terms', { ...published, height: slice * cuts, terms: { pplns: risen, solo: published.terms.solo } });
  };
  say(newest, 10_000);
  await watch.round().catch(() => undefined);
  answers.set('pool', pool(10_000));
  await watch.round().catch(() => undefined);
  say(newest + 1, 990_000);
  for (let round = 0; round < 3; round++) await watch.round().catch(() => undefined);
  expect(alarms.filter((alarm) => alarm.startsWith('fee_unannounced'))).toHaveLength(3);
});
