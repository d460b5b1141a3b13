/**
 * Algorithm 1 of the paper (Buchman, Kwon, Milosevic: "The latest gossip on BFT consensus", arXiv 1807.04938), line by line, evaluated to a fixpoint
 * after every input (docs/protocol/consensus.md, rule 8).
 */

import { askProposer } from './anti-entropy.ts';
import type { Effect, Proposal, Unsigned } from './effects.ts';
import { hasSigners, lastProof, watchLastRound } from './last-cut.ts';
import { isListening } from './listening.ts';
import { isBarred, signsFirst } from './own-key.ts';
import { type ConsensusState, type Round, roundOf, type Step, stepNumber, type Value } from './state.ts';
import { type CutName, NIL, PRECOMMIT, PREVOTE, UNSIGNED, type VoteKind } from './votes.ts';

/** Votes of so many rounds before and after the current one are kept (rule 14). */
export const PAST_ROUNDS = 4;
export const FUTURE_ROUNDS = 4;

/** Applies every rule until none applies any more. */
export function progress(state: ConsensusState, out: Effect[]): void {
  // Final cuts of others are accepted; everything else waits until it may sign.
  if (isListening(state)) {
    if (state.step !== 'decided') decide(state, out);
    return;
  }
  while (
    state.step !== 'decided' &&
    (decide(state, out) ||
      jump(state, out) ||
      takePolka(state, out) ||
      voteOnProposal(state, out) ||
      giveUpOnNil(state, out))
  );
  if (state.step !== 'decided') startTimers(state, out);
}

/** Line 11. */
export function startRound(state: ConsensusState, round: number, out: Effect[]): void {
  state.round = round;
  state.step = 'propose';
  prune(state);
  watchLastRound(state);
  askProposer(state, out);
  out.push({ do: 'timer', kind: 'propose', height: state.height, round });
  if (state.committee.proposer(state.height, round) !== state.self || !maySign(state, stepNumber(round, 0))) return;
  const value = state.values.get(state.valid);
  if (value === undefined) {
    out.push({ do: 'build', height: state.height, round, last: lastProof(state) });
    return;
  }
  propose(state, { ...value.proposal, round, validRound: state.validRound, signature: UNSIGNED }, out);
}

export function propose(state: ConsensusState, proposal: Proposal, out: Effect[]): void {
  request(state, stepNumber(proposal.round, 0), proposal.cut, { type: 'proposal', proposal }, out);
}

/** Line 49: precommits of more than two thirds in any one round. */
function decide(state: ConsensusState, out: Effect[]): boolean {
  for (const round of state.rounds.values()) {
    if (!state.rules.looksBack && round.round !== state.round) continue;
    const proof = state.rules.decision(round, state);
    if (proof === undefined || proof.cut === NIL) continue;
    const value = validValue(state, proof.cut, PRECOMMIT, round.round, out);
    if (value === undefined) continue;
    state.step = 'decided';
    out.push({ do: 'decide', proof, proposal: value.proposal });
    return true;
  }
  return false;
}

/** Line 55: more than a third is in a later round. Each member counts with the latest round it was seen in. */
function jump(state: ConsensusState, out: Effect[]): boolean {
  const { memberRounds, committee, round } = state;
  if (!state.rules.jumps || !memberRounds.some((seen) => seen > round)) return false;
  const ahead = [...memberRounds.keys()].filter((member) => (memberRounds[member] as number) > round);
  ahead.sort((a, b) => (memberRounds[b] as number) - (memberRounds[a] as number));
  let stake = 0n;
  for (const member of ahead) {
    stake += committee.stake(member);
    if (!state.rules.isThird(stake, committee.total)) continue;
    startRound(state, memberRounds[member] as number, out);
    return true;
  }
  return false;
}

/** Longer than the step's own time-out, which grows with the round too. */
const followTicks = (round: number): number => 40 + 4 * round;

/**
 * A member whose step does not end goes to the next round if it has seen any member in a later one. After a power
 * failure of all members, some may have advanced with votes that no longer exist: a liar does not send its own again,
 * and the others are less than a third, so line 55 does not help. Advancing is always safe: locks stay.
 *
 * Any member can claim a later round, so a liar can trigger this. Therefore ticks count only while a quorum is
 * connected: in a partitioned network at most one part has a quorum, and in it more than a third are honest, so all
 * others jump to them (line 55) when the partition ends. And the wait grows with the round, as the time-outs do: in a
 * time T without progress a liar makes rounds, and with them time-outs, in proportion to the root of T.
 */
export function follow(state: ConsensusState, out: Effect[]): void {
  const { round, step, ticksThere, memberRounds } = state;
  if (!state.rules.jumps || (step !== 'prevote' && step !== 'precommit') || ticksThere < followTicks(round)) return;
  if (memberRounds.some((seen) => seen > round)) startRound(state, round + 1, out);
}

/**
 * Line 36. In the current round the member locks and precommits. A polka of an earlier round, which came late or along with a later proposal, becomes
 * the valid value nevertheless: chains stalled without it.
 */
function takePolka(state: ConsensusState, out: Effect[]): boolean {
  for (const round of state.rounds.values()) {
    const cut = round.prevotes.quorum;
    if (cut === undefined || cut === NIL || round.round > state.round) continue;
    const isCurrent = round.round === state.round;
    if (isCurrent ? state.step === 'new' || state.step === 'propose' : !state.rules.looksBack) continue;
    const locks = isCurrent && state.step === 'prevote';
    if (!locks && round.round <= state.validRound) continue;
    if (validValue(state, cut, PREVOTE, round.round, out) === undefined) continue;
    if (round.round > state.validRound) {
      state.valid = cut;
      state.validRound = round.round;
    }
    if (!locks) return true;
    state.locked = cut;
    state.lockedRound = round.round;
    vote(state, PRECOMMIT, cut, out);
    return true;
  }
  return false;
}

/** Lines 22 and 28. A proposal that cannot be judged yet waits, at most until the time-out. */
function voteOnProposal(state: ConsensusState, out: Effect[]): boolean {
  if (state.step !== 'propose') return false;
  const proposal = state.rounds.get(state.round)?.proposal;
  const value = proposal && state.values.get(proposal.cut);
  if (proposal === undefined || value === undefined) return false;
  const { cut, validRound } = proposal;
  check(value, out);
  if (value.verdict === 'invalid') return vote(state, PREVOTE, NIL, out);
  if (value.verdict !== 'valid') return false;
  // A polka proves signers and timestamp: honest members had and checked them. After restarts those signatures may be
  // lost.
  if (validRound === -1 ? !value.timely || !hasSigners(state, proposal) : !hasPolka(state, validRound, cut))
    return false;
  const allowed = state.rules.lockAllows({ round: state.lockedRound, cut: state.locked }, cut, validRound);
  return vote(state, PREVOTE, allowed ? cut : NIL, out);
}

const hasPolka = (state: ConsensusState, round: number, cut: CutName): boolean =>
  state.rules.takesReproposals && state.rounds.get(round)?.prevotes.quorum === cut;

/** Line 44. */
function giveUpOnNil(state: ConsensusState, out: Effect[]): boolean {
  if (state.step !== 'prevote' || state.rounds.get(state.round)?.prevotes.quorum !== NIL) return false;
  return vote(state, PRECOMMIT, NIL, out);
}

/** Lines 34 and 47. */
function startTimers(state: ConsensusState, out: Effect[]): void {
  const round = state.rounds.get(state.round);
  if (round === undefined || state.step === 'new') return;
  const { height, committee } = state;
  if (state.step === 'prevote' && !round.prevoteTimer && state.rules.isQuorum(round.prevotes.any, committee.total)) {
    round.prevoteTimer = true;
    out.push({ do: 'timer', kind: 'prevote', height, round: state.round });
  }
  if (!round.precommitTimer && state.rules.isQuorum(round.precommits.any, committee.total)) {
    round.precommitTimer = true;
    out.push({ do: 'timer', kind: 'precommit', height, round: state.round });
  }
}

/** Votes, which ends the step. */
export function vote(state: ConsensusState, kind: VoteKind, cut: CutName, out: Effect[]): true {
  const { height, round, self: member } = state;
  state.step = kind === PREVOTE ? 'prevote' : 'precommit';
  if (member < 0) return true;
  const unsigned = { kind, height, round, cut, member, signature: UNSIGNED };
  request(state, stepNumber(round, kind), cut, { type: 'vote', vote: unsigned }, out);
  return true;
}

/** Rule 11: nothing new is signed at or below the last signed step. */
function maySign(state: ConsensusState, step: number): boolean {
  if (state.self < 0 || state.stopped || isListening(state) || isBarred(state)) return false;
  if (step <= state.signedStep) return false;
  return state.recovered === undefined || state.recovered.height <= state.height;
}

function request(state: ConsensusState, step: number, cut: CutName, message: Unsigned, out: Effect[]): void {
  if (!maySign(state, step)) return;
  state.signedStep = step;
  signsFirst(state);
  state.own.set(step, cut);
  out.push({ do: 'sign', message });
}

/** The value of a cut that has its votes, if it is here and valid. A missing one is requested. */
function validValue(
  state: ConsensusState,
  cut: CutName,
  kind: VoteKind,
  round: number,
  out: Effect[],
): Value | undefined {
  const value = state.values.get(cut);
  if (value === undefined) {
    state.wantCut = cut;
    return undefined;
  }
  check(value, out);
  if (value.verdict === 'invalid' && !value.faulted) {
    value.faulted = true;
    out.push({ do: 'fault', cut, kind, round });
  }
  return value.verdict === 'valid' ? value : undefined;
}

function check(value: Value, out: Effect[]): void {
  if (value.verdict !== 'unknown') return;
  value.verdict = 'checking';
  out.push({ do: 'check', proposal: value.proposal });
}

const STEPS_BEFORE: Readonly<Record<'propose' | 'prevote' | 'precommit', readonly Step[]>> = {
  propose: ['propose'],
  prevote: ['prevote'],
  precommit: ['propose', 'prevote', 'precommit'],
};

/** Lines 57, 61 and 65. */
export function timeOut(
  state: ConsensusState,
  kind: 'propose' | 'prevote' | 'precommit',
  round: number,
  out: Effect[],
): void {
  if (round !== state.round || !STEPS_BEFORE[kind].includes(state.step)) return;
  if (kind === 'propose') vote(state, PREVOTE, NIL, out);
  else if (kind === 'prevote') vote(state, PRECOMMIT, NIL, out);
  else startRound(state, round + 1, out);
}

/**
 * Rule 14: drops old votes, but never a polka that proves the lock or the valid value, or a certificate whose cut is
 * still missing.
 */
function prune(state: ConsensusState): void {
  const keep = (round: Round) =>
    round.round >= state.round - PAST_ROUNDS ||
    round.round === state.lockedRound ||
    round.round === state.validRound ||
    (round.precommits.quorum ?? NIL) !== NIL;
  for (const round of state.rounds.values()) if (!keep(round)) state.rounds.delete(round.round);
  const named = new Set<CutName>([state.locked, state.valid, state.wantCut]);
  for (const { proposal, prevotes, precommits } of state.rounds.values()) {
    if (proposal !== undefined) named.add(proposal.cut);
    named.add(prevotes.quorum ?? NIL).add(precommits.quorum ?? NIL);
  }
  for (const cut of state.values.keys()) if (!named.has(cut)) state.values.delete(cut);
  roundOf(state, state.round);
}
