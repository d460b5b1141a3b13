/** What a neighbour is sent that asks (consensus rules 15 to 17), and what of before its time counts when the time has come. */
import { expect, test } from 'vitest';
import { Receivers } from '../../node/consensus/driver/receivers.ts';
import { Committee } from '../../node/consensus/engine/committee.ts';
import type { Have } from '../../node/consensus/engine/effects.ts';
import { judgeFinalized } from '../../node/consensus/engine/intake.ts';
import { NIL, PRECOMMIT, PREVOTE } from '../../node/consensus/engine/votes.ts';
import { dumpOf } from '../../node/consensus/log/dump.ts';
import { SigningLog } from '../../node/consensus/one-signer/signing-log.ts';
import { quietLog } from '../quiet-log.ts';
import { BenchMember, committeeOf, cutNamed, follower, HEIGHT, proposal, vote } from './bench-member.ts';

const A = cutNamed('a');
const self = follower(2);
const [one, two] = [0, 1, 2, 3].filter((member) => member !== self) as [number, number];
const ALL = 0b1111n;

/** In round 1, after a polka for A in round 0. */
function locked(): BenchMember {
  const member = new BenchMember(self);
  member.proposes(0, A);
  member.votes(PREVOTE, 0, A, one, two);
  member.votes(PRECOMMIT, 0, NIL, one, two);
  member.timeout('precommit', 0);
  expect([member.state.round, member.state.validRound]).toEqual([1, 0]);
  return member;
}

test('who asks is sent what it names and lacks, and nothing that is of no use to it', () => {
  const has: Have = {
    height: HEIGHT,
    round: 1,
    prevotes: ALL,
    precommits: ALL,
    hasProposal: true,
    validRound: 0,
    wantPolka: -1,
    wantCut: NIL,
    lastRound: 0,
    lastPrecommits: ALL,
  };
  const sent = (change: Partial<Have>): string[] =>
    locked()
      .feed({ type: 'have', have: { ...has, ...change }, from: 'asker' })
      .map((effect) => {
        if (effect.do !== 'send') return `${effect.do}`;
        expect(effect.to).toEqual({ peer: 'asker' });
        const { message } = effect;
        if (message.type === 'proposal') return `proposal of ${message.proposal.round}`;
        if (message.type === 'proof') return `proof of ${message.proof.votes.length} in ${message.proof.round}`;
        return message.type === 'vote' ? `vote of ${message.vote.member}` : message.type;
      });
  expect(sent({})).toEqual([]);
  expect(sent({ wantCut: A })).toEqual(['proposal of 0']);
  expect(sent({ wantCut: cutNamed('unknown') })).toEqual([]);
  expect(sent({ wantPolka: 0 })).toEqual(['proof of 3 in 0']);
  for (const wantPolka of [1, 7]) expect(sent({ wantPolka })).toEqual([]);
  expect(sent({ validRound: -1 })).toEqual(['proposal of 0', 'proof of 3 in 0']);
  // Votes of this height are of no use at another one.
  const nothing = { prevotes: 0n, precommits: 0n, hasProposal: false, validRound: -1, wantCut: A, wantPolka: 0 };
  expect(sent({ ...nothing, height: HEIGHT - 1 })).toEqual(['serve']);
  expect(sent({ ...nothing, height: HEIGHT + 1 })).toEqual(['have']);
});

test('what came for the next height counts there, and nowhere else', () => {
  const other = new Committee(new Uint8Array(48).fill(4), committeeOf(4).members);
  for (const [height, committee, counts] of [
    [HEIGHT + 1, committeeOf(4), true],
    // Its members may have other numbers there.
    [HEIGHT + 1, other, false],
    [HEIGHT + 2, committeeOf(4), false],
  ] as const) {
    const member = new BenchMember(self);
    for (const by of [one, two]) member.feed({ type: 'vote', vote: vote(PREVOTE, 0, by, A, HEIGHT + 1) });
    member.feed({ type: 'proposal', proposal: { ...proposal(0, A), height: HEIGHT + 1 }, timely: true });
    member.feed({ type: 'height', height, committee, self });
    const round = member.state.rounds.get(0);
    const votes = round?.prevotes.votes.filter((each) => each !== undefined) ?? [];
    expect([height, votes.length, round?.proposal !== undefined]).toEqual([height, counts ? 2 : 0, counts]);
  }
});

test('a final cut of another height, or one that is known, costs no check of its signatures', () => {
  const finalOf = (height: number) => {
    const votes = [0, 1, 2].map((member) => vote(PRECOMMIT, 0, member, A, height));
    return {
      proof: { kind: PRECOMMIT, height, round: 0, cut: A, votes } as const,
      proposal: { ...proposal(0, A), height },
    };
  };
  const member = new BenchMember(self);
  const judged = () => [HEIGHT - 1, HEIGHT, HEIGHT + 1].map((height) => judgeFinalized(member.state, finalOf(height)));
  expect(judged()).toEqual(['old', 'wanted', 'far']);
  member.feed({ type: 'finalized', finalized: finalOf(HEIGHT) });
  expect(member.effect('decide')).toHaveLength(1);
  expect(judged()).toEqual(['old', 'known', 'far']);
});

test('the cut that others have is the one that more than a third of the stake says, and keys without a seat say nothing', () => {
  const keyOf = (fill: number) => new Uint8Array(1_952).fill(fill);
  const members = [0, 1, 2, 3].map((member) => ({ publicKey: keyOf(member), stake: 10n }));
  const committee = new Committee(new Uint8Array(48), members);
  const reported = (heights: readonly (readonly [key: number | undefined, height: number])[]): number => {
    const peers = heights.map((_, i) => `p${i}`);
    const receivers = new Receivers({
      company: () => heights.map(([key], i) => ({ peers: [`p${i}`], key: key === undefined ? undefined : keyOf(key) })),
      peers: () => peers,
      known: () => peers,
      isKnown: () => true,
      nearest: (peer) => peer,
    });
    for (const [i, [, height]] of heights.entries()) receivers.isAt(peers[i] as string, height);
    return receivers.reported(committee);
  };
  expect(reported([])).toBe(-1);
  expect(reported([[0, 100]])).toBe(-1);
  const three = [
    [0, 100],
    [1, 50],
    [2, 40],
  ] as const;
  expect(reported(three)).toBe(49);
  const nobody = [
    [9, 1_000],
    [9, 1_000],
    [undefined, 1_000],
    [undefined, 1_000],
  ] as const;
  expect(reported(nobody)).toBe(-1);
  expect(reported([...nobody, ...three])).toBe(49);
});

test('a dump shows rounds with and without a proposal', () => {
  const { rounds, round, valid } = dumpOf(locked().state);
  const name = Buffer.from(A, 'latin1').toString('hex');
  expect(rounds.map((each) => [each.round, each.proposal === null])).toEqual([
    [0, false],
    [1, true],
  ]);
  expect([round, rounds[0]?.proposal, valid.cut]).toEqual([1, valid.cut, rounds[0]?.proposal]);
  expect(name.startsWith(rounds[0]?.proposal ?? 'none')).toBe(true);
});

test('an operator is told once a minute what a validator waits for, and that it listens again, while it may sign at all', () => {
  const told: string[] = [];
  const log = new SigningLog({ ...quietLog, warn: (message) => void told.push(message) });
  const company = { members: [], named: 0 };
  const { state } = new BenchMember(self, 4, undefined, -1);
  const ticks = (count: number): number => {
    for (let tick = 0; tick < count; tick++) log.tick(state, company);
    return told.splice(0).length;
  };
  expect([ticks(59), ticks(1), ticks(59), ticks(1)]).toEqual([0, 1, 0, 1]);
  const woke = (): number => {
    log.woke(state);
    return told.splice(0).length;
  };
  expect(woke()).toBe(1);
  state.stopped = true;
  expect([woke(), ticks(60)]).toEqual([0, 0]);
  log.woke(new BenchMember(self).state);
  expect(told).toEqual([]);
});
