/**
 * Recovers lost messages (consensus rules 15 to 17). A member that makes no progress tells some neighbours what it has;
 * each sends what it lacks: votes and proposal of its round, votes of a later round, the polka of a newer valid value,
 * precommits for the cut before, and final cuts if it is behind. Answers to one neighbour are limited between two ticks
 * of the node's clock.
 */

import type { Bytes } from '../../../protocol/bytes.ts';
import type { Effect, Event, Finalized, Have, Message, Proposal } from './effects.ts';
import { hasSigners } from './last-cut.ts';
import { isListening } from './listening.ts';
import type { ConsensusState, Round } from './state.ts';
import { bitsOf, hasBit, NIL, type Proof, proofOf, UNSIGNED, type Vote } from './votes.ts';

/** Answers to one neighbour between two ticks, and as many to all its circuits together. */
export const ANSWERS_PER_TICK = 2;

/** `isMet`: members of a quorum are connected, this one among them. */
export function tick(state: ConsensusState, isMet: boolean, out: Effect[]): void {
  state.answered.clear();
  state.farVotes.clear();
  const step = `${state.height}/${state.round}/${state.step}`;
  const isThere = step === state.tickStep;
  if (isThere || isBehind(state)) out.push({ do: 'send', to: 'some', message: { type: 'have', have: haveOf(state) } });
  askProposer(state, out);
  state.ticksThere = isThere ? state.ticksThere + (isMet ? 1 : 0) : 0;
  state.tickStep = step;
  state.tickHeights = [state.height, state.tickHeights[0]];
}

/**
 * Two ticks in a row brought a new height, which at the tip takes longer (rule 3). Whoever brings the cuts may be as slow
 * as it likes, and does not let a step last: so others are asked too.
 */
const isBehind = ({ height, tickHeights: [last, before] }: ConsensusState): boolean => height > last && last > before;

/**
 * What the proposal of the current round names is certainly with its proposer, and perhaps with nobody else: a liar may
 * have sent its vote to that one alone.
 */
export function askProposer(state: ConsensusState, out: Effect[]): void {
  const { height, round, self, committee, rounds } = state;
  const proposal = rounds.get(round)?.proposal;
  const isWaited = state.step === 'new' || state.step === 'propose';
  if (proposal === undefined || !isWaited || !lacksProof(state, proposal)) return;
  const member = committee.proposer(height, round);
  if (member !== self) out.push({ do: 'send', to: { member }, message: { type: 'have', have: haveOf(state) } });
}

/** Signatures that its header names or, where it has an older polka, that polka. */
const lacksProof = (state: ConsensusState, proposal: Proposal): boolean =>
  proposal.validRound < 0
    ? !hasSigners(state, proposal)
    : state.rounds.get(proposal.validRound)?.prevotes.quorum !== proposal.cut;

export function haveOf(state: ConsensusState): Have {
  const { height, round, last } = state;
  const current = state.rounds.get(round);
  const proposal = current?.proposal;
  const asked = proposal?.validRound ?? -1;
  // Another process may have voted with its key. Neighbours send only missing votes, so while it listens it asks for
  // its own votes too.
  const unheard = isListening(state) ? 1n << BigInt(state.self) : 0n;
  const lastRound = proposal !== undefined && last?.rounds.has(proposal.lastRound) ? proposal.lastRound : last?.round;
  return {
    height,
    round,
    prevotes: bitsOf(current?.prevotes.votes ?? []) & ~unheard,
    precommits: bitsOf(current?.precommits.votes ?? []) & ~unheard,
    hasProposal: proposal !== undefined,
    validRound: state.validRound,
    wantPolka: asked >= 0 && state.rounds.get(asked)?.prevotes.quorum !== proposal?.cut ? asked : -1,
    wantCut: state.values.has(state.wantCut) ? NIL : state.wantCut,
    lastRound: lastRound ?? 0,
    lastPrecommits: bitsOf((lastRound === undefined ? undefined : last?.rounds.get(lastRound))?.values() ?? []),
  };
}

/**
 * A final cut for a member that is behind. Its certificate proves it: the proposer's signature is not needed, and the
 * round of the cut before is not signed, so a node that accepts the cut uses its own.
 */
export const finalizedOf = (proof: Proof, signers: bigint, content: Bytes): Finalized => {
  const { height, round, cut } = proof;
  return {
    proof,
    proposal: { height, round, validRound: -1, cut, signers, lastRound: 0, content, signature: UNSIGNED },
  };
};

export function answer(state: ConsensusState, asked: Event & { type: 'have' }, out: Effect[]): void {
  const { have, from, account = from } = asked;
  const given = state.answered.get(account) ?? 0;
  if (!state.rules.answers || given >= ANSWERS_PER_TICK) return;
  state.answered.set(account, given + 1);
  if (have.height < state.height) out.push({ do: 'serve', to: from, height: have.height });
  else if (have.height > state.height || have.round > state.round)
    out.push({ do: 'send', to: { peer: from }, message: { type: 'have', have: haveOf(state) } });
  if (have.height !== state.height) return;
  for (const message of lacking(state, have)) out.push({ do: 'send', to: { peer: from }, message });
}

function lacking(state: ConsensusState, have: Have): Message[] {
  const messages: Message[] = [];
  const proposalOf = (cut: string) => {
    const proposal = state.values.get(cut)?.proposal;
    if (proposal !== undefined && proposal.signature.length > 0) messages.push({ type: 'proposal', proposal });
  };
  const polka = (round: number) => {
    const kept = state.rounds.get(round);
    const proof = kept && proofOf(kept.prevotes);
    if (proof !== undefined && proof.cut !== NIL) messages.push({ type: 'proof', proof });
  };
  const votes = (held: Iterable<Vote | undefined>, bits: bigint) => {
    for (const vote of held)
      if (vote !== undefined && !hasBit(bits, vote.member)) messages.push({ type: 'vote', vote });
  };
  const round = (kept: Round | undefined, prevotes: bigint, precommits: bigint, hasProposal: boolean) => {
    if (kept === undefined) return;
    if (!hasProposal && kept.proposal !== undefined) {
      messages.push({ type: 'proposal', proposal: kept.proposal });
      if (kept.proposal.validRound > have.validRound) polka(kept.proposal.validRound);
    }
    votes(kept.prevotes.votes, prevotes);
    votes(kept.precommits.votes, precommits);
  };
  proposalOf(have.wantCut);
  if (have.validRound < state.validRound) {
    proposalOf(state.valid);
    polka(state.validRound);
  }
  if (have.wantPolka >= 0) polka(have.wantPolka);
  round(state.rounds.get(have.round), have.prevotes, have.precommits, have.hasProposal);
  // A member of an earlier round needs to see where the others are.
  if (have.round < state.round) round(state.rounds.get(state.round), 0n, 0n, false);
  votes(state.last?.rounds.get(have.lastRound)?.values() ?? [], have.lastPrecommits);
  return messages;
}
