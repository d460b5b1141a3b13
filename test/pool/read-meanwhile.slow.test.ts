/** Somebody reads all shares for minutes, as an audit does: the books go on, also into the next day, and old shares are dropped afterwards. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { dropOldShares } from '../../pool/books/partitions.ts';
import { shareRecord } from './book-records.ts';
import { type BooksBed, openBooks } from './books-bed.ts';
import { freshIdentity } from './fresh-identity.ts';

const DAY_MILLIS = 86_400_000;
const FIRST = Date.UTC(2026, 0, 1);

let bed: BooksBed;
beforeAll(async () => {
  bed = await openBooks();
});
afterAll(() => bed.close());

const shareOf = (day: number) => ({
  ...shareRecord('pplns', 1, 1_000n),
  atMillis: FIRST + day * DAY_MILLIS,
  identity: freshIdentity(),
});

test('the first share of a day is taken while all others are read', async () => {
  await bed.height(1);
  await bed.take([shareOf(0)]);
  const reader = await bed.sql.reserve();
  try {
    await reader`begin transaction isolation level repeatable read read only`;
    expect(await reader`select sum(work)::int as work from shares`).toMatchObject([{ work: 1_000 }]);
    await bed.take([shareOf(1)]);
    expect(await dropOldShares(bed.sql, FIRST + 2 * DAY_MILLIS)).toEqual([]);
    await bed.take([shareOf(2)]);
  } finally {
    await reader`rollback`;
    reader.release();
  }
  expect(await dropOldShares(bed.sql, FIRST + 2 * DAY_MILLIS)).toEqual(['shares_2026_01_01', 'shares_2026_01_02']);
  expect(await bed.sql`select slice::int, work::int from shares`).toEqual([{ slice: 0, work: 1_000 }]);
  expect(await bed.sql`select work::int from open_work`).toEqual([{ work: 3_000 }]);
});
