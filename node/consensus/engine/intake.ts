/**
 * Decides whether a message is worth checking its signature (consensus rules 13 and 14): votes of non-members, known
 * votes, and votes of a past or distant height or round cost only a comparison. The rest is bounded by members and
 * rounds, so no neighbour can make this node store or verify more.
 */

import type { Finalized, Proposal } from './effects.ts';
import { contraryLast, wantsLastVote } from './last-cut.ts';
import { isOwnLate } from './listening.ts';
import { isSettled } from './own-key.ts';
import { FUTURE_ROUNDS, PAST_ROUNDS } from './rounds.ts';
import { type ConsensusState, stepNumber } from './state.ts';
import { NIL, PREVOTE, type Proof, type Vote } from './votes.ts';

export type Intake =
  | 'wanted'
  /** A second, different vote: wanted as evidence. */
  | 'contrary'
  /** A vote of this node's own key that it did not make. */
  | 'own'
  | 'known'
  | 'stranger'
  | 'old'
  | 'far';

/** Rounds of the next height of which votes are kept early. */
export const EARLY_ROUNDS = 2;

export const earlyKey = ({ member, round, kind }: Vote): number => (member * EARLY_ROUNDS + round) * 2 + kind - 1;

export function judgeVote(state: ConsensusState, vote: Vote): Intake {
  const { height, round, member, kind, cut } = vote;
  if (height < state.height) {
    if (isOwnLate(state, vote)) return 'own';
    if (wantsLastVote(state, vote)) return 'wanted';
    return contraryLast(state, vote) === undefined ? 'old' : 'contrary';
  }
  if (member < 0 || member >= state.committee.size) return 'stranger';
  if (height > state.height) return judgeEarly(state, vote);
  if (member === state.self) {
    const own = state.own.get(stepNumber(round, kind));
    return own === cut || (state.recovered?.height ?? 0) > height || isSettled(state, height) ? 'known' : 'own';
  }
  const seen = state.memberRounds[member] as number;
  if (round > state.round + FUTURE_ROUNDS) {
    if (round <= seen) return 'known';
    return state.farVotes.has(member) ? 'far' : 'wanted';
  }
  const kept = state.rounds.get(round);
  if (kept === undefined) return round < state.round - PAST_ROUNDS ? 'old' : 'wanted';
  const before = (kind === PREVOTE ? kept.prevotes : kept.precommits).votes[member];
  if (before === undefined) return 'wanted';
  return before.cut === cut || state.accused.has(member) ? 'known' : 'contrary';
}

function judgeEarly(state: ConsensusState, vote: Vote): Intake {
  if (vote.height > state.height + 1) return 'far';
  // A node whose store is behind its log has voted at heights that it has yet to reach.
  if (vote.member === state.self)
    return (state.recovered?.height ?? 0) >= vote.height || isSettled(state, vote.height) ? 'known' : 'own';
  if (vote.round >= EARLY_ROUNDS) return 'far';
  const before = state.early.get(earlyKey(vote));
  if (before === undefined) return 'wanted';
  return before.cut === vote.cut || state.accused.has(vote.member) ? 'known' : 'contrary';
}

/** Whether a proposal's signature is worth checking. Two proposals of a round are kept only where votes ask for the second. */
export function judgeProposal(state: ConsensusState, { height, round, validRound, cut }: Proposal): Intake {
  if (validRound >= round || cut === NIL) return 'stranger';
  if (height < state.height) return 'old';
  if (height > state.height)
    return height > state.height + 1 || round >= EARLY_ROUNDS
      ? 'far'
      : state.earlyProposals.has(round)
        ? 'known'
        : 'wanted';
  if (cut === state.wantCut && !state.values.has(cut)) return 'wanted';
  if (round > state.round + FUTURE_ROUNDS) return 'far';
  const held = state.rounds.get(round)?.proposal;
  if (held === undefined) return round < state.round - PAST_ROUNDS ? 'old' : 'wanted';
  return held.cut === cut && state.values.get(cut)?.timely === false ? 'wanted' : 'known';
}

/**
 * Whether the signatures of a proof are worth checking: it must be needed for the valid value, the proposal or a
 * decision.
 */
export function judgeProof(state: ConsensusState, { kind, height, round, cut }: Proof): Intake {
  if (height !== state.height || cut === NIL) return height > state.height ? 'far' : 'old';
  const kept = state.rounds.get(round);
  const tally = kind === PREVOTE ? kept?.prevotes : kept?.precommits;
  if (tally?.quorum !== undefined) return 'known';
  if (kind !== PREVOTE) return 'wanted';
  const asked = state.rounds.get(state.round)?.proposal?.validRound;
  return round > state.validRound || round === asked ? 'wanted' : 'old';
}

/**
 * Whether a final cut is useful. Its certificate may already be known vote by vote, with only the cut itself missing.
 */
export const judgeFinalized = (state: ConsensusState, { proof }: Finalized): Intake =>
  proof.height === state.height && state.step !== 'decided' && !state.values.has(proof.cut)
    ? 'wanted'
    : judgeProof(state, proof);
