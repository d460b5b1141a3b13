/** What a miner was credited day by day, out of real tables. */
import { expect, test } from 'vitest';
import { DayTotals } from '../../pool/api/books/day-totals.ts';
import { packCredits } from '../../pool/books/packed.ts';
import type { Sql } from '../../pool/database/connect.ts';
import { databaseServer } from './database-fixture.ts';

const database = databaseServer();
const DAY = 86_400_000;
const TODAY = 20_000;
const NOON = TODAY * DAY + DAY / 2;
const [MINE, OTHER] = [7, 8];

let slice = 0;
/** A list of the day, with what the miner is credited in it; somebody else always gets 1. */
async function list(sql: Sql, day: number, mine: bigint): Promise<number> {
  const rows = [...(mine === 0n ? [] : [{ accountId: MINE, value: mine }]), { accountId: OTHER, value: 1n }];
  const [row] = await sql<{ id: number }[]>`insert into credit_lists
      (service, slice, blocks, reward, fee, fee_ppm, credited, window_parts, root, credits, made_height, made_at)
    values (0, ${++slice}, 1, ${mine + 1n}, 0, 0, ${mine + 1n}, '[]', '', ${Buffer.from(packCredits(rows))}, 1,
      ${new Date(day * DAY + 1000)}) returning id`;
  return row?.id as number;
}

async function note(sql: Sql, through: number, mine: bigint, other: bigint): Promise<void> {
  const totals = packCredits([
    { accountId: MINE, value: mine },
    { accountId: OTHER, value: other },
  ]);
  await sql`insert into credit_totals values (${through}, ${mine + other}, '', ${Buffer.from(totals)})`;
}

test('each day has the sum of its lists, whether a note lies before it, within it or nowhere; lists are read once', async () => {
  const { sql } = await database.fresh();
  await sql`insert into accounts (payload, address)
    select decode(lpad(n::text, 98, '0'), 'hex'), n::text from generate_series(1, ${OTHER}) n`;
  await list(sql, TODAY - 40, 1000n);
  await list(sql, TODAY - 3, 5n);
  const noted = await list(sql, TODAY - 3, 6n);
  await note(sql, noted, 1011n, 3n);
  await list(sql, TODAY - 3, 7n);
  await list(sql, TODAY - 1, 0n);
  let now = NOON;
  const totals = new DayTotals({ sql, now: () => now });
  const earned = (since = (TODAY - 100) * DAY) => totals.earned(MINE, since);
  const days = await earned();
  expect(days).toHaveLength(30);
  expect(days.at(-1)).toEqual({ day: TODAY, amount: 0n });
  expect(days.filter(({ amount }) => amount > 0n)).toEqual([{ day: TODAY - 3, amount: 18n }]);
  // What was read is not read again: its rows may be gone.
  await sql`alter table credit_lists disable trigger user`;
  const lists = await sql<{ id: number; credits: Buffer }[]>`select id, credits from credit_lists`;
  await sql`update credit_lists set credits = ''`;
  expect(await earned()).toEqual(days);
  // A list of today adds to what is known.
  await list(sql, TODAY, 9n);
  expect((await earned()).at(-1)).toEqual({ day: TODAY, amount: 9n });
  // The next day it is still that day's.
  now += DAY;
  await list(sql, TODAY + 1, 2n);
  expect((await earned()).slice(-2).map(({ amount }) => amount)).toEqual([9n, 2n]);
  expect(await earned((TODAY + 1) * DAY)).toEqual([{ day: TODAY + 1, amount: 2n }]);
  for (const { id, credits } of lists) await sql`update credit_lists set credits = ${credits} where id = ${id}`;
  totals.forget();
  expect((await earned()).slice(-2).map(({ amount }) => amount)).toEqual([9n, 2n]);
});

test('a statement that fails loses only its part: who asks next goes on from there', async () => {
  const { sql } = await database.fresh();
  await sql`insert into accounts (payload, address)
    select decode(lpad(n::text, 98, '0'), 'hex'), n::text from generate_series(1, ${OTHER}) n`;
  for (let day = TODAY - 5; day <= TODAY; day++) await list(sql, day, 1n);
  let reads = 0;
  let most = 3;
  const failing = ((parts: TemplateStringsArray, ...values: never[]) => {
    if (parts[0]?.startsWith('select id, credits') && ++reads > most) throw new Error('no answer in time');
    return sql(parts, ...values);
  }) as unknown as Sql;
  const totals = new DayTotals({ sql: failing, now: () => NOON });
  await expect(totals.earned(MINE, 0)).rejects.toThrow('no answer in time');
  most = Number.POSITIVE_INFINITY;
  expect((await totals.earned(MINE, 0)).slice(-6).map(({ amount }) => amount)).toEqual([1n, 1n, 1n, 1n, 1n, 1n]);
  // Each list once, and the one that failed.
  expect(reads).toBe(7);
});
