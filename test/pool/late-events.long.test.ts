/** Transactions of the books run side by side, and end in another order than they told of what happened: no news is missed. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { eventsAfter } from '../../pool/api/public/event-follower.ts';
import { type BooksBed, openBooks } from './books-bed.ts';

let books: BooksBed;
beforeAll(async () => {
  books = await openBooks();
});
afterAll(() => books.close());

test('an event of a transaction that ends late comes before those that were told after it', async () => {
  const { sql } = books;
  const [row] = await sql<{ last: bigint }[]>`select coalesce(max(id), 0) as last from events`;
  const before = Number(row?.last);
  const kinds = async (after: number) => (await eventsAfter(sql, after)).map(({ kind }) => kind);
  const tell = (transaction: typeof sql, kind: string) => transaction`select tell(${kind}, '{}')`;
  await sql.begin(async (slow) => {
    await tell(slow as never, 'payout_final');
    await tell(sql, 'worker_silent');
    expect(await kinds(before)).toEqual([]);
  });
  expect(await kinds(before)).toEqual(['payout_final', 'worker_silent']);
  // Not for ever: one that hangs holds up nobody for more than a minute.
  await sql.begin(async (hanging) => {
    await tell(hanging as never, 'block_found');
    await tell(sql, 'block_paid');
    await sql`update events set at = now() - interval '2 minutes' where kind = 'block_paid'`;
    expect(await kinds(before + 2)).toEqual(['block_paid']);
  });
});
