/** Terms that no pool can have: they are reported, and whatever they name, lists stay due and the terms of slices that have begun are remembered. */
import { expect, test } from 'vitest';
import { sliceCutsOf, type TermsFrom, termsFault } from '../../protocol/books/books-terms.ts';
import { SLICE_CUTS } from '../../vectors/generate/honest-books.ts';
import { honest, own, SLICE } from '../protocol/books-liar.ts';
import { DUE_HEIGHT, truth, twice, watched } from './watched-lists.ts';

const published = truth.evidence.terms as NonNullable<typeof truth.evidence.terms>;
const first = published.terms.pplns[0] as TermsFrom;
const FAR = { ...first, from_slice: 1e15 };

test('what terms can be: one length of slices, in order, and none of slices to come', () => {
  const fault = (pplns: TermsFrom[], solo: TermsFrom[] = [first], height?: number) =>
    termsFault({ pplns, solo }, height);
  const next = { ...first, from_slice: SLICE, fee_ppm: 5 };
  expect(fault([first, next], [first, next])).toBeUndefined();
  expect([fault([]), fault([first], [])]).toEqual(['empty', 'empty']);
  expect(fault([{ ...first, slice_cuts: 0 }], [{ ...first, slice_cuts: 0 }])).toBe('slice_cuts');
  expect(fault([first, { ...next, slice_cuts: 1 }])).toBe('slice_cuts_changed');
  expect(fault([first], [{ ...first, slice_cuts: 1 }])).toBe('slice_cuts_changed');
  expect([fault([next, first]), fault([next, next])]).toEqual(['order', 'order']);
  const opens = SLICE * SLICE_CUTS;
  expect(fault([first, next], [first], opens - SLICE_CUTS)).toBeUndefined();
  expect(fault([first, next], [first], opens - SLICE_CUTS - 1)).toBe('not_open');
  expect(sliceCutsOf({ pplns: [first, FAR], solo: [first] })).toBe(SLICE_CUTS);
  expect(sliceCutsOf({ pplns: [], solo: [] })).toBeUndefined();
});

const unlisted = (answers: Map<string, unknown>) => {
  const without = (records: readonly object[]) => ({ slices: records.map((each) => ({ ...each, credits: null })) });
  answers.set('slices/pplns?limit=50', without(honest.records.toReversed()));
  answers.set(`slices/pplns?limit=1&cursor=${SLICE + 1}-0`, without([own(honest)]));
};

test('terms of slices far away put no list off, hide no change of the fee, and are reported when they last', async () => {
  for (const far of [FAR, { ...FAR, fee_ppm: 0 }]) {
    const { watch, alarms, answers } = watched(truth);
    const say = (fee: number) => {
      const list = [{ ...first, fee_ppm: fee }, far];
      answers.set('terms', { ...published, height: DUE_HEIGHT, terms: { pplns: list, solo: list } });
    };
    say(first.fee_ppm);
    unlisted(answers);
    watch.works('pplns');
    await twice(() => watch.round());
    expect(alarms).toEqual([`rewards_hidden pplns/${SLICE}`]);
    say(900_000);
    for (let round = 0; round < 40; round++) await watch.round();
    expect(alarms.join()).toMatch(/terms_changed pplns/);
    expect(alarms).toContain('terms_false not_open not_open');
  }
});

test('slices of no cuts, slices of two lengths and no terms at all are reported', async () => {
  const other = { ...first, from_slice: SLICE, slice_cuts: 1 };
  for (const [reason, list] of [
    ['slice_cuts', [first, { ...FAR, slice_cuts: 0 }]],
    ['slice_cuts_changed', [first, { ...FAR, slice_cuts: 1e15 }]],
    ['slice_cuts_changed', [first, other, { ...first, from_slice: SLICE + 1 }]],
    ['empty', []],
  ] as const) {
    const { watch, alarms, answers } = watched(truth, { node: false });
    answers.set('terms', { ...published, height: DUE_HEIGHT, terms: { pplns: list, solo: list } });
    watch.works('pplns');
    await twice(() => expect(watch.round()).rejects.toThrow(`cannot be: ${reason}`));
    expect(alarms).toContain(`terms_false ${reason} ${reason}`);
  }
});

test('a pool that has no terms yet is not accused', async () => {
  const { watch, alarms, answers } = watched(truth, { node: false });
  answers.set('terms', { ...published, terms: { pplns: [], solo: [] } });
  await twice(() => expect(watch.round()).rejects.toThrow('no terms yet'));
  expect(alarms).toEqual([]);
});
