/** A clock of the miner's machine that is set back and forth accuses no honest pool: what lasts is measured by a steady clock, and dates are those of the ledger. */
import { expect, test } from 'vitest';
import type { BooksSources } from '../../protocol/books/books-evidence.ts';
import { ALL, mine, Played, PlayedPool, SLICE_MILLIS, START_MILLIS } from './played-pool.ts';

const HOUR = 3_600_000;
const from = { from_slice: 0, slice_cuts: 240, window_thousandths: 8000, fee_ppm: 0 };

/** A miner that is off for 30 hours, in which the pool keeps mining for others and drops receipts older than a day. */
async function offForLong(played: Played, pool: PlayedPool, clock: number): Promise<void> {
  await mine(played, 3);
  for (let i = 0; i < 3; i++) played.share(1_000n);
  const receipts = pool.close(ALL, played.now);
  for (const receipt of receipts) played.watch.received(receipt);
  for (let i = 0; i < 3; i++) played.share(1_000n);
  const saved = played.watch.save();
  for (let i = 0; i < 180; i++) {
    played.now += SLICE_MILLIS;
    pool.accept(1n, played.now, 'other');
    pool.close(ALL, played.now);
  }
  pool.answers.splice(0, pool.answers.length - 144);
  played.clock = clock;
  played.restart(saved);
  for (let i = 0; i < 10; i++) {
    played.now += 60_000;
    await played.watch.check();
  }
  for (let i = 0; i < 4; i++) {
    played.now += SLICE_MILLIS;
    await played.slice(ALL);
  }
}

test.each([0, -24, -36, -240, 24])(
  'a miner was off for 30 hours, and its clock is then %i hours ahead',
  async (hours) => {
    // Cuts take 2.5 s, 240 of them are a slice.
    const dateOf = (height: number) => START_MILLIS + (height - 11 * 240) * 2_500;
    let played: Played;
    const newest = () => 11 * 240 + Math.floor(played.now / 2_500);
    const node = {
      cuts: async ({ before = newest() + 1 }: { before?: number }) => ({
        cuts: [{ height: before - 1, finalized_at_millis: dateOf(before - 1) }],
      }),
    };
    const terms = { network: 'development', address: 'pool', terms: { pplns: [from], solo: [from] } };
    const pool = new PlayedPool({ lists: (url) => (url.pathname.endsWith('/terms') ? terms : undefined) });
    played = new Played(pool, node as unknown as BooksSources['node']);
    await offForLong(played, pool, hours * HOUR);
    // The records of a played pool are on no ledger.
    expect(played.kinds().filter((kind) => kind !== 'ledger_other')).toEqual([]);
  },
);

test.each([0, -36, -240, 24])('the same without a node, and %i hours', async (hours) => {
  const pool = new PlayedPool();
  const played = new Played(pool);
  await offForLong(played, pool, hours * HOUR);
  expect(played.kinds()).toEqual([]);
});

test('receipts of many slices that came just before the clock was set forth are not too old for an answer of before', async () => {
  let isStale = false;
  const stale = { kept_from: 11, newest: 13, through: 13, more: false, slices: [] };
  const pool = new PlayedPool({ answers: () => (isStale ? stale : undefined) });
  const played = new Played(pool);
  await mine(played, 3);
  const receipts = Array.from({ length: 14 }, () => {
    played.now += SLICE_MILLIS;
    played.share(1_000n);
    return pool.close(ALL, played.now);
  });
  for (const receipt of receipts.flat()) played.watch.received(receipt);
  isStale = true;
  played.clock = HOUR;
  await played.watch.check();
  isStale = false;
  played.now += 60_000;
  await played.watch.check();
  expect(played.kinds()).toEqual([]);
});

test('a clock set back does not hide a pool that drops receipts of a miner that asks all the time', async () => {
  const pool = new PlayedPool();
  const played = new Played(pool);
  await mine(played, 2);
  for (let i = 0; i < 8; i++) {
    played.clock = i % 2 === 0 ? 24 * HOUR : -HOUR;
    for (let minute = 0; minute < 10; minute++) {
      played.now += 60_000;
      played.share(1_000n);
      await played.watch.check();
    }
    pool.close(ALL, played.now);
    pool.answers.length = 0;
  }
  for (const _ of Array(8)) {
    played.now += SLICE_MILLIS;
    played.share(1_000n);
    await played.slice(ALL);
  }
  expect(played.kinds().length).toBeGreaterThan(0);
});
