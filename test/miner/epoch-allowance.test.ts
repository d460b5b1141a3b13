/** Which epochs a pool may have built: the allowance, plausible heights, and what a restart and a sleep change. */
import { expect, test } from 'vitest';
import {
  EpochAllowance,
  type EpochWish,
  type Moment,
  type SavedAllowance,
} from '../../miner/client/epoch-allowance.ts';
import { readEpochs, writeEpochs } from '../../miner/devices/epoch-file.ts';
import { POW_EPOCH_CUTS } from '../../protocol/network.ts';
import { temporaryDirectory } from '../temporary.ts';

const HOUR = 3_600_000;
const at = (millis: number, wall = millis): Moment => ({ steady: millis, wall });
const wish = (epoch: number, pool = 'a', within = 5): EpochWish => ({
  pool,
  epoch,
  height: epoch * POW_EPOCH_CUTS + within,
});

test('three epochs at once, then one an hour; an epoch at hand costs nothing; another pool has an allowance of its own', () => {
  const allowance = new EpochAllowance('mainnet', at(0));
  const takes = (epoch: number, now: Moment, ready: readonly number[] = [], pool = 'a') =>
    allowance.refuses(wish(epoch, pool), ready, now) === undefined;
  // Each after an hour without a job, so that only the allowance counts.
  expect(takes(1, at(0))).toBe(true);
  expect(takes(1, at(1))).toBe(true);
  expect(allowance.allowsAhead('a', 2, [1], at(2))).toBe(true);
  expect(takes(2, at(3))).toBe(true);
  expect(allowance.allowsAhead('a', 3, [1, 2], at(4))).toBe(true);
  expect(allowance.allowsAhead('a', 4, [2, 3], at(5))).toBe(false);
  expect(allowance.allowsAhead('a', 4, [2, 3], at(HOUR + 5))).toBe(true);
  expect(takes(900, at(6), [], 'b')).toBe(true);
});

test('a chain goes on from where it was, at the pace of a chain', () => {
  const allowance = new EpochAllowance('mainnet', at(0));
  const why = (of: EpochWish, now: Moment) => allowance.refuses(of, [], now)?.message;
  expect(why(wish(7), at(0))).toBeUndefined();
  expect(why(wish(9), at(1_000))).toMatch(/cannot follow/);
  expect(why(wish(2), at(1_000))).toMatch(/cannot follow/);
  // Thirty days later the next epoch is due.
  for (let day = 1; day < 30; day++) expect(why(wish(7), at(day * 24 * HOUR))).toBeUndefined();
  expect(why(wish(8), at(30 * 24 * HOUR))).toBeUndefined();
});

test('a machine that slept for a month, or a chain that was really replaced, is no lie', () => {
  const slept = new EpochAllowance('mainnet', at(0));
  expect(slept.refuses(wish(7), [], at(0))).toBeUndefined();
  expect(slept.refuses(wish(8), [], at(1_000, 31 * 24 * HOUR))).toBeUndefined();
  const replaced = new EpochAllowance('mainnet', at(0));
  expect(replaced.refuses(wish(7), [], at(0))).toBeUndefined();
  expect(replaced.refuses(wish(0), [], at(HOUR - 1))).toBeDefined();
  expect(replaced.refuses(wish(0), [], at(HOUR))).toBeUndefined();
});

test('a restart gives no new allowance, but the epoch at hand is free', async () => {
  const directory = temporaryDirectory();
  let written: Promise<void> = Promise.resolve();
  const open = (now: Moment, saved: SavedAllowance) =>
    new EpochAllowance('testnet', now, saved, (pools) => {
      written = written.then(() => writeEpochs(directory, 'testnet', pools));
    });
  const first = open(at(0, 1e12), readEpochs(directory, 'testnet'));
  expect(first.refuses(wish(1), [], at(0, 1e12))).toBeUndefined();
  for (const ahead of [2, 3]) expect(first.allowsAhead('a', ahead, [], at(0, 1e12))).toBe(true);
  await written;
  const restart = (wall: number) => open(at(0, wall), readEpochs(directory, 'testnet'));
  for (let i = 0; i < 5; i++) {
    const again = restart(1e12 + 1_000);
    expect(again.refuses(wish(3), [], at(5, 1e12 + 1_005))).toBeUndefined();
    expect(again.refuses(wish(9), [], at(6, 1e12 + 1_006))).toBeDefined();
  }
  expect(restart(1e12 + HOUR).refuses(wish(9), [], at(0, 1e12 + HOUR))).toBeUndefined();
  // A clock that was set back since refills nothing and breaks nothing.
  expect(restart(1e11).refuses(wish(20), [], at(0, 1e11))).toBeDefined();
  await written;
});

test('a development chain may change its epoch every few seconds, to any height', () => {
  const allowance = new EpochAllowance('development', at(0));
  for (let epoch = 1; epoch <= 100; epoch++)
    expect(allowance.refuses({ pool: 'a', epoch, height: epoch }, [], at(epoch * 5_000))).toBeUndefined();
});
