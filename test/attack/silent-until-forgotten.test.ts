/** A pool that does not answer until it keeps no receipts of the time any more is not accused, and its miner is told how much was never shown. */
import { expect, test } from 'vitest';
import { PoolSilence } from '../../protocol/books/pool-silence.ts';
import { ALL, mine, Played, PlayedPool, SLICE_MILLIS } from '../miner/played-pool.ts';

test('work of a day without answers, whose receipts are gone then, is named to the user', async () => {
  const pool = new PlayedPool();
  const honest = pool.read;
  let isSilent = false;
  Object.assign(pool, {
    read: async (url: string) => {
      if (isSilent || !url.includes('receipt')) throw new PoolSilence('status 503', { status: 503 });
      return honest(url);
    },
  });
  const played = new Played(pool);
  await mine(played, 3);
  isSilent = true;
  for (let slice = 0; slice < 150; slice++) {
    played.now += SLICE_MILLIS;
    played.share(1_000n);
    await played.watch.check().catch(() => undefined);
  }
  // Receipts are kept for a day: only those of the newest slice are there.
  isSilent = false;
  pool.newest += 150;
  pool.close(ALL, played.now);
  pool.answers.splice(0, pool.answers.length - 1);
  for (let round = 0; round < 3; round++) {
    played.now += 60_000;
    await played.watch.check();
  }
  expect(played.kinds()).toEqual([]);
  expect(played.warnings.filter((text) => text.includes('WAS NEVER SHOWN'))).toHaveLength(1);
});
