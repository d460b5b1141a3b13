/** What is sent to a member in bad faith: strangers, other heights and rounds, floods, its own key elsewhere (consensus rules 10, 13, 14 and 16). */
import { expect, test } from 'vitest';
import { examine } from '../../node/consensus/driver/examine.ts';
import { decodeMessage, encodeMessage } from '../../node/consensus/driver/messages.ts';
import { ANSWERS_PER_TICK } from '../../node/consensus/engine/anti-entropy.ts';
import type { Company } from '../../node/consensus/engine/effects.ts';
import { judgeProof, judgeProposal, judgeVote } from '../../node/consensus/engine/intake.ts';
import { COVERED_TICKS, LISTEN_TICKS, SLOW_TICKS, WHOLE_TICK } from '../../node/consensus/engine/listening.ts';
import { NIL, PRECOMMIT, PREVOTE } from '../../node/consensus/engine/votes.ts';
import { concat } from '../../protocol/bytes.ts';
import { hasOwnBlocks } from '../../protocol/consensus/proposal.ts';
import { encodeCutHeader } from '../../protocol/ledger/cut.ts';
import { NETWORKS } from '../../protocol/network.ts';
import { BenchMember, committeeOf, cutNamed, follower, HEIGHT, proposal, SIGNATURE, vote } from './bench-member.ts';

const A = cutNamed('a');
const B = cutNamed('b');
const self = follower(2);
const nobody = { members: [], named: 0 };
const [one, two] = [0, 1, 2, 3].filter((member) => member !== self) as [number, number];

test('votes are refused before their signature is looked at', () => {
  const { state } = new BenchMember(self);
  expect(judgeVote(state, vote(PREVOTE, 0, one, A))).toBe('wanted');
  expect(judgeVote(state, vote(PREVOTE, 0, 4, A))).toBe('stranger');
  expect(judgeVote(state, vote(PREVOTE, 0, 255, A))).toBe('stranger');
  expect(judgeVote(state, vote(PREVOTE, 0, one, A, HEIGHT - 1))).toBe('old');
  expect(judgeVote(state, vote(PREVOTE, 0, one, A, HEIGHT + 2))).toBe('far');
  expect(judgeVote(state, vote(PREVOTE, 2, one, A, HEIGHT + 1))).toBe('far');
  expect(judgeProposal(state, proposal(9, A))).toBe('far');
  expect(judgeProposal(state, { ...proposal(0, A), height: HEIGHT - 1 })).toBe('old');
  expect(judgeProof(state, { kind: PREVOTE, height: HEIGHT, round: 0, cut: NIL, votes: [] })).toBe('old');
});

test('a flood of votes of far rounds and of the next height leaves nothing behind', () => {
  const member = new BenchMember(self);
  for (let i = 0; i < 20_000; i++) {
    member.feed({ type: 'vote', vote: vote(PREVOTE, 10 + i, one, cutNamed(`far ${i}`)) });
    member.feed({ type: 'vote', vote: vote(PRECOMMIT, i, one, cutNamed(`early ${i}`), HEIGHT + 1) });
  }
  const { rounds, early, values, round } = member.state;
  expect([rounds.size, early.size, values.size, round]).toEqual([1, 2, 0, 0]);
  // One far vote a member is looked at between two ticks.
  expect(judgeVote(member.state, vote(PREVOTE, 1_000_000, one, A))).toBe('far');
  member.feed({ type: 'tick' });
  expect(judgeVote(member.state, vote(PREVOTE, 1_000_000, one, A))).toBe('wanted');
});

test('a thousand rounds without a decision are not remembered', () => {
  const member = new BenchMember(self);
  for (let round = 0; round < 1_000; round++) {
    member.votes(PREVOTE, round, cutNamed(`junk ${round}`), one);
    member.votes(PREVOTE, round, NIL, two);
    member.votes(PRECOMMIT, round, NIL, one, two);
    member.timeout('propose', round);
    member.timeout('precommit', round);
  }
  expect(member.state.round).toBe(1_000);
  expect(member.state.rounds.size).toBeLessThanOrEqual(6);
});

test('two different votes of one member are evidence, once; the first one counts', () => {
  const member = new BenchMember(self);
  member.votes(PREVOTE, 0, A, one);
  member.votes(PREVOTE, 0, A, one);
  expect(member.effect('evidence')).toEqual([]);
  member.votes(PREVOTE, 0, B, one);
  member.votes(PREVOTE, 0, NIL, one);
  expect(member.effect('evidence')).toMatchObject([{ first: { cut: A }, second: { cut: B } }]);
  expect(member.state.rounds.get(0)?.prevotes.byCut).toEqual(new Map([[A, 10n]]));
});

test('two different votes of one member for the next height are evidence before it begins, once', () => {
  const member = new BenchMember(self);
  const early = (cut: string) => ({ type: 'vote', vote: vote(PREVOTE, 0, one, cut, HEIGHT + 1) }) as const;
  for (const cut of [A, A]) member.feed(early(cut));
  expect(member.effect('evidence')).toEqual([]);
  expect(judgeVote(member.state, early(B).vote)).toBe('contrary');
  for (const cut of [B, NIL, B]) member.feed(early(cut));
  expect(member.effect('evidence')).toMatchObject([
    { first: { cut: A, height: HEIGHT + 1 }, second: { cut: B, height: HEIGHT + 1 } },
  ]);
  expect([...member.state.early.values()]).toMatchObject([{ cut: A }]);
});

test('a second vote that comes after the decision is evidence too, once a member; precommits for the cut before are still taken', () => {
  const member = new BenchMember(self);
  const three = [0, 1, 2, 3].filter((each) => each !== self) as [number, number, number];
  member.proposes(0, A);
  member.votes(PREVOTE, 0, A, one, two);
  // Of three that precommit, the last one said first that it does not.
  member.votes(PRECOMMIT, 0, NIL, three[2]);
  member.votes(PRECOMMIT, 0, A, one, two);
  expect(member.effect('decide')).toHaveLength(1);
  member.feed({ type: 'height', height: HEIGHT + 1, committee: committeeOf(4), self });
  const late = (...[kind, by, cut]: [typeof PREVOTE | typeof PRECOMMIT, number, string]) =>
    member.feed({ type: 'vote', vote: vote(kind, 0, by, cut) });
  late(PREVOTE, one, A);
  late(PREVOTE, three[2], B);
  late(PREVOTE, self, B);
  late(PRECOMMIT, 77, B);
  expect(member.effect('evidence')).toEqual([]);
  late(PREVOTE, one, B);
  late(PRECOMMIT, one, B);
  late(PRECOMMIT, two, B);
  late(PRECOMMIT, three[2], A);
  const found = member.effect('evidence').map(({ first, second }) => [second.member, first.cut, second.cut]);
  expect(found).toEqual([
    [one, A, B],
    [two, A, B],
    [three[2], NIL, A],
  ]);
  expect([...(member.state.last?.rounds.get(0)?.keys() ?? [])]).toContain(three[2]);
  expect(member.effect('stop')).toEqual([]);
});

test('a vote of the own key that it did not make stops the signing; a replay of an own one does not', () => {
  const member = new BenchMember(self);
  member.timeout('propose', 0);
  member.votes(PREVOTE, 0, NIL, self);
  expect(member.effect('stop')).toEqual([]);
  member.feed({ type: 'vote', vote: vote(PREVOTE, 0, self, A, HEIGHT - 1) });
  expect(member.effect('stop')).toEqual([]);
  member.votes(PREVOTE, 1, A, self);
  expect(member.effect('stop')).toMatchObject([{ reason: 'key_runs_twice' }]);
  const before = member.signed.length;
  member.votes(PREVOTE, 0, NIL, one, two);
  expect(member.state.step).toBe('precommit');
  expect(member.signed.length).toBe(before);
});

test('heights that follow each other within one tick take its worth back once', () => {
  const member = new BenchMember(self, 4, undefined, -1);
  for (let tick = 0; tick < 4; tick++) member.feed({ type: 'tick' });
  for (let height = HEIGHT + 1; height < HEIGHT + 5; height++)
    member.feed({ type: 'height', height, committee: committeeOf(4), self });
  expect(member.state.listening?.ticks).toBe((LISTEN_TICKS - 4 + 2) * WHOLE_TICK);
});

test('a member that starts listens first, longer where its log says nothing of the height: it signs nothing, and a vote of its own key stops it before it has', () => {
  const start = (logHeight: number) => new BenchMember(self, 4, undefined, logHeight);
  const known = start(HEIGHT - 1);
  for (let tick = 0; tick < COVERED_TICKS; tick++) {
    known.timeout('propose', 0);
    expect(known.signed).toEqual([]);
    known.feed({ type: 'tick' });
  }
  known.timeout('propose', 0);
  expect(known.signed).toEqual([[0, PREVOTE, NIL]]);
  const twin = start(HEIGHT - 2);
  twin.state.ownKey.newFrom = HEIGHT;
  twin.timeout('propose', 0);
  twin.votes(PREVOTE, 0, A, one);
  twin.votes(PREVOTE, 0, A, self);
  expect(twin.effect('stop')).toMatchObject([{ reason: 'key_runs_twice' }]);
  for (let tick = 0; tick < LISTEN_TICKS; tick++) twin.feed({ type: 'tick' });
  twin.timeout('propose', 0);
  expect(twin.signed).toEqual([]);
  // Nobody there: it goes on listening. Then it has its place in the round where the others are.
  const alone = start(-1);
  for (let tick = 0; tick < 100; tick++) alone.feed({ type: 'tick', company: nobody });
  expect(alone.state.step).toBe('new');
  alone.votes(PREVOTE, 3, NIL, one, two);
  for (let tick = 0; tick < LISTEN_TICKS; tick++) alone.feed({ type: 'tick' });
  expect([alone.state.step, alone.state.round]).toEqual(['propose', 3]);
  alone.timeout('propose', 3);
  expect(alone.signed[0]).toEqual([3, PREVOTE, NIL]);
});

test('a member that is alone the quorum listens too, its key may run elsewhere; it needs nobody to be there', () => {
  for (const [logHeight, ticks] of [
    [HEIGHT - 1, COVERED_TICKS],
    [-1, LISTEN_TICKS],
  ] as const) {
    const member = new BenchMember(0, 1, undefined, logHeight);
    for (let tick = 1; tick < ticks; tick++) member.feed({ type: 'tick', company: nobody });
    expect(member.effect('build').length).toBe(0);
    member.feed({ type: 'tick', company: nobody });
    expect(member.effect('build').length).toBe(1);
  }
});

test('who is there decides how long it listens: more than a third of the stake, by key; fewer take eight times as long, whatever they send, and its own key is nobody', () => {
  const ticksOf = (company: Company, heard: readonly number[] = []): number => {
    const member = new BenchMember(self, 4, undefined, -1);
    member.votes(PREVOTE, 0, A, ...heard);
    let ticks = 0;
    for (; member.state.listening !== undefined && ticks < 1_000; ticks++) member.feed({ type: 'tick', company });
    return ticks;
  };
  expect(ticksOf({ members: [one, two], named: 0 })).toBe(LISTEN_TICKS);
  // Whoever proved nothing has no stake, though the operator named it.
  expect(ticksOf({ members: [], named: 3 })).toBe(LISTEN_TICKS * SLOW_TICKS);
  expect(ticksOf({ members: [one], named: 3 })).toBe(LISTEN_TICKS * SLOW_TICKS);
  // What was ever signed anybody can send again.
  expect(ticksOf({ members: [one], named: 0 }, [one, two])).toBe(LISTEN_TICKS * SLOW_TICKS);
  expect(ticksOf({ members: [one, one], named: 0 })).toBe(LISTEN_TICKS * SLOW_TICKS);
  expect(ticksOf({ members: [], named: 1 })).toBe(LISTEN_TICKS * SLOW_TICKS);
  // Whatever strangers bring, nobody is there.
  expect(ticksOf(nobody, [one, two])).toBe(1_000);
  expect(ticksOf({ members: [self, self], named: 0 }, [one, two])).toBe(1_000);
});

test('a member that lost its log and is sent votes of its own key signs nothing at their height, and goes on at the next', () => {
  const committee = committeeOf(4);
  const listen = (member: BenchMember) => {
    for (let tick = 0; tick < LISTEN_TICKS; tick++) member.feed({ type: 'tick' });
  };
  const lost = new BenchMember(self, 4, undefined, -1);
  lost.votes(PREVOTE, 0, A, self);
  expect([lost.effect('stop'), lost.effect('bar').length]).toEqual([[], 1]);
  // Once is enough: the same again, and others of that height, are not even checked.
  expect(judgeVote(lost.state, vote(PRECOMMIT, 5, self, B))).toBe('known');
  listen(lost);
  lost.timeout('propose', 0);
  lost.votes(PREVOTE, 0, A, one, two);
  expect([lost.signed, lost.state.stopped]).toEqual([[], false]);
  lost.feed({ type: 'height', height: HEIGHT + 1, committee, self });
  lost.feed({ type: 'begin' });
  listen(lost);
  lost.feed({ type: 'timeout', kind: 'propose', height: HEIGHT + 1, round: 0 });
  expect(lost.signed).toEqual([[0, PREVOTE, NIL]]);
  // Now it knows all that its key signs: this one was made elsewhere.
  lost.feed({ type: 'vote', vote: vote(PREVOTE, 3, self, A, HEIGHT + 2) });
  expect(lost.effect('stop')).toMatchObject([{ reason: 'key_runs_twice' }]);
});

test('an old vote that comes after the first signature, before it is out or inside a polka: nothing more leaves at that height', () => {
  const begun = () => {
    const member = new BenchMember(self, 4, undefined, -1);
    for (let tick = 0; tick < LISTEN_TICKS; tick++) member.feed({ type: 'tick' });
    member.timeout('propose', 0);
    expect(member.signed).toEqual([[0, PREVOTE, NIL]]);
    return member;
  };
  const late = begun();
  late.votes(PRECOMMIT, 0, A, self);
  late.votes(PREVOTE, 0, NIL, one, two);
  late.timeout('precommit', 0);
  late.timeout('propose', 1);
  expect([late.signed.length, late.state.stopped]).toEqual([1, false]);
  const proven = begun();
  const votes = [self, one, two].sort().map((other) => vote(PREVOTE, 0, other, A));
  proven.feed({ type: 'proof', proof: { kind: PREVOTE, height: HEIGHT, round: 0, cut: A, votes } });
  expect([proven.effect('bar').length, proven.signed.length]).toEqual([1, 1]);
  // Asked for and not yet signed when the old one came.
  const pending = new BenchMember(self, 4, undefined, -1);
  for (let tick = 0; tick < LISTEN_TICKS; tick++) pending.feed({ type: 'tick' });
  const message = { type: 'vote', vote: vote(PREVOTE, 0, self, NIL) } as const;
  pending.state.own.set(1, NIL);
  pending.votes(PREVOTE, 0, A, self);
  expect(pending.feed({ type: 'signed', message, signature: SIGNATURE })).toEqual([]);
});

test('a final cut with a vote of its own key: of before it began it is its own, of later it was made elsewhere', () => {
  const committee = committeeOf(4);
  const votes = [0, 1, 2, 3].map((member) => vote(PRECOMMIT, 0, member, A));
  const finalized = {
    proof: { kind: PRECOMMIT, height: HEIGHT, round: 0, cut: A, votes },
    proposal: proposal(0, A),
  } as const;
  const old = new BenchMember(self, 4, undefined, -1);
  old.feed({ type: 'finalized', finalized });
  expect([old.effect('decide').length, old.state.stopped, old.effect('bar')]).toEqual([1, false, []]);
  old.feed({ type: 'height', height: HEIGHT + 1, committee, self });
  expect(old.state.stopped).toBe(false);
  const twin = new BenchMember(self, 4, undefined, -1);
  twin.state.ownKey.newFrom = HEIGHT;
  twin.feed({ type: 'finalized', finalized });
  expect([twin.effect('decide').length, twin.state.stopped]).toEqual([1, true]);
});

test('a proposal of a time far ahead, sent again and again, costs one check of its signature', () => {
  const member = new BenchMember(self);
  const early = proposal(0, A);
  let checks = 0;
  const check = { vote: () => true, blocks: () => true, proposal: () => ++checks > 0 };
  for (let i = 0; i < 1_000; i++)
    if (
      examine(
        member.state,
        { type: 'proposal', proposal: early },
        check,
        () => true,
        () => true,
      ) === 'take'
    )
      member.feed({ type: 'proposal', proposal: early, timely: false });
  expect(checks).toBe(1);
  expect(member.signed).toEqual([]);
  // Once its time has come the driver gives it to the engine again.
  member.feed({ type: 'proposal', proposal: early, timely: true });
  expect(member.signed).toEqual([[0, PREVOTE, A]]);
});

test('a useless proposal or final cut costs no root: height and round are looked at first', () => {
  const { state } = new BenchMember(self);
  const id = new Uint8Array(48).fill(1);
  // Identifiers that are not those of the header: a root that is computed is seen as wrong.
  const content = (height: number) =>
    concat(
      encodeCutHeader({
        networkId: NETWORKS.development.id,
        height,
        timestampMillis: 1,
        previousId: id,
        blocksRoot: id,
        stateRoot: id,
        validatorSetId: id,
        blockCount: 64,
        signers: 0n,
      }),
      ...Array.from({ length: 64 }, () => id),
    );
  const signature = new Uint8Array(3_309);
  let roots = 0;
  const check = {
    vote: () => true,
    proposal: () => true,
    blocks: (bytes: Uint8Array) => {
      roots++;
      return hasOwnBlocks(bytes);
    },
  };
  const worthOf = (bytes: Uint8Array) => {
    const message = decodeMessage(bytes);
    return message.type === 'have'
      ? 'have'
      : examine(
          state,
          message,
          check,
          () => true,
          () => true,
        );
  };
  const proposed = (height: number, round: number) =>
    encodeMessage({
      type: 'proposal',
      proposal: { ...proposal(round, A), height, content: content(height), signature },
    });
  const final = (height: number, members: readonly number[]) => {
    const votes = members.map((member) => ({ ...vote(PRECOMMIT, 0, member, A, height), signature }));
    const proof = { kind: PRECOMMIT, height, round: 0, cut: A, votes } as const;
    return encodeMessage({
      type: 'finalized',
      finalized: { proof, proposal: { ...proposal(0, A), content: content(height) } },
    });
  };
  for (const [height, round] of [
    [1, 0],
    [HEIGHT - 1, 0],
    [HEIGHT + 2, 0],
    [HEIGHT + 1, 2],
    [HEIGHT, 9],
  ] as const)
    expect(worthOf(proposed(height, round))).toBe('ignore');
  for (const height of [1, HEIGHT - 1, HEIGHT + 1]) expect(worthOf(final(height, [0, 1, 2]))).toBe('ignore');
  // Too few votes: no root either.
  expect(worthOf(final(HEIGHT, [0, 1]))).toBe('invalid');
  expect(roots).toBe(0);
  // What is useful has to have its own blocks.
  expect([worthOf(proposed(HEIGHT, 0)), worthOf(final(HEIGHT, [0, 1, 2]))]).toEqual(['invalid', 'invalid']);
  expect(roots).toBe(2);
});

test('a neighbour that asks without end is answered a few times a tick', () => {
  const member = new BenchMember(self);
  member.votes(PREVOTE, 0, A, one, two);
  const have = {
    height: HEIGHT,
    round: 0,
    prevotes: 0n,
    precommits: 0n,
    hasProposal: false,
    validRound: -1,
    wantPolka: -1,
    wantCut: NIL,
    lastRound: 0,
    lastPrecommits: 0n,
  };
  for (let i = 0; i < 1_000; i++) member.feed({ type: 'have', have, from: 'greedy' });
  expect(member.effect('send').length).toBeLessThanOrEqual(ANSWERS_PER_TICK * 3);
  member.feed({ type: 'have', have: { ...have, height: 3 }, from: 'behind' });
  expect(member.effect('serve')).toEqual([{ do: 'serve', to: 'behind', height: 3 }]);
});
