/** Times of consensus (rules 3 and 4): nobody can hurry the chain, lost time is made up at twice the pace at most, and waits grow without bound. */
import { expect, test } from 'vitest';
import { CutDesk, nextEarliest } from '../../node/consensus/driver/cut-desk.ts';
import { beginMillis, earliestMillis, isTimely, timelyIn, timeoutMillis } from '../../node/consensus/engine/pace.ts';
import { DrivenNetwork } from './driven.ts';

test('rule 3: the least timestamp follows the epoch, and half a pace after the cut before', () => {
  // On time: 2.5 s for every cut of the epoch, however early the one before was.
  expect(earliestMillis(1_000, 0, 1)).toBe(2_500);
  expect(earliestMillis(2_500, 0, 2)).toBe(5_000);
  // Behind: twice the pace, and no more.
  expect(earliestMillis(9_000, 0, 2)).toBe(10_250);
  let stamp = 100_000;
  let number = 10;
  for (; stamp > 2_500 * number; number++) stamp = earliestMillis(stamp, 0, number + 1);
  expect(number).toBe(70);
  expect(earliestMillis(stamp, 0, number + 1)).toBe(2_500 * (number + 1));
  // An epoch's first cut has nothing to be measured by but the one before.
  expect(earliestMillis(9_000, 123, 0)).toBe(10_250);
  // All of it in proportion to the pace.
  expect(earliestMillis(90, 0, 2, 25)).toBe(103);
});

test('rule 3: a fresh proposal is voted for once it is at most a second ahead', () => {
  expect([isTimely(11_000, 10_000), isTimely(11_001, 10_000), isTimely(0, 10_000)]).toEqual([true, false, true]);
  expect([timelyIn(11_001, 10_000), timelyIn(10_000, 10_000)]).toEqual([1, 0]);
  expect([isTimely(10_100, 10_000, 250), isTimely(10_101, 10_000, 250)]).toEqual([true, false]);
});

test('rule 4: round 0 begins at the least timestamp, at the latest a pace after the commit; waits grow from round 3 on', () => {
  expect([beginMillis(12_000, 10_000), beginMillis(9_000, 10_000), beginMillis(3_700_000, 10_000)]).toEqual([
    2_000, 0, 2_500,
  ]);
  const waits = (kind: 'propose' | 'prevote') => [0, 1, 2, 3, 4, 103].map((round) => timeoutMillis(kind, round));
  expect(waits('propose')).toEqual([1_500, 1_500, 1_500, 2_250, 3_000, 77_250]);
  expect(waits('prevote')).toEqual([750, 750, 750, 1_125, 1_500, 38_625]);
  expect(timeoutMillis('precommit', 0, 250)).toBe(75);
});

test('a cut that is too early is not valid, whoever proposes it', async () => {
  const network = new DrivenNetwork();
  const { node } = await network.start('a');
  const verdicts: (string | undefined)[] = [];
  const deskOf = (cutMillis: number) =>
    new CutDesk({
      ledger: node.ledger,
      cutMillis,
      verdict: (_, __, valid, reason) => verdicts.push(valid ? 'valid' : reason),
      want: () => undefined,
      blame: () => undefined,
      lost: (error) => {
        throw error;
      },
    });
  const earliest = nextEarliest(node.ledger, 2_500);
  // Its proposer is set to another pace.
  const hurried = await deskOf(20).build(1, 0, undefined, () => earliest - 1);
  deskOf(2_500).check(hurried);
  expect(verdicts).toEqual(['it is too early']);
  await network.close();
});
