/** An unread page is never a lie: a pool that does not answer hides nothing, one whose answers leave its lists out for half a day does. And what a miner asks for when slice 0 is the newest. */
import { expect, test } from 'vitest';
import type { BooksAlarm } from '../../miner/books/books-alarms.ts';
import { BooksWatch } from '../../miner/books/books-watch.ts';
import { HiddenLists } from '../../miner/books/unchecked-time.ts';
import { PoolSilence } from '../../protocol/books/pool-silence.ts';
import { lyingBooks, SLICE, VICTIM } from '../protocol/books-liar.ts';
import { sourcesOf } from '../protocol/books-sources.ts';
import { DUE_HEIGHT, ADDRESS as MINER, truth } from './watched-lists.ts';

const HOUR = 3_600_000;
const ADDRESS = 'dminer';
const NO_RECEIPTS = { kept_from: null, newest: null, through: 0, more: false, slices: [] };

function watching(lists: () => unknown, receipts: object | Error = NO_RECEIPTS) {
  const clock = { now: 1_000 * HOUR };
  const alarms: BooksAlarm[] = [];
  const asked: string[] = [];
  const warned: string[] = [];
  const watch = new BooksWatch(
    { address: ADDRESS, worker: 'rig', api: undefined, expectedKey: undefined },
    {
      read: async (url) => {
        asked.push(url);
        if (!url.includes('/receipt-sheets?')) return lists();
        if (receipts instanceof Error) throw receipts;
        return receipts;
      },
      alarm: (alarm) => void alarms.push(alarm),
      note: () => undefined,
      warn: (message, { part, since, why }) => void warned.push(`${message}: ${part} ${since} ${why ?? ''}`.trim()),
      wallMillis: () => clock.now,
      nowMillis: () => clock.now,
    },
  );
  watch.offered({ key: new Uint8Array(1952).fill(1), api: 'http://pool.example' });
  watch.works('pplns', undefined);
  return { watch, clock, alarms, asked, warned };
}

const failing = () => {
  throw new Error('status 500');
};

test('answers that leave lists out for twelve hours are reported; time in which nothing was read does not begin them', () => {
  const hidden = new HiddenLists();
  for (let hour = 0; hour < 100; hour++) expect(hidden.failed(true, hour * HOUR)).not.toBe('hidden');
  for (let hour = 100; hour <= 112; hour++) expect(hidden.failed(false, hour * HOUR), `${hour}`).toBeUndefined();
  expect(hidden.failed(true, 113 * HOUR)).toBeUndefined();
  expect(hidden.failed(false, 113 * HOUR)).toBe('hidden');
  // One answer begins the time anew.
  hidden.read(false);
  for (let hour = 114; hour <= 126; hour++) expect(hidden.failed(false, hour * HOUR), `${hour}`).not.toBe('hidden');
  expect(hidden.failed(false, 127 * HOUR)).toBe('hidden');
});

test('lists that cannot be read are no accusation, however long: status 429, 500, or no answer', async () => {
  for (const error of [
    new Error('status 500'),
    new PoolSilence('status 429', { status: 429, retryAfterMillis: 1_000 }),
  ]) {
    const { watch, clock, alarms, warned } = watching(() => {
      throw error;
    }, error);
    for (let hour = 0; hour < 100; hour++) {
      await watch.check().catch(() => undefined);
      clock.now += HOUR;
    }
    expect(alarms).toEqual([]);
    expect(warned.join()).toContain('THE POOL’S BOOKS CANNOT BE CHECKED: lists');
  }
});

test('a pool that answers nothing at all is reported after an hour, and is not accused', async () => {
  const { watch, clock, alarms, warned } = watching(failing, new Error('status 502'));
  const began = new Date(clock.now).toISOString();
  for (let minute = 0; minute < 60; minute++) {
    await watch.check().catch(() => undefined);
    clock.now += 60_000;
  }
  expect(warned).toEqual([]);
  await watch.check().catch(() => undefined);
  const said = 'THE POOL’S BOOKS CANNOT BE CHECKED';
  expect(warned).toEqual([`${said}: receipts ${began} status 502`, `${said}: lists ${began} status 500`]);
  for (let minute = 0; minute < 13 * 60; minute++) {
    clock.now += 60_000;
    await watch.check().catch(() => undefined);
  }
  expect(alarms).toEqual([]);
  // Again after two, four and eight hours.
  expect(warned.filter((each) => each.includes('lists'))).toHaveLength(4);
});

test('one answer in between begins the twelve hours anew', async () => {
  const first = { from_slice: 0, slice_cuts: 240, window_thousandths: 1, fee_ppm: 0 };
  let isFailing = true;
  let path = '';
  const { watch, clock, alarms } = watching(() => {
    if (isFailing) throw new Error(`status 500 ${path}`);
    return { address: 'x', height: 0, terms: { pplns: [first], solo: [first] }, slices: [], blocks: [] };
  });
  for (let hour = 0; hour < 30; hour++) {
    path = String(hour);
    isFailing = hour % 10 !== 0;
    await watch.check();
    clock.now += HOUR;
  }
  expect(alarms).toEqual([]);
});

test('a miner whose first look finds slice 0 to be the newest asks for receipts without a bound, so that slice 0 is among them', async () => {
  const { watch, asked } = watching(failing, { ...NO_RECEIPTS, kept_from: 0, newest: 0 });
  await watch.check();
  await watch.check();
  const receipts = asked.filter((url) => url.includes('/receipt-sheets?'));
  expect(receipts).toEqual([
    `http://pool.example/api/v1/miners/${ADDRESS}/receipt-sheets?after=2000000000&worker=rig`,
    `http://pool.example/api/v1/miners/${ADDRESS}/receipt-sheets?worker=rig`,
  ]);
});

/** A server that offers no receipts, with an API that the user named. */
function unsigned(answer: (path: string) => unknown) {
  const clock = { now: 1_000 * HOUR };
  const alarms: string[] = [];
  const warned: string[] = [];
  const watch = new BooksWatch(
    { address: MINER, worker: 'rig', api: 'http://pool.example', expectedKey: undefined },
    {
      read: async (url) => answer(url.slice('http://pool.example/api/v1/'.length)),
      alarm: ({ kind, fields }) => void alarms.push(`${kind} ${fields.reason ?? ''}`),
      note: () => undefined,
      warn: (message) => void warned.push(message),
      wallMillis: () => clock.now,
      nowMillis: () => clock.now,
    },
  );
  watch.offered(null);
  const hours = async (count: number) => {
    for (let hour = 0; hour < count; hour++) {
      await watch.check();
      clock.now += HOUR;
    }
  };
  return { hours, alarms, warned, watch };
}

test('a pool without receipts: its lists are judged all the same, and what is not checked is said', async () => {
  const dear = lyingBooks((draft) => {
    draft.feePpm = 300_000;
  });
  const lie = { ...truth, proof: dear.proof(SLICE, VICTIM) };
  const { pool } = sourcesOf(lie);
  const { hours, alarms, warned, watch } = unsigned(async (path) => {
    const answer = await pool(path);
    if (path === 'terms') return { ...(answer as object), height: DUE_HEIGHT };
    if (!path.startsWith('slices/pplns?')) return answer;
    const { slices } = answer as { slices: { slice: number }[] };
    const credits = { root: lie.proof.credit_root };
    return { slices: slices.map((each) => ({ ...each, credits: each.slice === SLICE ? credits : null })) };
  });
  await hours(4);
  expect(alarms).toContain('list_false terms');
  expect(warned[0]).toMatch(/^the pool offers no receipts: its lists and payments are checked, but not whether/);
  // What was seen of them is kept over a restart, although no receipt changes anything.
  watch.save();
  await hours(1);
  expect(watch.isChanged).toBe(true);
});

test('a server that has no such books is not accused of hiding them', async () => {
  const { hours, alarms, warned } = unsigned(failing);
  await hours(40);
  expect(alarms).toEqual([]);
  expect(warned).toContain('THE POOL’S BOOKS CANNOT BE CHECKED');
});
