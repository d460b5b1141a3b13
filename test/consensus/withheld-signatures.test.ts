/** A header names signatures that a liar gave to its proposer alone (consensus rule 9): whoever lacks them gets them there, and other proposals do not keep them away. */
import { expect, test } from 'vitest';
import { memberOf, Receivers } from '../../node/consensus/driver/receivers.ts';
import { Committee } from '../../node/consensus/engine/committee.ts';
import type { Proposal } from '../../node/consensus/engine/effects.ts';
import { lastCutOf, watchLastRound } from '../../node/consensus/engine/last-cut.ts';
import { roundOf } from '../../node/consensus/engine/state.ts';
import { NIL, PRECOMMIT, PREVOTE } from '../../node/consensus/engine/votes.ts';
import { BenchMember, committeeOf, cutNamed, follower, HEIGHT, proposal, vote } from './bench-member.ts';

const BEFORE = cutNamed('before');
const A = cutNamed('a');
const B = cutNamed('b');
const committee = committeeOf(4);
const self = follower(3);
const others = [0, 1, 2, 3].filter((member) => member !== self) as [number, number, number];

/** It decided the cut before in round 1; a header may name precommits of round 0. */
function member(): BenchMember {
  const votes = [0, 1, 2].map((each) => vote(PRECOMMIT, 1, each, BEFORE, HEIGHT - 1));
  const proof = { kind: PRECOMMIT, height: HEIGHT - 1, round: 1, cut: BEFORE, votes } as const;
  return new BenchMember(self, 4, lastCutOf(proof, committee));
}

const naming = (round: number, cut: string, lastRound: number): Proposal => ({
  ...proposal(round, cut, -1, 7n),
  lastRound,
});

const brings = (to: BenchMember, round: number) => {
  for (const each of [0, 1, 2]) to.feed({ type: 'vote', vote: vote(PRECOMMIT, round, each, BEFORE, HEIGHT - 1) });
};

const asked = (of: BenchMember, from: number) =>
  of.effects
    .flatMap((effect) =>
      effect.do === 'send' && typeof effect.to === 'object' && 'member' in effect.to && effect.message.type === 'have'
        ? [[effect.to.member, effect.message.have.lastRound]]
        : [],
    )
    .slice(from);

test('a proposal of a later round does not displace the signatures that the proposal of this round names', () => {
  const it = member();
  it.feed({ type: 'proposal', proposal: naming(0, A, 0), timely: true });
  it.feed({ type: 'proposal', proposal: naming(1, B, 100), timely: true });
  brings(it, 0);
  expect(it.signed).toEqual([[0, PREVOTE, A]]);
});

test('a proposal that came before its round has its signatures asked for when the round begins', () => {
  const it = member();
  it.feed({ type: 'proposal', proposal: naming(1, A, 0), timely: true });
  it.timeout('propose', 0);
  for (const kind of [PREVOTE, PRECOMMIT] as const) it.votes(kind, 0, NIL, ...others);
  it.timeout('precommit', 0);
  expect(it.state.round).toBe(1);
  expect(asked(it, 0)).toEqual([[committee.proposer(HEIGHT, 1), 0]]);
  brings(it, 0);
  expect(it.signed.at(-1)).toEqual([1, PREVOTE, A]);
});

test('what a proposal lacks is asked of its proposer at every tick: a question or its answer may be lost', () => {
  const it = member();
  it.feed({ type: 'proposal', proposal: naming(0, A, 0), timely: true });
  const proposer = committee.proposer(HEIGHT, 0);
  expect(asked(it, 0)).toEqual([[proposer, 0]]);
  for (let ticks = 0; ticks < 2; ticks++) it.feed({ type: 'tick' });
  expect(asked(it, 1)).toEqual([
    [proposer, 0],
    [proposer, 0],
  ]);
  brings(it, 0);
  it.feed({ type: 'tick' });
  expect(asked(it, 3)).toEqual([]);
});

test('precommits that came while the height before lasted need not come again', () => {
  const ended = new BenchMember(self);
  ended.votes(PRECOMMIT, 0, A, ...others);
  const votes = others.map((each) => vote(PRECOMMIT, 1, each, A)).sort((a, b) => a.member - b.member);
  const last = lastCutOf({ kind: PRECOMMIT, height: HEIGHT, round: 1, cut: A, votes }, committee, ended.state);
  ended.state.last = last;
  roundOf(ended.state, ended.state.round).proposal = { ...naming(0, B, 0) };
  watchLastRound(ended.state);
  expect([...(last.rounds.get(0)?.keys() ?? [])].sort()).toEqual(others);
});

test('a question to a member goes to that member, whoever brought its proposal first', () => {
  const keys = [1, 2, 3, 4].map((name) => Uint8Array.of(name));
  const members = new Committee(
    new Uint8Array(48),
    keys.map((publicKey) => ({ publicKey, stake: 10n })),
  );
  const peers = ['liar', 'proposer', 'third'];
  const company = [1, 2, 3].map((member, i) => ({ peers: [peers[i] as string], key: keys[member] }));
  const receivers = new Receivers({
    peers: () => peers,
    known: () => peers,
    isKnown: (peer) => peers.includes(peer as string),
    company: () => company,
    nearest: (peer) => peer,
  });
  expect(memberOf(members, keys[2])).toBe(2);
  receivers.cameFrom(2, 'liar');
  expect(receivers.of({ member: 2 }, members)).toContain('proposer');
  // One that is not connected is asked where its messages come from.
  receivers.cameFrom(0, 'third');
  expect(receivers.of({ member: 0 }, members)).toEqual(['third']);
});
