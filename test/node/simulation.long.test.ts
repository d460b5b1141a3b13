/** Random work and payments over many cuts: the value equation at every cut, supply adds up, equal seeds end in equal states. */
import { expect, test } from 'vitest';
import { count, seed } from '../level.ts';
import { simulate } from './simulation.ts';

test('random work and payments: the equation holds at every cut and two runs with one seed agree', async () => {
  const settings = {
    cuts: count({ full: 300, deep: 80_000 }),
    seed,
    paymentsPerCut: count({ full: 1, deep: 0.05 }),
    reopenEvery: count({ full: 100, deep: 5_000 }),
    signatures: new Map(),
  };
  const first = await simulate(settings);
  expect(await simulate(settings)).toEqual(first);
  expect(first.blocks).toBeGreaterThan(settings.cuts);
  expect(first.executed).toBeGreaterThan(settings.cuts / 100);
  if (settings.cuts > 2 * 34_560) expect(first.stakePayouts).toBe(6);
});
