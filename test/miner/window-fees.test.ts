/** A pool is held to the first `window_fee_from` that it named: raising it later would charge a higher fee for work done before. */
import { expect, test } from 'vitest';
import type { TermsFrom } from '../../protocol/books/books-terms.ts';
import { lyingBooks, SLICE, VICTIM } from '../protocol/books-liar.ts';
import { DUE_HEIGHT, twice, watched } from './watched-lists.ts';

/** The list has the fee of its own slice; the work of its window was done under a lower one. */
const risen = lyingBooks((decisions) => {
  decisions.earlierFee = { until: SLICE, ppm: 0 };
});
const evidence = risen.evidence(SLICE);
const published = evidence.terms as NonNullable<typeof evidence.terms>;
const first = published.terms.pplns[0] as TermsFrom;
const RISEN = [
  { ...first, fee_ppm: 0 },
  { ...first, from_slice: SLICE },
];

function played() {
  const bed = watched({ proof: risen.proof(SLICE, VICTIM), evidence });
  const say = (from: number | undefined) =>
    bed.answers.set('terms', {
      ...published,
      height: DUE_HEIGHT,
      terms: { pplns: RISEN, solo: RISEN },
      ...(from === undefined ? {} : { window_fee_from: from }),
    });
  bed.watch.works('pplns');
  return { ...bed, say };
}

const falseLists = (alarms: readonly string[]) => alarms.filter((alarm) => alarm.startsWith('list_false'));
const changes = (alarms: readonly string[]) => alarms.filter((alarm) => alarm.includes('window_fee_from'));

test('a pool that names no window_fee_from, or a later one, is judged by what it named before, also after a restart of the miner', async () => {
  for (const later of [undefined, SLICE + 1])
    for (const isRestarted of [false, true]) {
      const before = played();
      before.say(SLICE);
      // No list is there yet when the pool first says it.
      before.answers.set('slices/pplns?limit=50', { slices: [] });
      await before.watch.round().catch(() => undefined);
      expect(falseLists(before.alarms)).toEqual([]);
      const after = isRestarted ? played() : before;
      if (isRestarted) after.watch.known.restore(JSON.parse(JSON.stringify(before.watch.known.save())));
      after.say(later);
      after.answers.delete('slices/pplns?limit=50');
      await twice(() => after.watch.round().catch(() => undefined));
      expect(falseLists(after.alarms), `${later} ${isRestarted}`).toEqual([`list_false pplns/${SLICE} terms`]);
    }
});

test('a later window_fee_from that lasts is reported, and one of a moment is not', async () => {
  const { watch, alarms, say } = played();
  say(SLICE);
  await watch.round().catch(() => undefined);
  say(undefined);
  await watch.round().catch(() => undefined);
  say(SLICE);
  await watch.round().catch(() => undefined);
  say(SLICE + 9);
  await watch.round().catch(() => undefined);
  expect(changes(alarms)).toEqual([]);
  for (let round = 0; round < 40; round++) await watch.round().catch(() => undefined);
  expect(changes(alarms)[0]).toBe('terms_changed window_fee_from');
});

test('a pool of an earlier release, and one that begins to name it, are not accused', async () => {
  const { watch, alarms, say } = played();
  say(undefined);
  for (let round = 0; round < 40; round++) await watch.round().catch(() => undefined);
  say(SLICE + 1);
  for (let round = 0; round < 40; round++) await watch.round().catch(() => undefined);
  expect([...falseLists(alarms), ...changes(alarms)]).toEqual([]);
  expect(watch.proven).toBe(1);
});
