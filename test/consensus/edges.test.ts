/** The engine at its edges: what may be signed once is not signed twice, what is late or from no member counts nothing, and held-back votes are the own ones alone. */
import { expect, test } from 'vitest';
import type { Event } from '../../node/consensus/engine/effects.ts';
import { step } from '../../node/consensus/engine/engine.ts';
import { listenFirst, listenOn } from '../../node/consensus/engine/listening.ts';
import { RULES } from '../../node/consensus/engine/rules.ts';
import { type ConsensusState, createState, stepNumber } from '../../node/consensus/engine/state.ts';
import { isProof, NIL, PRECOMMIT, PREVOTE, type Proof } from '../../node/consensus/engine/votes.ts';
import { mayLeave } from '../../node/consensus/one-signer/own-messages.ts';
import { CUT, committee, HEIGHT, vote } from './locked-member.ts';

const SELF = 1;
const CUT_BYTES = Uint8Array.of(7);
const begun = (): ConsensusState => {
  const state = createState(HEIGHT, committee, SELF);
  step(state, { type: 'begin' });
  return state;
};
const timeout = (kind: 'propose' | 'prevote' | 'precommit', round: number, height = HEIGHT): Event => ({
  type: 'timeout',
  kind,
  height,
  round,
});
const signedBy = (state: ConsensusState, event: Event): string[] =>
  step(state, event).flatMap((effect) =>
    effect.do === 'sign' && effect.message.type === 'vote'
      ? [`${effect.message.vote.kind} in ${effect.message.vote.round}`]
      : [],
  );

test('a step at or below the last signed one is not signed again, and the one after it is', () => {
  const nilVotes = (state: ConsensusState) => {
    for (const member of [0, 2, 3]) step(state, { type: 'vote', vote: vote(PREVOTE, 0, member, NIL) });
  };
  for (const [signed, expected] of [
    [-1, [`${PREVOTE} in 0`]],
    [stepNumber(0, PREVOTE), []],
    [stepNumber(0, PRECOMMIT), []],
  ] as const) {
    const state = begun();
    state.signedStep = signed;
    expect([signed, signedBy(state, timeout('propose', 0))]).toEqual([signed, expected]);
  }
  const state = begun();
  state.signedStep = stepNumber(0, PREVOTE);
  step(state, timeout('propose', 0));
  nilVotes(state);
  expect(state.signedStep).toBe(stepNumber(0, PRECOMMIT));
});

test('a timeout of another round or height changes nothing', () => {
  for (const kind of ['propose', 'prevote', 'precommit'] as const)
    for (const [round, height] of [
      [0, HEIGHT],
      [2, HEIGHT],
      [1, HEIGHT - 1],
      [1, HEIGHT + 1],
    ] as const) {
      const state = begun();
      step(state, timeout('precommit', 0));
      const before = [state.round, state.step];
      expect([kind, round, height, signedBy(state, timeout(kind, round, height))]).toEqual([kind, round, height, []]);
      expect([state.round, state.step]).toEqual(before);
    }
});

test('a cut that was built for another round or height is not proposed', () => {
  const proposal = { validRound: -1, cut: CUT, signers: 0n, lastRound: 0, content: CUT_BYTES, signature: CUT_BYTES };
  for (const [round, height] of [
    [0, HEIGHT - 1],
    [0, HEIGHT + 1],
    [1, HEIGHT],
    [0, HEIGHT],
  ] as const) {
    const state = begun();
    step(state, { type: 'built', proposal: { ...proposal, height, round } });
    expect([round, height, state.values.size]).toEqual([round, height, round === 0 && height === HEIGHT ? 1 : 0]);
  }
});

test('a proof of a member that the committee does not have proves nothing', () => {
  const proof = (...members: number[]): Proof => ({
    kind: PREVOTE,
    height: HEIGHT,
    round: 0,
    cut: CUT,
    votes: members.map((member) => vote(PREVOTE, 0, member)),
  });
  const proves = (...members: number[]) => isProof(proof(...members), committee, RULES);
  expect([proves(0, 1, 2), proves(1, 2, 3), proves(0, 1), proves(0, 0, 1), proves(2, 1, 0)]).toEqual([
    true,
    true,
    false,
    false,
    false,
  ]);
  expect([proves(0, 1, 2, 4), proves(1, 2, 4), proves(1, 2, 64)]).toEqual([false, false, false]);
});

test('a key that gets a seat listens first, whichever seat it is', () => {
  for (const seat of [0, 1, 3]) {
    const state = createState(HEIGHT, committee, seat);
    state.ownKey.listens = true;
    listenOn(state, { height: HEIGHT - 1, listening: undefined, self: -1 });
    expect([seat, state.listening !== undefined]).toEqual([seat, true]);
    const member = createState(HEIGHT, committee, seat);
    member.ownKey.listens = true;
    listenOn(member, { height: HEIGHT - 1, listening: undefined, self: seat });
    expect([seat, member.listening]).toEqual([seat, undefined]);
  }
});

test('while a member holds its votes back, others’ votes pass through it, and of its own those alone that are held back', () => {
  const voteOf = (member: number, height = HEIGHT) =>
    ({ type: 'vote', vote: { ...vote(PREVOTE, 0, member), height } }) as const;
  const passes = (state: ConsensusState) =>
    [voteOf(SELF), voteOf(2), voteOf(SELF, HEIGHT - 1), voteOf(2, HEIGHT - 1)].map((message) =>
      mayLeave(state, message),
    );
  const withLast = () => {
    const state = createState(HEIGHT, committee, SELF);
    state.last = { height: HEIGHT - 1, self: SELF } as ConsensusState['last'];
    return state;
  };
  expect(passes(withLast())).toEqual([true, true, true, true]);
  const stopped = withLast();
  stopped.stopped = true;
  expect(passes(stopped)).toEqual([false, true, false, true]);
  const listening = withLast();
  listenFirst(listening, -1);
  expect(passes(listening)).toEqual([false, true, false, true]);
  const barred = withLast();
  barred.ownKey.barred = HEIGHT - 1;
  expect(passes(barred)).toEqual([true, true, false, true]);
  // A node without a seat holds nothing back.
  const stranger = createState(HEIGHT, committee, -1);
  stranger.stopped = true;
  expect(mayLeave(stranger, voteOf(2))).toBe(true);
  const { vote: ofNobody } = voteOf(-1);
  expect(mayLeave(stranger, { type: 'vote', vote: ofNobody })).toBe(true);
});
