/** An unread page is never a lie: workers that a stranger invents, a busy pool and failing answers make no miner accuse an honest pool, and cost it no place in what it reads. */
import { expect, test } from 'vitest';
import { PoolSilence } from '../../protocol/books/pool-silence.ts';
import { ALL, Played, PlayedPool, SLICE_MILLIS } from '../miner/played-pool.ts';

const busy = (seconds: number) => new PoolSilence('status 429', { status: 429, retryAfterMillis: seconds * 1_000 });

/** Slices that close while the pool answers as `answers` says. */
async function mined(pool: PlayedPool, slices: number, read: (url: string) => Promise<unknown>) {
  const played = new Played(pool);
  Object.assign(pool, { read });
  played.restart(played.watch.save());
  await played.watch.check().catch(() => undefined);
  for (let i = 0; i < slices; i++) {
    for (let minute = 0; minute < SLICE_MILLIS / 60_000; minute++) {
      played.now += 60_000;
      played.share(1_000n);
      await played.watch.check().catch(() => undefined);
    }
    await played.slice(ALL).catch(() => undefined);
  }
  return played;
}

test('a pool that answers 429 for a day is not accused, is asked no more often than it says, and is compared afterwards', async () => {
  const pool = new PlayedPool();
  const honest = pool.read;
  let [isBusy, asked] = [false, 0];
  const played: Played = await mined(pool, 2, async (url) => {
    if (!url.includes('receipt')) throw busy(1);
    asked++;
    if (isBusy) throw busy(300);
    return honest(url);
  });
  const compared = played.watch.compared;
  expect(compared).toBeGreaterThan(0);
  isBusy = true;
  asked = 0;
  for (let i = 0; i < 144; i++) {
    for (let minute = 0; minute < 10; minute++) {
      played.now += 60_000;
      played.share(1_000n);
      await played.watch.check().catch(() => undefined);
    }
    await played.slice(ALL).catch(() => undefined);
  }
  expect(played.kinds()).toEqual([]);
  expect(played.warnings.join()).toContain('CANNOT BE CHECKED receipts');
  // Once in five minutes.
  expect(asked).toBeLessThanOrEqual(24 * 12 + 2);
  isBusy = false;
  played.now += 3_600_000;
  for (let round = 0; round < 40; round++) await played.watch.check().catch(() => undefined);
  expect(played.kinds()).toEqual([]);
  expect(played.watch.compared).toBe(146);
});

test('a reader whose every second page fails goes on where it was, however many pages there are', async () => {
  const pool = new PlayedPool();
  const honest = pool.read;
  let [count, isFailing] = [0, false];
  const cursors: string[] = [];
  const played: Played = await mined(pool, 2, async (url) => {
    if (!url.includes('receipt')) return honest(url);
    if (isFailing && ++count % 2 === 0) throw busy(1);
    if (isFailing) cursors.push(new URL(url).search);
    return honest(url);
  });
  // Two hundred slices while the miner cannot read: 25 pages of 8.
  for (let i = 0; i < 200; i++) {
    played.now += SLICE_MILLIS / 10;
    pool.accept(1n, played.now);
    pool.close(ALL, played.now);
  }
  isFailing = true;
  const before = played.watch.compared;
  for (let round = 0; round < 60; round++) {
    played.now += 60_000;
    await played.watch.check().catch(() => undefined);
  }
  expect(played.watch.compared - before).toBeGreaterThanOrEqual(200);
  expect(new Set(cursors).size).toBeGreaterThanOrEqual(25);
  expect(played.kinds()).toEqual([]);
});

test('a miner asks for its own worker alone, and a pool of an earlier release for all', async () => {
  const asked: string[] = [];
  const pool = new PlayedPool();
  const honest = pool.read;
  await mined(pool, 3, async (url) => {
    if (url.includes('receipt')) asked.push(url);
    return honest(url);
  });
  expect(asked.length).toBeGreaterThan(3);
  expect(asked.every((url) => url.includes('/receipt-sheets?') && url.includes('worker=w'))).toBe(true);
  const earlier = new PlayedPool();
  const plain = earlier.read;
  const played = await mined(earlier, 3, async (url) => {
    if (url.includes('/receipt-sheets')) throw new PoolSilence('status 404', { status: 404 });
    return plain(url);
  });
  expect(played.watch.compared).toBe(3);
  expect(played.kinds()).toEqual([]);
});
