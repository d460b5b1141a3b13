import fc from 'fast-check';
import { expect, test } from 'vitest';
import { CreditLists } from '../../pool/api/books/credit-lists.ts';
import { CreditIndex, creditOf, packCredits } from '../../pool/books/packed.ts';
import type { Sql } from '../../pool/database/connect.ts';

const u32 = fc.integer({ min: 0, max: 2 ** 32 - 1 });
const lists = fc.uniqueArray(fc.record({ accountId: u32, value: fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }) }), {
  selector: (row) => row.accountId,
  maxLength: 40,
});

test('an index finds what a scan finds, and nothing else', () => {
  fc.assert(
    fc.property(lists, fc.array(u32, { maxLength: 10 }), (rows, others) => {
      const packed = packCredits(rows);
      const index = new CreditIndex(packed);
      for (const { accountId, value } of rows) expect(index.creditOf(accountId)).toBe(value);
      const near = rows
        .flatMap(({ accountId }) => [accountId - 1, accountId + 1])
        .filter((id) => id >= 0 && id < 2 ** 32);
      for (const id of [0, 2 ** 32 - 1, ...near, ...others]) expect(index.creditOf(id)).toBe(creditOf(packed, id));
    }),
    { seed: 19, numRuns: 200 },
  );
});

test('a list that is read often gives the same credits before and after it is indexed', async () => {
  const rows = [7, 3, 9, 1].map((accountId) => ({ accountId, value: BigInt(accountId) * 1_000n }));
  let reads = 0;
  const sql = (async () => {
    reads++;
    return [1, 2, 3, 4, 5].map((id) => ({ id, credits: Buffer.from(packCredits(rows)) }));
  }) as unknown as Sql;
  const credits = new CreditLists({ sql });
  for (let read = 0; read < 40; read++) {
    const found = await credits.creditsOf(rows[read % 4]?.accountId as number, [1, 2, 3, 4, 5]);
    expect([...found.values()]).toEqual(Array(5).fill(rows[read % 4]?.value));
    expect(await credits.creditsOf(8, [1, 2, 3, 4, 5])).toEqual(new Map());
  }
  expect(reads).toBe(1);
});
