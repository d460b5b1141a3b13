/** The simulator is worth what it finds: the engine with one decision made wrongly fails, for every decision that somebody got wrong before. */
import { expect, test } from 'vitest';
import { useNativeSha384 } from '../../runtime/native/native-sha384.ts';
import { level } from '../level.ts';
import { MUTATIONS, mutated } from './mutations.ts';
import { simulate } from './simulation.ts';

useNativeSha384();

const MOST_RUNS = 500;

test.each(Object.entries(MUTATIONS))('%s is found', (name, { finds, seed: known = 0 }) => {
  const rules = mutated(name);
  let found: string | undefined;
  const first = level === 'quick' ? known : 0;
  let seed = first;
  for (; seed < first + MOST_RUNS && found === undefined; seed++) {
    const { failure } = simulate(seed, { rules });
    if (failure !== undefined && finds.test(failure)) found = failure;
  }
  console.log(`${name}: found after ${seed - first} runs, ${found}`);
  expect(found).toBeDefined();
});
