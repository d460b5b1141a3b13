/** Edits of a running pool over its API and real books: what they change, what they leave alone, and what is on record of them. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { MinerDocument, PoolDocument } from '../../pool/api/documents.ts';
import type { OperatorLogDocument, SettingsDocument } from '../../pool/api/operator/operator-documents.ts';
import type { Sql } from '../../pool/database/connect.ts';
import { Edits, startedWithMinimum } from '../../pool/edits/edits.ts';
import { minimumsBefore, noteEarlier } from '../../pool/payout/earlier-minimums.ts';
import { INTERVAL_CUTS } from '../../protocol/network.ts';
import { until } from '../until.ts';
import { openPoolApiBed, type PoolApiBed } from './api-bed.ts';
import { SLICE_CUTS } from './books-bed.ts';

let bed: PoolApiBed;
beforeAll(async () => {
  bed = await openPoolApiBed({ refreshMillis: 50 });
});
afterAll(() => bed.close());

const ask = async <T>(path: string, method = 'GET', body?: object): Promise<T & { error?: { code: string } }> => {
  const response = await fetch(`http://127.0.0.1:${bed.web.address.port}/p/api/v1/${path}`, {
    method,
    headers: {
      authorization: `Bearer ${bed.token}`,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return (await response.json()) as T & { error?: { code: string } };
};
const edit = (name: string, value: string) => ask<SettingsDocument>('operator/settings', 'POST', { name, value });
const takeBack = (name: string) => ask<SettingsDocument>('operator/settings', 'DELETE', { name });
const settingOf = ({ settings }: SettingsDocument, name: string) => settings.find((one) => one.name === name);
const log = (query = '') => ask<OperatorLogDocument>(`operator/log${query}`);
/** The pool's document is made again every 50 ms here. */
const pool = (isSo: (document: PoolDocument) => boolean) => until(async () => isSo(await ask<PoolDocument>('pool')));

test('an edit counts instead of the options, is on record with both values, and can be taken back', async () => {
  const refused = await fetch(`http://127.0.0.1:${bed.web.address.port}/p/api/v1/operator/settings`);
  expect(refused.status).toBe(401);
  const before = await ask<SettingsDocument>('operator/settings');
  expect(settingOf(before, 'pool_name')).toEqual({
    name: 'pool_name',
    value: 'test pool',
    file_value: 'test pool',
    edited: false,
    changes: [],
  });
  expect(settingOf(await edit('pool_name', 'Another pool'), 'pool_name')).toMatchObject({
    value: 'Another pool',
    file_value: 'test pool',
    edited: true,
  });
  await edit('notice', 'back at noon');
  await edit('pause_note', 'the wallet moves');
  await pool(({ name, notice }) => name === 'Another pool' && notice === 'back at noon');
  await ask('operator/pause', 'POST');
  await pool(({ payouts }) => payouts.paused && payouts.pause_note === 'the wallet moves');
  await ask('operator/resume', 'POST');
  await pool(({ payouts }) => !payouts.paused && payouts.pause_note === null && (payouts.resumed_millis ?? 0) > 0);
  for (const [name, value] of [
    ['payout_min', '0'],
    ['payout_min', '100.00000001'],
    ['fee_pplns', '101'],
    ['pool_name', '<b>'],
    ['notice', 'two\nlines'],
    ['network', 'mainnet'],
  ] as const)
    expect((await edit(name, value)).error?.code, name).toBe('bad_request');
  await takeBack('pool_name');
  await takeBack('notice');
  await pool(({ name, notice }) => name === 'test pool' && notice === null);
  // The same again changes nothing and is not on record.
  await takeBack('notice');
  const { entries } = await log();
  const edits = entries.filter(({ action }) => action === 'edit');
  expect(edits.map(({ details }) => details)).toMatchObject([
    { setting: 'notice', old: 'back at noon', new: null, back_to_options: true },
    { setting: 'pool_name', old: 'Another pool', new: 'test pool', back_to_options: true },
    { setting: 'pause_note', old: 'the wallet moves', new: null },
    { setting: 'pause_note', old: null, new: 'the wallet moves' },
    { setting: 'notice', old: null, new: 'back at noon' },
    { setting: 'pool_name', old: 'test pool', new: 'Another pool' },
  ]);
  expect(edits[0]?.actor).toBe('127.0.0.1');
  expect((edits[0] as { details: { token: string } }).details.token).toMatch(/^[0-9a-f]{8}$/);
  expect(JSON.stringify(entries)).not.toContain(bed.token);
  // Page by page, none twice and none left out.
  const pages: unknown[] = [];
  for (let cursor: string | undefined; ; ) {
    const page: OperatorLogDocument = await log(`?limit=3${cursor === undefined ? '' : `&cursor=${cursor}`}`);
    expect(page.entries.length).toBeLessThanOrEqual(3);
    pages.push(...page.entries);
    cursor = page.next_cursor;
    if (cursor === undefined) break;
  }
  expect(pages).toEqual(entries);
});

/** As if everything that was announced had been announced days ago. */
const daysLater = (sql: Sql) => sql`update settings set value = (select jsonb_agg(e || jsonb_build_object('at',
    (e ->> 'at')::bigint - 200000000)) from jsonb_array_elements(value::jsonb) e)::text where name = 'payout_min_schedule'`;

test('a higher minimum payout counts a day after it was announced, a lower one at once', async () => {
  const { sql } = bed.books;
  const [row] = await sql<{ address: string }[]>`select address from accounts order by id limit 1`;
  const minimum = async () => (await ask<MinerDocument>(`miners/${row?.address}`)).payout_minimum;
  await edit('payout_min', '0.00005');
  await pool(({ payouts }) => payouts.minimum_changes?.[0]?.minimum === '5000' && payouts.minimum === '1000');
  expect(await minimum()).toBe('1000');
  await daysLater(sql);
  await pool(({ payouts }) => payouts.minimum === '5000' && payouts.minimum_changes?.length === 0);
  await until(async () => (await minimum()) === '5000');
  await takeBack('payout_min');
  await pool(({ payouts }) => payouts.minimum === '1000');
  await until(async () => (await minimum()) === '1000');
});

test('a minimum that falls leaves the one before on record: by an edit, by a start, and for an address that then chooses its own', async () => {
  const { sql } = bed.books;
  const [row] = await sql<{ id: number }[]>`select id from accounts order by id limit 1`;
  const id = row?.id as number;
  const known = async () => (await minimumsBefore(sql, id)).map(({ atoms }) => atoms);
  await sql`delete from payout_minimums`;
  await sql`delete from settings where name in ('payout_min_schedule', 'payout_min_started')`;
  // The pool was started with more, then with less, and then with the same.
  for (const atoms of [7_000n, 6_000n, 6_000n]) await startedWithMinimum(sql, atoms, Date.now());
  expect(await known()).toEqual([7_000n]);
  // The edit hides what a start changes, until it is taken back.
  await edit('payout_min', '0.00005');
  expect(await known()).toEqual([6_000n, 7_000n]);
  await startedWithMinimum(sql, 2_000n, Date.now());
  expect(await known()).toEqual([6_000n, 7_000n]);
  await takeBack('payout_min');
  expect(await known()).toEqual([5_000n, 6_000n, 7_000n]);
  // The address chooses its own, and less: the pool has no less time for it than for the others.
  await sql.begin((transaction) => noteEarlier(transaction, id, { atoms: 2_000n, untilMillis: Date.now() + 1 }));
  expect(await known()).toEqual([2_000n, 5_000n, 6_000n, 7_000n]);
});

test('a fee is announced, opens the slices that it was announced for, and no others', async () => {
  const { sql } = bed.books;
  const feesFrom = (slice: number) => sql<{ number: number; fee: number }[]>`select number::int as number,
    fee_ppm::int as fee from slices where service = 0 and number >= ${slice} order by number`;
  const [newest] = await sql<{ number: number }[]>`select max(number)::int as number from slices`;
  const open = newest?.number as number;
  const lower = settingOf(await edit('fee_pplns', '0.25'), 'fee_pplns');
  expect(lower).toMatchObject({ value: '1', file_value: '1', edited: true });
  const change = { from_slice: open + 1, from_height: (open + 1) * SLICE_CUTS };
  expect(lower?.changes).toEqual([{ value: '0.25', ...change }]);
  await pool(({ services }) => services[0]?.fee_changes[0]?.from_slice === open + 1 && services[0].fee_ppm === 10_000);
  await bed.books.height((open + 2) * SLICE_CUTS);
  expect([...(await feesFrom(open))]).toEqual([
    { number: open, fee: 10_000 },
    { number: open + 1, fee: 2_500 },
    { number: open + 2, fee: 2_500 },
  ]);
  await pool(({ services }) => services[0]?.fee_ppm === 2_500 && services[0].fee_changes.length === 0);
  // A start with another fee in the options: the edit counts, and back to the options is a rise with its notice.
  await bed.books.height((open + 3) * SLICE_CUTS, new Map([[0, 30_000n]]));
  expect((await feesFrom(open + 3))[0]).toEqual({ number: open + 3, fee: 2_500 });
  const rise = settingOf(await takeBack('fee_pplns'), 'fee_pplns')?.changes[0];
  expect((rise?.from_height as number) - (open + 4) * SLICE_CUTS).toBe(INTERVAL_CUTS);
  expect(settingOf(await edit('fee_pplns', '0.25'), 'fee_pplns')).toMatchObject({ value: '0.25', changes: [] });
  // A rise that follows another takes its place, and everybody reads of it at once.
  await edit('fee_pplns', '0.2501');
  await bed.books.height((open + 4) * SLICE_CUTS);
  const [second] = (settingOf(await edit('fee_pplns', '50'), 'fee_pplns') as SettingsDocument['settings'][number])
    .changes;
  expect(second).toMatchObject({ value: '50' });
  await pool(({ services }) => services[0]?.fee_changes[0]?.fee_ppm === 500_000);
  // A lower fee hides no rise behind it.
  await edit('fee_pplns', '0.1');
  expect(settingOf(await edit('fee_pplns', '3'), 'fee_pplns')?.changes.map(({ value }) => value)).toEqual(['0.1', '3']);
  await pool(({ services }) => services[0]?.fee_changes.map(({ fee_ppm }) => fee_ppm).join() === '1000,30000');
  await bed.books.sql`update settings set value = '[{"from":0,"ppm":2500}]' where name = 'edit_fee_pplns'`;
  // What another instance, or the next start, reads.
  const file = { name: 'test pool', payoutMin: 1_000n, feePpm: { pplns: 30_000, solo: 5_000 }, sliceCuts: SLICE_CUTS };
  const next = new Edits(file, { sql, chain: () => undefined, now: Date.now });
  await next.refresh();
  expect(next.now).toMatchObject({ feePpm: { pplns: 2_500, solo: 5_000 }, name: 'test pool', payoutMin: 1_000n });
});

test('the options of a fee are those of the accountant, and a rise needs a height that is known', async () => {
  const { sql } = bed.books;
  const terms = { through: 0, terms: { 0: { window: 1000, fee: 50_000 }, 1: { window: 1000, fee: 5_000 } } };
  await sql`insert into settings values ('terms_in_force', ${JSON.stringify(terms)})`;
  await sql`update settings set value = '[{"from":0,"ppm":20000}]' where name = 'edit_fee_pplns'`;
  const [newest] = await sql<{ number: number }[]>`select max(number)::int as number from slices`;
  const height = (newest?.number as number) * SLICE_CUTS;
  const file = { name: 'test pool', payoutMin: 1_000n, feePpm: { pplns: 10_000, solo: 5_000 }, sliceCuts: SLICE_CUTS };
  const editor = { host: 'here', token: '' };
  const at = (look: { synced: boolean; atMillis: number } | undefined) =>
    new Edits(file, { sql, chain: () => look && { ...look, height, newestMillis: 0 }, now: () => 100_000 });
  const unknown = [undefined, { synced: false, atMillis: 100_000 }, { synced: true, atMillis: 39_999 }].map(at);
  for (const edits of unknown) expect(await edits.change('fee_pplns', null, editor)).toEqual({ kind: 'no_height' });
  const known = at({ synced: true, atMillis: 40_000 });
  expect(await known.change('fee_pplns', null, editor)).toEqual({ kind: 'made' });
  expect(known.now.feeChanges.pplns).toMatchObject([{ ppm: 50_000 }]);
  expect(known.now.feeChanges.pplns[0]?.fromHeight).toBe(height + SLICE_CUTS + INTERVAL_CUTS);
  // A lower fee needs no notice.
  expect(await unknown[0]?.change('fee_pplns', '0.1', editor)).toEqual({ kind: 'made' });
  await sql`delete from settings where name = 'terms_in_force'`;
});

test('where the books are behind the chain, the document is about their slice, as the terms are: miners take no lower fee for a rise', async () => {
  const { sql } = bed.books;
  const [newest] = await sql<{ number: number }[]>`select max(number)::int as number from slices`;
  const slice = newest?.number as number;
  const schedule = [0, slice + 1].map((from, i) => ({ from, ppm: i === 0 ? 20_000 : 5_000 }));
  await sql`insert into settings values ('edit_fee_pplns', ${JSON.stringify(schedule)})
    on conflict (name) do update set value = excluded.value`;
  const file = { name: 'test pool', payoutMin: 1_000n, feePpm: { pplns: 10_000, solo: 5_000 }, sliceCuts: SLICE_CUTS };
  const look = { height: (slice + 2) * SLICE_CUTS, synced: true, atMillis: 0, newestMillis: 0 };
  const edits = new Edits(file, { sql, chain: () => look, now: () => 0 });
  await edits.refresh();
  expect(edits.now.feePpm.pplns).toBe(20_000);
  expect(edits.now.feeChanges.pplns).toMatchObject([{ ppm: 5_000, fromSlice: slice + 1 }]);
});

test('a row that was changed outside the pool is named and not guessed', async () => {
  const { sql } = bed.books;
  await sql`update settings set value = '[{"from":0,"ppm":-5}]' where name = 'edit_fee_pplns'`;
  const [newest] = await sql<{ number: number }[]>`select max(number)::int as number from slices`;
  const next = ((newest?.number as number) + 1) * SLICE_CUTS;
  await expect(bed.books.height(next)).rejects.toMatchObject({ code: 'terms_unreadable' });
  await sql`delete from settings where name = 'edit_fee_pplns'`;
  await bed.books.height(next);
});
