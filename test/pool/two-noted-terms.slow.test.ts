/** Two instances have noted different terms of one pool, because its database fell back to an older copy while one of them was away. */
import { join } from 'node:path';
import { beforeEach, expect, test } from 'vitest';
import { beginTerms, optionTerms } from '../../pool/books/terms-in-force.ts';
import type { Sql } from '../../pool/database/connect.ts';
import { editedFee } from '../../pool/edits/edited-fee.ts';
import { Edits, minimumInForce, startedWithMinimum } from '../../pool/edits/edits.ts';
import { PublishedTerms } from '../../pool/edits/published-terms.ts';
import { quietLog } from '../quiet-log.ts';
import { temporaryDirectory } from '../temporary.ts';
import { databaseServer } from './database-fixture.ts';

const SLICE_CUTS = 240;
const DAY = 86_400_000;
const file = { name: 'a pool', payoutMin: 1_000n, feePpm: { pplns: 10_000, solo: 10_000 }, sliceCuts: SLICE_CUTS };
const editor = { host: 'here', token: '' };
const server = databaseServer();

let sql: Sql;
let slice: number;
let now: number;
let paths: Record<'first' | 'second', string>;

const options = {
  sliceCuts: SLICE_CUTS,
  windowThousandths: 8_000n,
  services: [0, 1],
  feePpm: new Map([
    [0, 10_000n],
    [1, 10_000n],
  ]),
};

/** An instance as after a start. */
async function start(name: 'first' | 'second') {
  const published = new PublishedTerms(paths[name], { log: quietLog, now: () => now });
  const edits = new Edits(file, {
    sql,
    chain: () => ({ height: slice * SLICE_CUTS, synced: true, atMillis: now, newestMillis: 0 }),
    now: () => now,
    published,
  });
  await edits.refresh();
  return edits;
}

/** Slices open with the terms of the moment, as the accountant opens them. */
async function goTo(newest: number): Promise<void> {
  for (; slice < newest; slice++)
    for (const service of [0, 1]) {
      const { fee, window } = await feeOf(slice + 1, service);
      await sql`insert into slices (service, number, window_work, opened_height, slice_cuts, window_thousandths, fee_ppm, target)
        values (${service}, ${slice + 1}, 1, ${(slice + 1) * SLICE_CUTS}, ${SLICE_CUTS}, ${window}, ${fee}, ${Buffer.alloc(32)})`;
    }
}

const feeOf = (number: number, service = 0) =>
  sql.begin(async (transaction) => {
    const own = await optionTerms(transaction, service, number);
    return { window: own?.window ?? 0, fee: (await editedFee(transaction, service, number)) ?? own?.fee ?? -1 };
  }) as Promise<{ fee: number; window: number }>;

/** Terms as they are now; put back, they are what an older copy of the database has. Slices come again from the journals. */
async function copy(): Promise<() => Promise<void>> {
  const rows = await sql<{ name: string; value: string }[]>`select name, value from settings`;
  return async () => {
    await sql`delete from settings`;
    await sql`insert into settings ${sql(rows)}`;
  };
}

beforeEach(async () => {
  ({ sql } = await server.fresh());
  slice = 9;
  now = 1_800_000_000_000;
  const directory = temporaryDirectory();
  paths = { first: join(directory, 'first'), second: join(directory, 'second') };
  await sql`insert into settings values ('chain_id', 'one')`;
  await sql.begin((transaction) => beginTerms(transaction, options, 10 * SLICE_CUTS));
  await startedWithMinimum(sql, 1_000n, now);
  await goTo(10);
});

test('a higher fee and a higher smallest payout that the others have not announced for a day do not come with an instance that was away', async () => {
  const first = await start('first');
  const second = await start('second');
  const fallBack = await copy();
  await first.change('fee_pplns', '2', editor);
  await first.change('payout_min', '0.00005', editor);
  expect(first.now.feeChanges.pplns).toMatchObject([{ ppm: 20_000 }]);
  await fallBack();
  await second.refresh();
  await goTo(400);
  now += 3 * DAY;
  await second.refresh();
  expect(second.now).toMatchObject({ feePpm: { pplns: 10_000 }, feeChanges: { pplns: [] }, payoutMin: 1_000n });
  await start('first');
  expect.soft((await feeOf(401)).fee).toBe(10_000);
  expect.soft(await minimumInForce(sql, now)).toBe(1_000n);
});

test('what the others have announced meanwhile is not taken back by an instance that was away', async () => {
  const first = await start('first');
  const second = await start('second');
  const fallBack = await copy();
  await first.change('notice', 'one', editor);
  await first.change('notice', 'two', editor);
  await fallBack();
  await second.refresh();
  await second.change('fee_pplns', '0.5', editor);
  await goTo(20);
  expect((await feeOf(20)).fee).toBe(5_000);
  await start('first');
  expect((await feeOf(21)).fee).toBe(5_000);
});

test('what an instance that was away had announced counts, however often the others changed something meanwhile', async () => {
  const first = await start('first');
  const second = await start('second');
  const fallBack = await copy();
  await first.change('fee_pplns', '0.5', editor);
  await first.change('payout_min', '0.000002', editor);
  await fallBack();
  await second.refresh();
  await second.change('notice', 'one', editor);
  await second.change('notice', 'two', editor);
  await second.change('notice', 'three', editor);
  await goTo(20);
  await start('first');
  expect.soft((await feeOf(21)).fee).toBe(5_000);
  expect.soft(await minimumInForce(sql, now)).toBe(200n);
});
