/** A worker that has no receipt of its own because thousands of names of its address did more: no accusation, and none that is lost. */
import { expect, test } from 'vitest';
import { mine, Played, PlayedPool } from '../miner/played-pool.ts';

test('a worker that is folded into (others) for some slices by the names of a stranger does not accuse the pool', async () => {
  const played = new Played(new PlayedPool({ folds: (slice) => slice === 13 || slice === 14 }));
  await mine(played, 6);
  expect(played.kinds()).toEqual([]);
});

test('a pool that signs less than it accepted of a folded worker is accused all the same', async () => {
  const played = new Played(new PlayedPool({ folds: (slice) => slice === 14, signsPart: 50n, booksPart: 50n }));
  await mine(played, 6);
  expect(played.kinds()).toContain('receipts_less');
});

test('a pool whose books lack what the receipt of the others says is accused', async () => {
  const pool: PlayedPool = new PlayedPool({
    folds: (slice) => slice === 14,
    get booksPart() {
      return pool.newest === 14 ? 0n : 100n;
    },
  });
  const played = new Played(pool);
  await mine(played, 6);
  expect(played.kinds()).toEqual(['books_less']);
});
