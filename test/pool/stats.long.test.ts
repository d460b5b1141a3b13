import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { ShareRecord } from '../../pool/journal/journal-record.ts';
import { noteFigures, readFigures } from '../../pool/stats/figure-history.ts';
import { FOLD_DEFAULTS, foldStats, pruneStats } from '../../pool/stats/fold.ts';
import { coverage, RateBoard } from '../../pool/stats/rates.ts';
import { noteSilentWorkers } from '../../pool/stats/silence.ts';
import { newsOf } from '../../pool/webhooks/news-queue.ts';
import { FIRST_NEWS } from '../../pool/webhooks/notice-request.ts';
import { LANES } from '../../pool/webhooks/webhook-sender.ts';
import { blockRecord } from './book-records.ts';
import { account, type BooksBed, openBooks } from './books-bed.ts';
import { freshIdentity } from './fresh-identity.ts';

let books: BooksBed;
beforeAll(async () => {
  books = await openBooks();
  await books.height(0);
});
afterAll(() => books.close());

const HOUR = 3_600_000;
/** Midnight, long ago. */
const START = 19_834 * 24 * HOUR;
const share = (name: string, worker: string, work: bigint, atMillis: number): ShareRecord => ({
  kind: 'share',
  service: 'pplns',
  account: account(name),
  worker,
  work,
  atMillis,
  identity: freshIdentity(),
});

test('a window counts its oldest bucket by the part it still covers', () => {
  expect(coverage(60, 100, 100 * 60 + 30)).toBe(1);
  expect(coverage(60, 90, 100 * 60 + 30)).toBe(0.5);
  expect(coverage(60, 89, 100 * 60 + 30)).toBe(0);
  expect(coverage(60, 101, 100 * 60 + 30)).toBe(0);
  const covered = Array.from({ length: 40 }, (_, i) => coverage(3600, i, 30 * 3600 + 900)).reduce((a, b) => a + b, 0);
  expect(covered).toBe(24 + 0.75);
});

test('a steady miner shows its rate over all windows, charts add up, and a new process sees the same', async () => {
  // 600 hashes every 10 s are 60 H/s; the other account has half of that on two workers.
  const records: ShareRecord[] = [];
  for (let at = START; at < START + 26 * HOUR; at += 60_000) {
    records.push(share('a', 'one', 3_600n, at));
    records.push(share('b', 'x', 900n, at + 1), share('b', 'y', 900n, at + 2));
  }
  const step = 300;
  for (let i = 0; i < records.length; i += step) {
    await books.take(records.slice(i, i + step));
    const now = records[Math.min(records.length, i + step) - 1]!.atMillis;
    if ((i / step) % 3 === 0) await books.fenced((transaction) => foldStats(transaction, now));
  }
  const end = START + 26 * HOUR;
  await books.fenced((transaction) => foldStats(transaction, end));
  const board = new RateBoard({ sql: books.sql, now: () => end - 1 });
  await board.refresh();
  const ids = new Map(
    (await books.sql<{ id: number; payload: Buffer }[]>`select id, payload from accounts`).map((row) => [
      row.payload.toString('hex'),
      row.id,
    ]),
  );
  const idOf = (name: string) => ids.get(Buffer.from(account(name)).toString('hex'))!;
  for (const window of ['tenMinutes', 'hour', 'day'] as const) {
    expect(board.account(idOf('a'))[window]).toBeCloseTo(60, 0);
    expect(board.account(idOf('b'))[window]).toBeCloseTo(30, 0);
    expect(board.service(0)[window]).toBeCloseTo(90, 0);
  }
  expect(board.service(0)).toMatchObject({ workers: 3, accounts: 2 });
  expect(board.ranking.map((row) => row.accountId)).toEqual([idOf('a'), idOf('b')]);
  expect(board.ranking[1]?.workers).toBe(2);
  // Workers that were silent for longer than ten minutes are not counted, though they worked in the last hour.
  const later = new RateBoard({ sql: books.sql, now: () => end + 40 * 60_000 });
  await later.refresh();
  expect(later.service(0)).toMatchObject({ workers: 0, accounts: 0 });
  expect(later.service(0).hour).toBeGreaterThan(0);
  // The last hour is not over long enough to be in the charts; all others are, to the hash.
  const [days] = await books.sql<{ work: string }[]>`select sum(h)::text as work
    from account_days, unnest(hours) as h where account_id = ${idOf('b')}`;
  expect(days?.work).toBe(String(25n * 60n * 1_800n));
  const [history] = await books.sql<{ work: string; shares: bigint }[]>`select sum(work)::text as work,
    sum(shares)::bigint as shares from pool_history where tier = 600`;
  expect(history).toEqual({ work: String(26n * 60n * 5_400n), shares: BigInt(records.length) });
  const [kept] = await books.sql<{ n: number }[]>`select count(*)::int as n from stats_recent`;
  expect(kept?.n).toBeLessThan(140);
});

test('work that comes late goes where it belongs; old rows go when charts no longer reach them', async () => {
  const late = START + 2 * HOUR + 5;
  const now = START + 26 * HOUR + 1_000;
  const before = await chart();
  await books.take([share('a', 'one', 77n, late), share('a', 'one', 5n, now + 400 * HOUR)]);
  await books.fenced((transaction) => foldStats(transaction, now));
  const after = await chart();
  expect(after[2]! - before[2]!).toBe(77);
  expect(after.filter((work, i) => work !== before[i])).toHaveLength(1);
  await books.fenced((transaction) => pruneStats(transaction, FOLD_DEFAULTS, now + 89 * 24 * HOUR));
  expect((await books.sql`select 1 from worker_days`).length).toBeGreaterThan(0);
  await books.fenced((transaction) => pruneStats(transaction, FOLD_DEFAULTS, now + 92 * 24 * HOUR));
  expect(await books.sql`select 1 from worker_days`).toHaveLength(0);
  expect((await books.sql`select 1 from pool_history where tier = 3600`).length).toBeGreaterThan(0);

  async function chart(): Promise<number[]> {
    const rows = await books.sql<
      { hours: string[] }[]
    >`select hours from worker_days d join workers w on w.id = d.worker_id
      where w.name = 'one' order by day`;
    return rows.flatMap((row) => row.hours.map(Number));
  }
});

/** Nothing was taken of these workers for an hour. */
const passed = (where = 'true') =>
  books.sql`update workers w set last_taken_at = now() - interval '1 hour' where ${books.sql.unsafe(where)}`;

test('a worker that stops while others go on is reported once, and again after it came back', async () => {
  const late = START + 30 * HOUR;
  const silent = () => books.fenced((transaction) => noteSilentWorkers(transaction, 600_000));
  await passed();
  await books.take([share('a', 'one', 1n, late)]);
  // Anybody may have begun them today.
  expect(await silent()).toBe(0);
  await books.sql`update workers set since = now() - interval '25 hours'`;
  await passed();
  expect(await silent()).toBe(0);
  await books.take([share('a', 'one', 1n, late)]);
  expect(await silent()).toBe(2);
  expect(await silent()).toBe(0);
  await books.take([share('b', 'x', 1n, late)]);
  await passed("w.name = 'x'");
  await books.take([share('a', 'one', 1n, late)]);
  expect(await silent()).toBe(1);
  const events = await books.sql<{ data: { worker: string } }[]>`select data from events where kind = 'worker_silent'
    order by id`;
  expect(events.map((event) => event.data.worker).sort()).toEqual(['x', 'x', 'y']);
  const back = await books.sql<{ data: { worker: string } }[]>`select data from events where kind = 'worker_back'`;
  expect(back.map((event) => event.data.worker)).toEqual(['x']);
});

test.each([
  ['ahead', HOUR / 2],
  ['a year ahead', 365 * 24 * HOUR],
  ['behind', -HOUR / 2],
  ['a year behind', -365 * 24 * HOUR],
])(
  'a front end whose clock is %s makes no worker silent, its own or of others, and hides none that is',
  async (_, off) => {
    const silent = () => books.fenced((transaction) => noteSilentWorkers(transaction, 600_000));
    const news = async () =>
      (await books.sql`select 1 from events where kind in ('worker_silent', 'worker_back')`).length;
    const now = Date.now();
    const round = async () => {
      await books.take([share('a', 'one', 1n, now), share('b', 'x', 1n, now), share('c', `off ${off}`, 1n, now + off)]);
      await books.sql`update workers set since = now() - interval '25 hours'`;
      return await silent();
    };
    expect(await round()).toBe(0);
    const before = await news();
    // It was told again and again: silent with each look, and back with each share.
    for (let i = 0; i < 3; i++) expect(await round()).toBe(0);
    expect(await news()).toBe(before);
    await passed(`w.name in ('x', 'off ${off}')`);
    expect(await silent()).toBe(2);
    // The figures of the next test are of its own shares.
    await books.sql`delete from stats_pending`;
  },
);

test('figures of the operator: each time has its worst and what was refused in it, also from one accountant to the next, and rows are bounded', async () => {
  const { sql } = books;
  // Far from the times of the other tests; the first minute of an hour.
  const start = START + 1000 * 24 * HOUR;
  const note = (
    minutes: number,
    head: number | undefined,
    spendable: bigint | undefined,
    connections: Readonly<Record<string, number>> = {},
  ) =>
    books.fenced((transaction) =>
      noteFigures(
        transaction,
        { head, spendable, connections: new Map(Object.entries(connections)) },
        start + minutes * 60_000,
      ),
    );
  const refuse = (result: string, count: number) =>
    sql`insert into refused_shares as r values (${result}, ${count}) on conflict (result) do update set count = r.count + ${count}`;
  const height = 100;
  await sql`insert into settings values ('chain_height', ${String(height)}) on conflict (name) do update set value = excluded.value`;
  await refuse('unknown_job', 1_000);
  await note(0, height, 50n);
  await books.take([share('a', 'one', 1n, start + 61_000)]);
  await books.fenced((transaction) => foldStats(transaction, start + 65_000));
  await refuse('unknown_job', 2);
  await note(1, height + 7, 40n, { one: 300, two: 5 });
  await refuse('duplicate_share', 3);
  await note(1.5, height + 1, undefined, { one: 20, 'a/b': 0 });
  // Nobody keeps the books for three minutes; what is refused meanwhile is not lost.
  await refuse('unknown_job', 4);
  await note(5, undefined, 90n);
  const minute = start / 60_000;
  const read = (tier: 60 | 600 | 3600, first: number) => readFigures(sql, tier, first);
  const empty = { accepted: 0, payoutsOpen: 0, frontEnds: [] };
  const frontEnds = [
    { name: 'a/b', connections: 0 },
    { name: 'one', connections: 20 },
    { name: 'two', connections: 5 },
  ];
  expect(await read(60, minute + 1)).toEqual([
    {
      ...empty,
      bucket: minute + 1,
      accepted: 1,
      refused: [
        { result: 'duplicate_share', count: 3 },
        { result: 'unknown_job', count: 2 },
      ],
      booksBehind: 7,
      walletSpendable: 40n,
      frontEnds,
    },
    {
      ...empty,
      bucket: minute + 5,
      refused: [{ result: 'unknown_job', count: 4 }],
      booksBehind: null,
      walletSpendable: 90n,
    },
  ]);
  // In the first time of all the totals may be years old.
  expect((await read(60, minute))[0]).toMatchObject({ bucket: minute, refused: [], booksBehind: 0 });
  await note(70, height, 60n);
  const hour = start / HOUR;
  const hours = [
    { ...empty, bucket: hour, accepted: 1, refused: [], booksBehind: 7, walletSpendable: 40n, frontEnds },
    { ...empty, bucket: hour + 1, refused: [], booksBehind: 0, walletSpendable: 60n },
  ];
  expect(await read(3600, hour)).toEqual(hours);
  const rows = async () =>
    (
      await sql<{ tier: number; n: number }[]>`select tier, count(distinct bucket)::int as n from figure_history
      group by tier order by tier`
    ).map(({ tier, n }) => [tier, n]);
  expect(await rows()).toEqual([
    [60, 4],
    [600, 2],
  ]);
  const prune = (millis: number) =>
    books.fenced((transaction) => pruneStats(transaction, FOLD_DEFAULTS, start + millis));
  await prune(2.1 * HOUR);
  expect(await rows()).toEqual([
    [60, 1],
    [600, 2],
  ]);
  expect(await read(3600, hour)).toEqual(hours);
  await prune(92 * 24 * HOUR);
  expect(await rows()).toEqual([]);
});

test('an account dates from its first share, however late the books take it, and never from the future', async () => {
  const dates = async (name: string) => {
    const [row] = await books.sql<{ at: Date; now: Date }[]>`select created_at as at, now() from accounts
      where payload = ${Buffer.from(account(name))}`;
    return row as { at: Date; now: Date };
  };
  expect((await dates('b')).at.getTime()).toBe(START);
  await books.take([share('early clock', 'one', 1n, Date.now() + 48 * HOUR)]);
  const { at, now } = await dates('early clock');
  expect(at.getTime()).toBeLessThanOrEqual(now.getTime());
});

test('docs/notices.md has every field of every message of a webhook, as blocks, payouts and workers make them', async () => {
  const { sql } = books;
  const [last] = await sql<{ id: bigint }[]>`select coalesce(max(id), 0) as id from events`;
  const now = Date.now();
  const blocks = ['paid', 'held'].map((name) => blockRecord('pplns', `${name} block`, 1, 1));
  await books.take([share('silent', 'gone', 1n, now), ...blocks]);
  const [paid, held] = blocks.map(({ blockId }) => Buffer.from(blockId));
  await sql`update blocks set state = 'paid', reward = 1, reward_transaction = block_id, reward_output = 0
    where block_id = ${paid as Buffer}`;
  await sql`update blocks set state = 'held', claimed_reward = 1, reason = 'too much' where block_id = ${held as Buffer}`;
  const [payout] = await sql<{ id: string }[]>`insert into payouts (id, state) values (gen_random_uuid(), 'submitting')
    returning id`;
  const id = payout?.id as string;
  await sql`insert into payout_items select ${id}, account_id, 1 from blocks limit 1`;
  await sql`update payouts set needs_person = 'the wallet refused it' where id = ${id}`;
  await sql`update payouts set state = 'submitted', transaction_id = ${Buffer.alloc(48)}, fee = 1 where id = ${id}`;
  await sql`update payouts set state = 'finalized', final_height = 1 where id = ${id}`;
  const silent = () => books.fenced((transaction) => noteSilentWorkers(transaction, 600_000));
  await sql`update workers set since = now() - interval '25 hours'`;
  await passed("w.name = 'gone'");
  await books.take([share('b', 'x', 1n, now)]);
  await silent();
  await books.take([share('silent', 'gone', 1n, now)]);
  await silent();

  const events = await sql<{ kind: string; data: Record<string, unknown> }[]>`select kind, data from events
    where id > ${last?.id as bigint} order by id`;
  const toOperator: readonly string[] = Object.values(LANES).flat();
  const fields = (data: object) => Object.keys(data).sort();
  const sent = new Map<string, { operator?: string[]; miner?: string[] }>([[FIRST_NEWS, { miner: [] }]]);
  for (const { kind, data } of events) {
    const [news] = newsOf({ id: 0, atMillis: 0, kind, data });
    const operator = toOperator.includes(kind) ? { operator: fields(data) } : {};
    const miner = news === undefined ? {} : { miner: fields(news.data) };
    if (news !== undefined || toOperator.includes(kind)) sent.set(kind, { ...operator, ...miner });
  }
  expect([...sent.keys()]).toEqual(expect.arrayContaining([...toOperator, 'payout_final', 'worker_back']));
  const text = readFileSync(new URL('../../docs/notices.md', import.meta.url), 'utf8').split('## Fields of `data`')[1];
  const named = (cell = '') => [...cell.matchAll(/`(\w+)`/g)].map(([, name]) => name as string);
  const rows = [...(text ?? '').split('\n## ')[0]!.matchAll(/^\| `(\w+)` \|([^|]*)\|([^|]*)\|$/gm)];
  const documented = new Map(
    rows.map(([, kind, operator, miner]) => [
      kind,
      {
        ...(operator?.includes('not sent') ? {} : { operator: named(operator).sort() }),
        ...(miner?.includes('not sent') ? {} : { miner: named(miner).sort() }),
      },
    ]),
  );
  expect(documented).toEqual(sent);
  // What a message of a payout names in turn.
  expect(text).toContain('`recipients` is a list of `{"address", "amount"}`');
  const [recipients] = events.flatMap(({ data }) => (data.recipients as object[] | undefined) ?? []);
  expect(fields(recipients as object)).toEqual(['address', 'amount']);
});
