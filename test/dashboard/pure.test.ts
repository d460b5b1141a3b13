/** The parts of the page that decide without a browser: texts of figures, addresses of pages, consent, waits. */
import fc from 'fast-check';
import { beforeAll, expect, test, vi } from 'vitest';
import {
  barTicks,
  chartPoints,
  historyPoints,
  labelSpace,
  sparkLine,
  timeLabels,
  timeTicks,
  valueSpace,
} from '../../dashboard/chart/chart-points.ts';
import { read } from '../../dashboard/data/client.ts';
import { type CsvColumn, csvOf, csvTime } from '../../dashboard/data/csv.ts';
import { nextWait } from '../../dashboard/data/live.ts';
import { userOf } from '../../dashboard/data/miner-command.ts';
import { earnedPerDay, payoutProgress, secondsToPayout, secondsUntilPaid } from '../../dashboard/earnings.ts';
import { updateNotice } from '../../dashboard/explorer/update-notice.ts';
import {
  ago,
  amountParts,
  blockEvery,
  coins,
  count,
  duration,
  feeText,
  hashes,
  hashRate,
  minimumText,
  overTime,
  percent,
  precise,
  roundedCoins,
  shortId,
  smallPercent,
  windowText,
} from '../../dashboard/format.ts';
import { mayMine, whyNot } from '../../dashboard/mine/consent.ts';
import { NewsGate, newsOf } from '../../dashboard/notify/news.ts';
import { optionName, optionValue } from '../../dashboard/operator/option-text.ts';
import { linkTo, MINER_TABS, minerLink, PAGES, placeOf } from '../../dashboard/router.ts';
import { countedOf, longRate, perDayOf } from '../../dashboard/view/miner-figures.ts';
import { loadPageWords } from '../../dashboard/words/language.ts';
import type { LiveFrame, MinerDocument, WorkersDocument } from '../../pool/api/documents.ts';
import { codePoint } from '../protocol/fuzz.ts';
import { POOL } from './made-up-pool.ts';

beforeAll(loadPageWords);

test('the line to paste into a shell has an address in it, or the word for one', () => {
  expect(userOf(' dsvc1abc2 ')).toBe('dsvc1abc2.rig1');
  for (const typed of ['', ' ', '$(reboot)', 'a;b', 'a b', '`a`', "a'", 'a\nb', '-o', '\u202ea', 'a.rig2'])
    expect(userOf(typed)).toBe('ADDRESS.rig1');
});

test('a fee and a window come with those that are announced, and when', () => {
  const [pplns] = POOL.services;
  const service = {
    ...(pplns as NonNullable<typeof pplns>),
    fee_changes: [{ fee_ppm: 20_000, from_slice: 60_000, from_height: 14_400_000 }],
    window_thousandths: 12_000,
    window_changes: [{ window_thousandths: 4_500, from_slice: 60_000, from_height: 14_400_000 }],
  };
  expect(feeText(service, POOL, undefined)).toBe('1.00 %; 2.00 % from cut 14,400,000');
  expect(windowText(service, POOL, undefined)).toBe(
    'the work of 12 expected blocks; the work of 4.5 expected blocks from cut 14,400,000',
  );
  expect(windowText({ ...service, window_thousandths: undefined }, POOL, undefined)).toBeUndefined();
});

test('large parts of a hundred are grouped like all numbers', () => {
  expect([277.22, 0.4, 12_345.678].map((part) => percent(part))).toEqual(['27,722 %', '40 %', '1,234,568 %']);
});

test('hash rates have three digits and never 1000 of a unit', () => {
  expect([0, 999, 999.6, 1000, 12_345, 999_499, 999_500, 1.5e12].map(hashRate)).toEqual([
    '0 H/s',
    '999 H/s',
    '1.00 kH/s',
    '1.00 kH/s',
    '12.3 kH/s',
    '999 kH/s',
    '1.00 MH/s',
    '1.50 TH/s',
  ]);
  expect(hashRate(-5)).toBe('0 H/s');
  fc.assert(
    fc.property(fc.double({ min: 0, max: 9e16, noNaN: true }), (rate) => {
      expect(hashRate(rate)).toMatch(/^\d{1,3}(\.\d{1,2})? [kMGTP]?H\/s$/);
    }),
  );
});

test('counts have a comma every three digits', () => {
  for (const value of [0, 7, 999, 1000, 1234567, -1234, -999, 12_345.678, 0.1 + 0.2, 99.99951])
    expect(count(value)).toBe(value.toLocaleString('en'));
  expect(count(12_345_678_901_234_567_890n)).toBe('12,345,678,901,234,567,890');
});

test('a small line goes from edge to edge, passes over gaps, and is absent where it would say nothing', () => {
  const points = (...values: (number | null)[]) => values.map((value, i) => ({ at_millis: i * 1000, value }));
  expect(sparkLine(points(0, 2, 4, 6, 8, 10))).toBe('0.0,22.0 20.0,18.0 40.0,14.0 60.0,10.0 80.0,6.0 100.0,2.0');
  expect(sparkLine(points(null, 5, null, 5, 5, 5, 5, 0))).toBe(
    '0.0,2.0 33.3,2.0 50.0,2.0 66.7,2.0 83.3,2.0 100.0,22.0',
  );
  for (const nothing of [points(), points(1, 2, 3), points(0, 0, 0, 0, 0, 0), points(null, 1, 1, 1, 1, 1)])
    expect(sparkLine(nothing)).toBeUndefined();
});

test('a chart has three labels of the time at least, also on a phone, and room for the longest value', () => {
  for (const plotted of [220, 260, 300]) expect(plotted / labelSpace(86_400, plotted)).toBeGreaterThanOrEqual(3);
  // Three minutes on a phone: a label each minute, and none each half minute, whose labels are longer.
  expect(labelSpace(180, 197)).toBeLessThan((60 * 197) / 180);
  for (const shown of [60, 90, 120, 150, 180, 300]) {
    const half = (30 * 197) / shown;
    expect(labelSpace(shown, 197) > half || half >= 56, `${shown} s`).toBe(true);
  }
  expect(valueSpace(['0 H/s', '10.0 kH/s'])).toBeGreaterThan(valueSpace(['0', '5']));
});

test('the labels of the time lie within the chart, two at least, at round times where there are such', () => {
  const start = Date.UTC(2026, 10, 16, 21, 3, 7) / 1000;
  const lengths = [20, 90, 250, 299, 599, 3_600, 86_400, 7 * 86_400, 30 * 86_400];
  for (const shown of lengths)
    for (const apart of [5, 60, 300, 600, 14_400, 86_400, 10 * 86_400]) {
      if (shown / apart > 100) continue;
      const ticks = timeTicks(start, start + shown, apart);
      expect(ticks.length, `${shown} s, ${apart} s apart`).toBeGreaterThanOrEqual(2);
      expect(Math.min(...ticks)).toBeGreaterThanOrEqual(start);
      expect(Math.max(...ticks)).toBeLessThanOrEqual(start + shown);
      if (shown >= 2 * apart && apart < 3_600) expect(ticks.every((tick) => tick % apart === 0)).toBe(true);
    }
  // No two whole minutes: the labels have seconds.
  expect(timeLabels(timeTicks(start, start + 50, 60), 60).every((label) => label.length === 8)).toBe(true);
});

test('bars are labelled with their days, the newest always, and no two labels share their room', () => {
  const days = Array.from({ length: 30 }, (_, i) => Date.UTC(2026, 10, 1 + i, 12) / 1000);
  expect(barTicks(days.slice(0, 1), 300)).toEqual(days.slice(0, 1));
  expect(barTicks([], 300)).toEqual([]);
  for (const plotted of [220, 300, 1_000])
    for (const shown of [1, 2, 7, 30]) {
      const ticks = barTicks(days.slice(-shown), plotted);
      expect(ticks.at(-1)).toBe(days.at(-1));
      const [first, second] = ticks.map((tick) => days.slice(-shown).indexOf(tick));
      const apart = ((second ?? shown) - (first ?? 0)) * (plotted / shown);
      expect(second === undefined || apart >= 70, `${shown} days on ${plotted}`).toBe(true);
    }
});

test('coins keep every atom', () => {
  expect(['0', '1', '100000000', '123456789012345678', '-150000000', '10'].map(coins)).toEqual([
    '0.00',
    '0.00000001',
    '1.00',
    '1,234,567,890.12345678',
    '-1.50',
    '0.0000001',
  ]);
  expect(['1562500000', '27343967090', '100', '-1'].map((atoms) => Object.values(amountParts(atoms)))).toEqual([
    ['15.625', '', '00000'],
    ['273.4396', '709', '0'],
    ['0.000001', '', '00'],
    ['-0.00000001', '', ''],
  ]);
  fc.assert(
    fc.property(fc.bigInt({ min: -(10n ** 19n), max: 10n ** 19n }), (atoms) => {
      const [whole = '', rest = ''] = coins(atoms).replaceAll(',', '').replace('-', '').split('.');
      const size = BigInt(whole) * 100_000_000n + BigInt(rest.padEnd(8, '0'));
      expect(coins(atoms).startsWith('-') ? -size : size).toBe(atoms);
    }),
  );
});

test('times, parts and names', () => {
  const now = 1_000_000_000;
  expect(
    [null, now + 5000, now - 59_000, now - 61_000, now - 7_200_000, now - 172_800_000].map((at) => ago(at, now)),
  ).toEqual(['never', '0 s ago', '59 s ago', '1 min ago', '2 h ago', '2 d ago']);
  expect([0.01, 2.5, 89, 91, 7200, 200_000, Number.POSITIVE_INFINITY].map(duration)).toEqual([
    'less than 0.1 s',
    '2.5 s',
    '89 s',
    '2 min',
    '2.0 h',
    '2.3 days',
    '–',
  ]);
  expect([0, 0.00001, 0.0034, 0.5, 12].map(smallPercent)).toEqual([
    '0.00 %',
    'less than 0.01 %',
    '0.34 %',
    '50 %',
    '1,200 %',
  ]);
  expect([hashes('0'), hashes('999'), hashes('12345678')]).toEqual(['0', '999', '12.3 M']);
  expect([0.5, 193.2, 999.4, 999.6, 1_703, 4_589_123].map((value) => precise(value, 3))).toEqual([
    '0.500',
    '193',
    '999',
    '1,000',
    '1,703',
    '4,589,123',
  ]);
  expect([percent(0.4567), percent(0.4567, 2), percent(Number.NaN)]).toEqual(['46 %', '45.67 %', '–']);
  expect(count(1_234_567)).toBe('1,234,567');
  expect(shortId('ab'.repeat(48))).toBe('ababababab…ababab');
  expect(shortId('short')).toBe('short');
});

test('every page has an address, and any other text leads somewhere', () => {
  for (const { page } of PAGES) expect(placeOf(linkTo(page))).toEqual({ page });
  expect(placeOf('')).toEqual({ page: 'pool' });
  expect(placeOf('#/%E0%A4%A')).toEqual({ page: 'pool' });
  expect(placeOf('#/mail/stop/a_B-9')).toEqual({ page: 'mail', act: 'stop', code: 'a_B-9' });
  expect(placeOf('#/mail/other/a')).toEqual({ page: 'pool' });
  expect(placeOf('#/mail/stop')).toEqual({ page: 'pool' });
  for (const tab of MINER_TABS.slice(1))
    expect(placeOf(minerLink('a', tab))).toEqual({ page: 'miner', address: 'a', tab });
  expect(placeOf('#/miner/a/other')).toEqual({ page: 'miner', address: 'a' });
  fc.assert(
    fc.property(fc.oneof(fc.string({ minLength: 1 }), fc.string({ minLength: 1, unit: codePoint })), (address) => {
      expect(placeOf(linkTo('miner', address))).toEqual({ page: 'miner', address });
    }),
  );
  fc.assert(fc.property(fc.string(), (text) => PAGES.some(({ page }) => page === placeOf(text).page)));
});

test('mining needs a wish, one tab, a visible page and power, unless told otherwise', () => {
  const good = { wanted: true, hidden: false, onBattery: false, otherTab: false };
  const shy = { whenHidden: false, onBattery: false };
  expect(mayMine(good, shy)).toEqual({ mine: true });
  expect(mayMine({ ...good, wanted: false }, { whenHidden: true, onBattery: true })).toEqual({
    mine: false,
    why: 'off',
  });
  expect(mayMine({ ...good, otherTab: true }, { whenHidden: true, onBattery: true })).toEqual({
    mine: false,
    why: 'other_tab',
  });
  expect(mayMine({ ...good, hidden: true }, shy)).toEqual({ mine: false, why: 'hidden' });
  expect(mayMine({ ...good, hidden: true }, { ...shy, whenHidden: true })).toEqual({ mine: true });
  expect(mayMine({ ...good, onBattery: true }, shy)).toEqual({ mine: false, why: 'battery' });
  expect(mayMine({ ...good, onBattery: true }, { ...shy, onBattery: true })).toEqual({ mine: true });
  for (const why of ['off', 'other_tab', 'hidden', 'battery'] as const) expect(whyNot(why)).toMatch(/^[A-Z].*\.$/);
});

test('the wait of a reconnection grows, is jittered and has an end', () => {
  expect(nextWait(1000, 1)).toBe(2000);
  expect(nextWait(1000, 0)).toBe(1000);
  let wait = 1000;
  for (let i = 0; i < 20; i++) wait = nextWait(wait, 0.999);
  expect(wait).toBeGreaterThan(29_000);
  expect(wait).toBeLessThanOrEqual(30_000);
});

test('a node that needs an update is a warning, one that could have one a note', () => {
  const status = { update_required: false, update_announced: false, finalized_height: 77, version: '0.1.0' };
  expect([updateNotice(undefined), updateNotice(status)]).toEqual([undefined, undefined]);
  expect(updateNotice({ ...status, update_announced: true })).toMatchObject({ kind: 'note' });
  const required = updateNotice({ ...status, update_required: true, update_announced: true });
  expect(required).toMatchObject({ kind: 'warn' });
  expect(required?.text).toMatch(/stopped at cut 77/);
});

test('an estimate is the part of the network’s work, less the fee, and never more than all of it', () => {
  const pace = { networkRate: 1_000, workHalf: 50n, cutMillis: 2_500 };
  const all = (86_400_000n / 2_500n) * 50n;
  expect(earnedPerDay(1_000, 0, pace)).toBe(all);
  expect(earnedPerDay(100, 10_000, pace)).toBe((all * 99n) / 1_000n);
  expect(earnedPerDay(5_000, 0, pace)).toBe(all);
  expect(earnedPerDay(0, 0, pace)).toBe(0n);
  expect(earnedPerDay(100, 0, { ...pace, networkRate: 0 })).toBe(all);
  expect(earnedPerDay(100, 0, { ...pace, cutMillis: 0 })).toBeUndefined();
});

test('the way to the next payout', () => {
  expect([0n, 49n, 50n, 100n, 101n].map((balance) => payoutProgress(balance, 100n))).toEqual([0, 49, 50, 100, 100]);
  expect(secondsToPayout(40n, 100n, 60n)).toBe(86_400);
  expect(secondsToPayout(100n, 100n, undefined)).toBe(0);
  expect(secondsToPayout(0n, 100n, 0n)).toBeUndefined();
});

test('a young pool says since when, an old one over which time', () => {
  const now = 1_000_000_000;
  expect(roundedCoins('88264946830447')).toBe('882,649.46');
  expect(roundedCoins('6961026299')).toBe('69.6102');
  expect(roundedCoins('1234')).toBe('0.00001234');
  expect(blockEvery(0.02)).toBe('more than ten blocks a second');
  expect(blockEvery(12)).toBe('a block every 12 s');
  expect(overTime('over a day', 86_400, now - 240_000, now)).toBe('since the start 4 min ago');
  expect(overTime('over a day', 86_400, now - 86_400_000, now)).toBe('over a day');
  expect(overTime('over a day', 86_400, null, now)).toBe('over a day');
});

test('a chart falls to zero where nothing was done, and does not where the time is not over', () => {
  const row = (minute: number, seconds: number) => ({
    at_millis: minute * 60_000,
    seconds,
    hash_rate: 60,
    workers: 2,
    shares: seconds,
  });
  const chart = { api_version: 1 as const, seconds_per_point: 60, points: [row(10, 20), row(11, 60), row(14, 60)] };
  const now = 15 * 60_000 + 30_000;
  expect(chartPoints(chart, now, 'hash_rate')).toEqual([
    { at_millis: 610_000, value: 60 },
    { at_millis: 690_000, value: 60 },
    { at_millis: 750_000, value: 0 },
    { at_millis: 810_000, value: 0 },
    { at_millis: 870_000, value: 60 },
  ]);
  expect(chartPoints(chart, now, 'shares')[0]?.value).toBe(60);
  expect(chartPoints(chart, now + 60_000, 'hash_rate').at(-1)).toEqual({ at_millis: 930_000, value: 0 });
  expect(chartPoints({ ...chart, points: [row(0, 60)] }, 1e15, 'hash_rate')).toHaveLength(5_000);
  const found = { at_millis: 0, blocks: 3, luck: 0.5, block_work: '77', paid: '150000000' };
  const history = { api_version: 1 as const, seconds_per_point: 60, points: [found, { ...found, at_millis: 120_000 }] };
  expect(historyPoints(history, 180_000, 'luck').map(({ value }) => value)).toEqual([0.5, null, 0.5]);
  expect(historyPoints(history, 180_000, 'paid').map(({ value }) => value)).toEqual([1.5, 0, 1.5]);
});

test('labels of the time are short, and no two beside each other are the same', () => {
  const start = Date.UTC(2026, 10, 16, 21) / 1000;
  for (const apart of [5, 60, 600, 3_600, 14_400, 86_400, 5 * 86_400]) {
    const labels = timeLabels(
      Array.from({ length: 12 }, (_, i) => start + i * apart),
      apart,
    );
    expect(Math.max(...labels.map((label) => label.length))).toBeLessThanOrEqual(8);
    expect(labels.every((label, i) => label !== labels[i - 1])).toBe(true);
  }
});

test('when a block is paid, as those before it were', () => {
  const chain = { height: 110, cutsUntilPaid: 20, cutMillis: 2_500 };
  const at = (state: string, anchor_height: number) => secondsUntilPaid({ state, anchor_height }, chain);
  expect([at('found', 100), at('registered', 95), at('accepted', 50)]).toEqual([25, 12.5, 0]);
  expect([at('paid', 100), at('expired', 100), at('refused', 100), at('held', 100)]).toEqual(Array(4).fill(undefined));
  expect(secondsUntilPaid({ state: 'found', anchor_height: 1 }, { ...chain, cutsUntilPaid: null })).toBeUndefined();
});

test('a miner is notified of its own payments and blocks, each once, and of blocks seldom', () => {
  const payment = (address: string, state: 'submitted' | 'finalized' | 'reserved'): LiveFrame => {
    const rest = { payout_id: 'p', transaction_id: null, created_millis: 0, final_height: null };
    return { type: 'payment', data: { ...rest, state, address, amount: '150000000' } };
  };
  const block = (id: string, finder: string, reward: string | null = null): LiveFrame => {
    const rest = {
      anchor_height: 1,
      slice: 1,
      found_millis: 0,
      worker: 'rig',
      reason: null,
      effort: 1,
      credited: false,
    };
    const state = reward === null ? 'found' : 'paid';
    return { type: 'block', data: { ...rest, block_id: id, service: 'pplns', finder, state, reward } };
  };
  expect(newsOf(payment('me', 'finalized'), 'me')).toMatchObject({ title: 'Payment received', body: '1.50 coins' });
  expect(newsOf(payment('me', 'reserved'), 'me')).toBeUndefined();
  expect(newsOf(payment('another', 'finalized'), 'me')).toBeUndefined();
  expect(newsOf(block('a', 'another'), 'me')).toBeUndefined();
  expect(newsOf(block('a', 'me', '5'), 'me')).toBeUndefined();
  const gate = new NewsGate();
  const passes = (frame: Parameters<typeof newsOf>[0], now: number) => {
    const news = newsOf(frame, 'me');
    return news !== undefined && gate.passes(news, now);
  };
  expect([passes(payment('me', 'submitted'), 0), passes(payment('me', 'submitted'), 1)]).toEqual([true, false]);
  expect([0, 1, 59_999, 60_000].map((now) => passes(block(`b${now}`, 'me'), now))).toEqual([true, false, false, true]);
});

test('the card of a miner is the sum of its table of workers, where the table has all of them', () => {
  const rates = (rate: number) => ({ ten_minutes: rate, hour: rate, day: rate });
  const worker = (accepted: number, last: number | null) => ({
    name: `rig${accepted}`,
    service: 'pplns' as const,
    online: true,
    hash_rate: rates(accepted),
    accepted,
    stale: 1,
    rejected: 2,
    last_share_millis: last,
  });
  const card = { hash_rate: rates(957), accepted: 957, stale: 0, rejected: 0, last_share_millis: 5 } as MinerDocument;
  const table = (next?: string): WorkersDocument => ({
    api_version: 1,
    workers: [worker(1_000, 7), worker(8, null)],
    ...(next === undefined ? {} : { next_cursor: next }),
  });
  expect(countedOf(card, table(), true)).toEqual({
    hash_rate: rates(1_008),
    accepted: 1_008,
    stale: 2,
    rejected: 4,
    last_share_millis: 7,
  });
  for (const [shown, isFirst] of [
    [undefined, true],
    [table('more'), true],
    [table(), false],
    [{ ...table(), workers: [] }, true],
  ] as const)
    expect(countedOf(card, shown, isFirst)).toBe(card);
});

test('a new miner has a rate of its first minutes alone; one that is offline earns nothing', () => {
  const minute = 60_000;
  expect(longRate(5_000, 600, 0, 9 * minute)).toBe('–');
  expect(longRate(5_000, 600, 0, 11 * minute)).toBe('5.00 kH/s');
  const pace = { networkRate: 100, workHalf: 1_000n, cutMillis: 1_000 };
  const hash_rate = { ten_minutes: 0, hour: 50, day: 50 };
  expect(perDayOf({ online: true, hash_rate }, 0, pace)).toBe(43_200_000n);
  expect(perDayOf({ online: false, hash_rate }, 0, pace)).toBe(0n);
});

test('a file for a spreadsheet has every cell in quotes, and no cell is a formula', () => {
  const rows = [
    { name: 'a "b", c\r\nd', amount: '-1.5' },
    { name: '=1+1', amount: null },
    { name: '-x', amount: 7 },
  ];
  const columns = [['name', (row) => row.name] as const, ['amount', (row) => row.amount] as const] satisfies CsvColumn<
    (typeof rows)[number]
  >[];
  expect(csvOf(columns, rows)).toBe(
    ['"name","amount"', '"a ""b"", c\r\nd","-1.5"', '"\'=1+1",""', '"\'-x","7"', ''].join('\r\n'),
  );
  expect([csvTime(0), csvTime(null)]).toEqual(['1970-01-01T00:00:00.000Z', null]);
});

test('a higher smallest payout that is announced stands beside the one in force', () => {
  const payouts = { minimum: '100000000', interval_seconds: 60, paused: false, pause_note: null };
  expect(minimumText({ payouts, now_millis: 0 })).toBe('1.00 coins; you can set a higher one on the miner’s page');
  const minimum_changes = [{ minimum: '500000000', from_millis: 7_200_000 }];
  expect(minimumText({ payouts: { ...payouts, minimum_changes }, now_millis: 0 })).toMatch(
    /^1.00 coins; 5.00 coins in about 2.0 h/,
  );
});

test.each([
  ['feePplns', 10_000, '--fee-pplns', '1.00 %'],
  ['payoutMin', '150000000', '--payout-min', '1.50 coins'],
  ['payoutInterval', 3_600_000, '--payout-interval', '60 min'],
  ['window', '8000', '--window', '8 expected blocks'],
  ['webBind', { host: '::1', port: 80 }, '--web-bind', '[::1]:80'],
  ['soloListen', 'off', '--solo-listen', 'off'],
  ['maxConnections', 10_000, '--max-connections', '10,000'],
  ['payoutsPaused', false, '--payouts-paused', 'no'],
  ['allow', ['10.0.0.0/8', '192.0.2.1'], '--allow', '10.0.0.0/8, 192.0.2.1'],
  ['database', null, '--database', '–'],
  ['journalKeepSize', 16 * 2 ** 30, '--journal-keep-size', '16 GiB'],
  ['logFileSize', 1_000, '--log-file-size', '1,000 B'],
])('the option %s of %j is written as on the command line, with its unit', (name, value, written, text) => {
  expect([optionName(name), optionValue(name, value)]).toEqual([written, text]);
});

test('an answer that breaks off is a pool that does not answer, and no status 200', async () => {
  const stopped = { ok: true, status: 200, text: () => Promise.reject(new Error('the body was aborted')) };
  vi.stubGlobal('fetch', () => Promise.resolve(stopped));
  vi.stubGlobal('document', { baseURI: 'http://pool.example/' });
  try {
    await expect(read('pool')).rejects.toMatchObject({ code: 'unreachable', message: 'the pool does not answer' });
  } finally {
    vi.unstubAllGlobals();
  }
});
