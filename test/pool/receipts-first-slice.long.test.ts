/** A pool that is as old as its chain begins with slice 0: its receipts are to be had like all others. */
import { expect, test } from 'vitest';
import { BEFORE_ALL } from '../../pool/api/miner/receipt-view.ts';
import { account, SLICE_CUTS } from './books-bed.ts';
import { freshIdentity } from './fresh-identity.ts';
import { newPoolKey, openFrontEnd, openReceipts } from './receipts-bed.ts';

const WORKERS = 400;

test('receipts of slice 0 are read page by page, and not again by who has them', async () => {
  const end = await openFrontEnd();
  const bed = await openReceipts(newPoolKey(), [end]);
  await bed.books.height(0);
  await end.write(
    Array.from({ length: WORKERS }, (_, i) => ({
      kind: 'share' as const,
      service: 'pplns' as const,
      account: account('miner'),
      worker: `rig ${i}`,
      work: 10n,
      atMillis: Date.now(),
      identity: freshIdentity(),
    })),
  );
  await bed.take(end);
  await bed.books.height(SLICE_CUTS);
  await bed.look();
  await bed.maker.round();

  const workers: string[] = [];
  let [after, cursor]: [number, string | undefined] = [BEFORE_ALL, undefined];
  for (let pages = 1; ; pages++) {
    const page = await bed.view.ofAccount({ payload: account('miner'), after, cursor });
    expect(page).toMatchObject({ kept_from: 0, newest: 0, through: 0 });
    workers.push(...page.slices.flatMap(({ receipts }) => receipts.map(({ worker }) => worker)));
    if (!page.more) {
      expect(pages).toBeGreaterThan(1);
      break;
    }
    [after, cursor] = [page.through, page.next_cursor];
  }
  expect(new Set(workers).size).toBe(WORKERS);
  expect(workers.length).toBe(WORKERS);
  expect((await bed.view.ofAccount({ payload: account('miner'), after: 0 })).slices).toEqual([]);
});
