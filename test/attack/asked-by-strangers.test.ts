/** Strangers that ask a validator for what they lack (consensus rule 16): together they get a part of its time, and members are answered all the same. */
import { expect, onTestFinished, test } from 'vitest';
import { MESSAGE_TYPES } from '../../node/consensus/link/message-types.ts';
import { steadyMillis } from '../../runtime/clock/clock.ts';
import { DrivenNetwork, MEMBERS } from '../consensus/driven.ts';
import { haveAt } from '../consensus/have-at.ts';
import { until } from '../until.ts';

const STRANGERS = 100;
const MOST = 32;

test('a hundred strangers that ask at once are answered as far as their common part goes, and a member after them', async () => {
  const driven = new DrivenNetwork();
  onTestFinished(() => driven.close());
  const { network } = driven;
  const answered = new Set<unknown>();
  network.carries = (from, to, bytes) => {
    if (from === 'm0' && bytes[0] === MESSAGE_TYPES.finalized) answered.add(to);
    return true;
  };
  let still: number | undefined;
  await driven.start('m0', 0, { steady: () => still ?? steadyMillis() });
  for (let member = 1; member < MEMBERS; member++) await driven.start(`m${member}`, member);
  await until(() => [...driven.running.values()].every(({ node }) => node.chain.head().height >= 2));
  // Time stands still for the first member: nothing is regained.
  still = steadyMillis();
  answered.clear();
  const bytes = haveAt(1);
  for (let i = 0; i < STRANGERS; i++) {
    network.strangers.add(`stranger ${i}`);
    network.deliver(`stranger ${i}`, 'm0', bytes);
  }
  network.deliver('m1', 'm0', bytes);
  await until(() => answered.has('m1'));
  const strangers = [...answered].filter((peer) => network.strangers.has(peer as string));
  expect(strangers.length).toBeGreaterThan(0);
  expect(strangers.length).toBeLessThanOrEqual(MOST);
});
