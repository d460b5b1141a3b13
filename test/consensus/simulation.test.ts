/**
 * Committees of 4 to 10 members in a simulated world: loss, delay, repetition, reordering, partitions, crashes before every effect with restart from the log, clocks an hour off,
 * committees that change, and liars with less than a third of the stake. A seed is a run: SVC_CONSENSUS_SEED=N repeats one.
 */
import { expect, test } from 'vitest';
import { useNativeSha384 } from '../../runtime/native/native-sha384.ts';
import { count, seed } from '../level.ts';
import { hurriedOf, scenarioOf } from './scenario.ts';
import { type Outcome, simulate } from './simulation.ts';

useNativeSha384();

const RUNS = count({ quick: 50, full: 500, deep: 100_000 });
const named = process.env.SVC_CONSENSUS_SEED;
const first = named === undefined ? seed : Number(named);

test('one cut per height, no second vote, and progress once the network heals', () => {
  const failed: string[] = [];
  const worst = new Map<string, Outcome>();
  const keep = (what: string, outcome: Outcome, of: (outcome: Outcome) => number) => {
    const before = worst.get(what);
    if (before === undefined || of(outcome) > of(before)) worst.set(what, outcome);
  };
  let events = 0;
  let restarts = 0;
  const began = process.cpuUsage();
  for (let i = 0; i < (named === undefined ? RUNS : 1); i++) {
    const outcome = simulate(first + i);
    events += outcome.events;
    restarts += outcome.restarts;
    if (outcome.failure !== undefined && failed.length < 20) failed.push(`seed ${outcome.seed}: ${outcome.failure}`);
    keep('rounds', outcome, ({ highestRound }) => highestRound);
    if (scenarioOf(outcome.seed).mustProgress) keep('recovery', outcome, ({ recoveryMillis }) => recoveryMillis);
  }
  const { user, system } = process.cpuUsage(began);
  const [rounds, recovery] = [worst.get('rounds'), worst.get('recovery')];
  console.log(
    `consensus: ${RUNS} runs from seed ${first}, ${events} events (${Math.round(events / ((user + system) / 1e6))} a second), ${restarts} restarts; ` +
      `most rounds ${rounds?.highestRound} (seed ${rounds?.seed}), slowest recovery ${recovery?.recoveryMillis} ms (seed ${recovery?.seed})`,
  );
  expect(failed).toEqual([]);
});

test('a seed is a run: the same twice', () => {
  for (const again of [3, 11, 42]) expect(simulate(again)).toEqual(simulate(again));
});

test('liars whose votes call forth each other’s do not keep a run from ending', () => {
  expect(simulate(1_165_016).events).toBeLessThan(200_000);
});

test('a liar hurries a few honest members from round to round while the network is parted: once it heals, the others need not go the same way', () => {
  for (let chosen = 0; chosen < 3; chosen++) {
    const { failure, highestRound, recoveryMillis } = simulate(chosen, { scenario: hurriedOf(chosen) });
    expect({ failure, isNear: highestRound < 10, isSoon: recoveryMillis < 60_000 }).toEqual({
      failure: undefined,
      isNear: true,
      isSoon: true,
    });
  }
});

test('a crash between prevote and precommit does not leave a log that has the second alone', () => {
  // Stakes 10, 8 and 3 of honest members that all are needed, and 10 of a liar. A member whose prevote is lost for good holds up the two others.
  expect(simulate(52_643).failure).toBeUndefined();
});

test('a power cut of all loses the votes with which some went on: the one that stayed behind follows them', () => {
  // Stakes 8, 15 and 3 of honest members and 10 of a liar, which does not send its votes again. The two that went on are less than a third.
  expect(simulate(20_300_032).failure).toBeUndefined();
});
