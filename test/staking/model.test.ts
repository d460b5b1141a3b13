/**
 * The ledger against the model (model.ts): epochs of 24 cuts with random operations, most of them possible, and random attendance. At every cut both
 * agree on each operation's outcome, committee, payments, burns, every position and every validator; the value equation holds at each.
 * `npm run bench -- staking-model` runs many seeds on all cores.
 */
import { expect, test } from 'vitest';
import { count, seed } from '../level.ts';
import { MOST_VALIDATORS, runModel } from './model-run.ts';
import { OPERATIONS } from './random-operations.ts';

test('thousands of epochs agree with the rules, operation by operation and to the atom', () => {
  const epochs = count({ quick: 8, full: 60, deep: 3_000 });
  const { payments, outcomes } = runModel({ seed, epochs, validators: MOST_VALIDATORS });
  expect(payments).toBeGreaterThan(epochs);
  if (epochs < 60) return;
  // The random operations met everything that can happen to them.
  for (const name of OPERATIONS) expect([...outcomes.keys()]).toContain(`${name} executed`);
});

test('a chain that began with one validator', () => {
  runModel({ seed: seed + 1, epochs: count({ quick: 4, full: 20, deep: 300 }), validators: 1 });
});
