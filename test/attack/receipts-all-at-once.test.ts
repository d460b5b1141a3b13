/** Receipts of many slices that are made at once, while an older answer is on its way, make no miner accuse an honest pool. */
import { expect, test } from 'vitest';
import { mine, Played, PlayedPool, SLICE_MILLIS } from '../miner/played-pool.ts';

test('a pool whose database was away for hours makes the receipts of all slices while a miner reads', async () => {
  const pool = new PlayedPool();
  const honest = pool.read;
  let isBack = false;
  let played: Played | undefined;
  // The answer is of before, as it is from a cache, and comes after.
  const read = async (url: string) => {
    const answer = await honest(url);
    if (!isBack || !url.includes('receipt')) return answer;
    isBack = false;
    for (let i = 0; i < 14; i++)
      for (const receipt of pool.close((_, waiting) => Math.ceil(waiting / (14 - i)), played?.now ?? 0))
        played?.watch.received(receipt);
    return answer;
  };
  Object.assign(pool, { read });
  played = new Played(pool);
  await mine(played, 3);
  for (let minute = 0; minute < (14 * SLICE_MILLIS) / 60_000; minute++) {
    played.now += 60_000;
    played.share(1_000n);
    await played.watch.check();
  }
  isBack = true;
  for (let round = 0; round < 4; round++) {
    played.now += 60_000;
    await played.watch.check();
  }
  expect(played.kinds()).toEqual([]);
  expect(played.watch.newest).toBe(pool.newest);
});
