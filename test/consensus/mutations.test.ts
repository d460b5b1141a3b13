/** The simulator is worth what it finds: the engine with one decision made wrongly fails, for every decision that somebody got wrong before. */
import { expect, test } from 'vitest';
import { useNativeSha384 } from '../../runtime/native/native-sha384.ts';
import { MUTATIONS, mutated } from './mutations.ts';
import { simulate } from './simulation.ts';

useNativeSha384();

const MOST_RUNS = 500;

test.each(Object.entries(MUTATIONS))('%s is found', (name, { finds }) => {
  const rules = mutated(name);
  let found: string | undefined;
  let seed = 0;
  for (; seed < MOST_RUNS && found === undefined; seed++) {
    const { failure } = simulate(seed, { rules });
    if (failure !== undefined && finds.test(failure)) found = failure;
  }
  console.log(`${name}: found after ${seed} runs, ${found}`);
  expect(found).toBeDefined();
});
