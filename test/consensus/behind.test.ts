/** A member that is behind, and a neighbour that brings it the cuts it missed as slowly as it likes (consensus rule 17). */
import { expect, test } from 'vitest';
import type { Effect } from '../../node/consensus/engine/effects.ts';
import { tickMillis } from '../../node/consensus/engine/pace.ts';
import { PRECOMMIT } from '../../node/consensus/engine/votes.ts';
import { BenchMember, committeeOf, cutNamed, HEIGHT, vote } from './bench-member.ts';

const committee = committeeOf(4);
const SELF = 3;

const next = (member: BenchMember) => {
  const { height } = member.state;
  const cut = cutNamed(`cut ${height}`);
  const votes = [0, 1, 2].map((each) => vote(PRECOMMIT, 0, each, cut, height));
  const last = { proof: { kind: PRECOMMIT, height, round: 0, cut, votes } as const, committee };
  member.feed({ type: 'height', height: height + 1, committee, self: SELF, last });
};

const asksSome = (effects: readonly Effect[]): boolean =>
  effects.some((effect) => effect.do === 'send' && effect.to === 'some' && effect.message.type === 'have');

/** Milliseconds until it has so many cuts. Who brought the last one is asked for the next at once; a tick may ask others. */
function caughtUp(cuts: number, slow: number, quick: number): number {
  const member = new BenchMember(SELF, 4, undefined, 0);
  let now = 0;
  /** When the next cut comes. */
  let due = slow;
  let isQuick = false;
  for (let ticks = 1; member.state.height < HEIGHT + cuts; ticks++) {
    for (; due <= ticks * tickMillis(); due = now + (isQuick ? quick : slow)) {
      now = due;
      next(member);
    }
    now = ticks * tickMillis();
    if (!asksSome(member.feed({ type: 'tick' }))) continue;
    isQuick = true;
    due = Math.min(due, now + quick);
  }
  return now;
}

test('a neighbour that brings missed cuts one in each tick does not keep others from being asked', () => {
  const [slow, quick] = [tickMillis() - 1, 10];
  expect(caughtUp(1_000, quick, quick)).toBeLessThan(12_000);
  expect(caughtUp(1_000, slow, quick)).toBeLessThan(15_000);
});

test('at the tip a height lasts, and nobody is asked because of it', () => {
  const member = new BenchMember(SELF, 4, undefined, 0);
  const asks: boolean[] = [];
  for (let cuts = 0; cuts < 20; cuts++) {
    next(member);
    // Rule 3: at least two and a half ticks, so that two of them never begin a height each.
    for (let tick = 0; tick < 2; tick++) asks.push(asksSome(member.feed({ type: 'tick' })));
  }
  // As before: at the second tick of the same step.
  expect(asks).toEqual(asks.map((_, i) => i % 2 === 1));
});
