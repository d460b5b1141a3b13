/** A front end that was long away catches up slice by slice: what is made stays, and one journal that fails does not hold up another. */
import { afterEach, expect, test, vi } from 'vitest';
import { account, SLICE_CUTS } from './books-bed.ts';
import { freshIdentity } from './fresh-identity.ts';
import { newPoolKey, openFrontEnd, openReceipts } from './receipts-bed.ts';

afterEach(() => void vi.restoreAllMocks());

const share = () => ({
  kind: 'share' as const,
  service: 'pplns' as const,
  account: account('miner'),
  worker: 'rig',
  work: 10n,
  atMillis: Date.now(),
  identity: freshIdentity(),
});

test('slices that take longer than one turn may are made in several', async () => {
  // Every signature takes twelve seconds, nothing else takes any, and a sheet may take thirty.
  let now = performance.now();
  vi.spyOn(performance, 'now').mockImplementation(() => now);
  const signed = newPoolKey();
  const key = {
    ...signed,
    sign: (message: Uint8Array) => {
      now += 12_000;
      return signed.sign(message);
    },
  };
  const first = await openFrontEnd();
  const second = await openFrontEnd(first.directory, 0xcd);
  const bed = await openReceipts(key, [first, second]);
  await bed.books.height(0);
  await bed.books.height(SLICE_CUTS);
  await bed.look();
  for (let slice = 1; slice <= 5; slice++) {
    for (const end of [first, second]) {
      await end.write([share()]);
      await bed.take(end);
    }
    await bed.books.height((slice + 1) * SLICE_CUTS);
    await bed.look();
  }
  await bed.maker.round();
  const madeOf = (boot: string) =>
    bed.delivered.filter((name) => name.endsWith(boot)).map((name) => name.split('/')[1]);
  expect(madeOf(first.bootId)).toEqual(['1', '2']);
  expect(madeOf(second.bootId)).toEqual(['1', '2']);
  for (let i = 0; i < 3; i++) await bed.maker.round();
  for (const end of [first, second]) expect(madeOf(end.bootId)).toEqual(['1', '2', '3', '4', '5']);

  // A journal that cannot be read is reported once, and the other gets its receipts.
  for (const end of [first, second]) {
    await end.write([share()]);
    await bed.take(end);
  }
  await bed.books.height(7 * SLICE_CUTS);
  await bed.look();
  const of = bed.marks.of.bind(bed.marks);
  vi.spyOn(bed.marks, 'of').mockImplementation((boot) => {
    if (boot === first.bootId) throw new Error('the disk is gone');
    return of(boot);
  });
  await bed.maker.round();
  await bed.maker.round();
  expect(madeOf(first.bootId).length).toBe(5);
  expect(madeOf(second.bootId)).toEqual(['1', '2', '3', '4', '5', '6']);
  expect(bed.logged.filter((line) => line.includes('the disk is gone')).length).toBe(1);
});
