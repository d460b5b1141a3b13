/** Known scenarios of the paper and of chains that stalled, one member moved by hand. */
import { expect, test } from 'vitest';
import { lastCutOf } from '../../node/consensus/engine/last-cut.ts';
import { NIL, PRECOMMIT, PREVOTE } from '../../node/consensus/engine/votes.ts';
import { BenchMember, committeeOf, cutNamed, follower, HEIGHT, vote } from './bench-member.ts';

const A = cutNamed('a');
const B = cutNamed('b');
const self = follower(3);
const [one, two, three] = [0, 1, 2, 3].filter((member) => member !== self) as [number, number, number];

/** A member that locked A in round 0 and went on to round 1. */
function locked(): BenchMember {
  const member = new BenchMember(self);
  member.proposes(0, A);
  member.votes(PREVOTE, 0, A, one, two);
  member.votes(PRECOMMIT, 0, NIL, one, two);
  member.timeout('precommit', 0);
  return member;
}

test('a calm round decides', () => {
  const member = new BenchMember(self);
  member.proposes(0, A);
  member.votes(PREVOTE, 0, A, one, two);
  member.votes(PRECOMMIT, 0, A, one, two);
  expect(member.signed).toEqual([
    [0, PREVOTE, A],
    [0, PRECOMMIT, A],
  ]);
  expect(member.effect('decide')).toMatchObject([{ proof: { round: 0, cut: A } }]);
});

test('a locked member prevotes for nothing else (line 22)', () => {
  const member = locked();
  expect(member.state).toMatchObject({ lockedRound: 0, locked: A, validRound: 0, valid: A });
  member.proposes(1, B);
  expect(member.signed.at(-1)).toEqual([1, PREVOTE, NIL]);
});

test('a locked member lets go for a cut with a later polka (line 28), and not for one without', () => {
  const member = locked();
  member.votes(PREVOTE, 1, B, one, two, three);
  member.timeout('propose', 1);
  member.votes(PRECOMMIT, 1, NIL, one, two);
  member.timeout('precommit', 1);
  expect(member.state.round).toBe(2);
  member.proposes(2, B, 1);
  expect(member.signed.at(-1)).toEqual([2, PREVOTE, B]);
  const unproven = locked();
  unproven.timeout('propose', 1);
  unproven.votes(PREVOTE, 1, NIL, one, two);
  unproven.votes(PRECOMMIT, 1, NIL, one, two);
  unproven.timeout('precommit', 1);
  unproven.proposes(2, B, 1);
  expect(unproven.signed.at(-1)).toEqual([1, PRECOMMIT, NIL]);
  unproven.timeout('propose', 2);
  expect(unproven.signed.at(-1)).toEqual([2, PREVOTE, NIL]);
});

test('the hidden lock: a polka that comes a round late is proposed again', () => {
  const member = new BenchMember(self);
  member.proposes(0, A);
  member.timeout('prevote', 0);
  member.votes(PRECOMMIT, 0, NIL, one, two);
  member.timeout('precommit', 0);
  expect(member.state).toMatchObject({ round: 1, validRound: -1 });
  const votes = [one, two, three].map((other) => vote(PREVOTE, 0, other, A)).sort((a, b) => a.member - b.member);
  member.feed({ type: 'proof', proof: { kind: PREVOTE, height: HEIGHT, round: 0, cut: A, votes } });
  expect(member.state).toMatchObject({ validRound: 0, valid: A, lockedRound: -1 });
});

test('precommits of an earlier round decide (line 49), those of two rounds together do not', () => {
  const member = locked();
  member.votes(PRECOMMIT, 1, A, one, two);
  expect(member.effect('decide')).toEqual([]);
  member.votes(PRECOMMIT, 0, A, three);
  // Own and one other in round 0, two in round 1: no round has three.
  expect(member.effect('decide')).toEqual([]);
  member.votes(PRECOMMIT, 1, A, three);
  expect(member.effect('decide')).toMatchObject([{ proof: { round: 1, cut: A } }]);
});

test('more than a third in a later round are followed (line 55), one member is not', () => {
  const member = new BenchMember(self);
  member.votes(PREVOTE, 7, NIL, one);
  expect(member.state.round).toBe(0);
  member.votes(PRECOMMIT, 3, NIL, two);
  // The latest round that more than a third has reached.
  expect(member.state.round).toBe(3);
});

test('a certificate without its cut asks for the cut and decides when it comes', () => {
  const member = new BenchMember(self);
  member.votes(PRECOMMIT, 0, A, one, two, three);
  expect(member.state.wantCut).toBe(A);
  member.proposes(0, A);
  expect(member.effect('decide').length).toBe(1);
});

test('a fresh proposal waits for the signatures that its header names; one with a polka does not', () => {
  const committee = committeeOf(4);
  const before = [one, two, three].map((other) => vote(PRECOMMIT, 0, other, B, HEIGHT - 1));
  const proof = { kind: PRECOMMIT, height: HEIGHT - 1, round: 0, cut: B, votes: before } as const;
  const fresh = new BenchMember(self, 4, lastCutOf(proof, committee));
  const named = { height: HEIGHT, validRound: -1, cut: A, signers: 15n, lastRound: 0 };
  const bytes = { content: Uint8Array.of(1), signature: Uint8Array.of(1) };
  fresh.feed({ type: 'proposal', timely: true, proposal: { ...named, ...bytes, round: 0 } });
  expect(fresh.signed).toEqual([]);
  // It is asked of the proposer at once.
  expect(fresh.effect('send')).toMatchObject([
    { to: { member: committee.proposer(HEIGHT, 0) }, message: { type: 'have' } },
  ]);
  fresh.feed({ type: 'vote', vote: vote(PRECOMMIT, 0, self, B, HEIGHT - 1) });
  expect(fresh.signed).toEqual([[0, PREVOTE, A]]);
  const restarted = new BenchMember(self, 4, lastCutOf(proof, committee));
  restarted.votes(PREVOTE, 0, A, one, two, three);
  restarted.votes(PREVOTE, 1, NIL, one, two);
  expect(restarted.state.round).toBe(1);
  restarted.feed({ type: 'proposal', timely: false, proposal: { ...named, ...bytes, round: 1, validRound: 0 } });
  expect(restarted.signed.at(-1)).toEqual([1, PREVOTE, A]);
});

test('an execution that ends late counts in the round of its proposal or not at all', () => {
  const member = new BenchMember(self);
  member.state.values.set(A, {
    proposal: {
      height: HEIGHT,
      round: 0,
      validRound: -1,
      cut: A,
      signers: 0n,
      lastRound: 0,
      content: Uint8Array.of(),
      signature: Uint8Array.of(1),
    },
    verdict: 'checking',
    faulted: false,
    timely: true,
  });
  member.proposes(0, A);
  member.timeout('propose', 0);
  member.feed({ type: 'checked', height: HEIGHT, cut: A, valid: true });
  expect(member.signed).toEqual([[0, PREVOTE, NIL]]);
});
