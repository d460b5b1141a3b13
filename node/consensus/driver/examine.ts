/**
 * Checks a message from a neighbour (consensus rules 13 and 14): first whether it is useful, which costs comparisons,
 * then the root of its blocks and its signatures. Neighbours check what they forward, so the sender of an invalid one is
 * at fault.
 */
import type { Committee } from '../engine/committee.ts';
import type { Message, Proposal } from '../engine/effects.ts';
import { type Intake, judgeFinalized, judgeProof, judgeProposal, judgeVote } from '../engine/intake.ts';
import { RULES } from '../engine/rules.ts';
import type { ConsensusState } from '../engine/state.ts';
import { isProof, type Proof, type Vote } from '../engine/votes.ts';
import type { SignatureCheck } from './signatures.ts';

export type Worth = 'take' | 'ignore' | 'invalid';

export type MayCheck = (signatures: number) => boolean;

/** What the root of a proposal's blocks costs, and its signature. */
const PROPOSAL_CHECKS = 2;

const USEFUL: ReadonlySet<Intake> = new Set(['wanted', 'contrary', 'own']);

/**
 * `isSameEpoch`: whether the committee of the current height certifies that height too. `mayCheck`: whether so many signatures of
 * this sender are checked now; if so, they are counted.
 */
export function examine(
  state: ConsensusState,
  message: Exclude<Message, { type: 'have' }>,
  check: SignatureCheck,
  isSameEpoch: (height: number) => boolean,
  mayCheck: MayCheck,
): Worth {
  const { committee } = state;
  switch (message.type) {
    case 'vote': {
      if (!USEFUL.has(judgeVote(state, message.vote))) return 'ignore';
      const voters = votersOf(state, message.vote, isSameEpoch);
      if (voters === undefined || !mayCheck(1)) return 'ignore';
      return check.vote(message.vote, voters) ? 'take' : 'invalid';
    }
    case 'proposal': {
      const { proposal } = message;
      if (judgeProposal(state, proposal) !== 'wanted' || !isSameEpoch(proposal.height)) return 'ignore';
      // The driver already has it, waiting for its time: repetitions are not checked again.
      if (isHeld(state, proposal) || !mayCheck(PROPOSAL_CHECKS)) return 'ignore';
      return check.blocks(proposal.content) && check.proposal(proposal, committee) ? 'take' : 'invalid';
    }
    case 'proof':
      return judgeProof(state, message.proof) === 'wanted'
        ? proven(message.proof, committee, check, mayCheck)
        : 'ignore';
    case 'finalized': {
      const { proof, proposal } = message.finalized;
      if (proof.height !== state.height || judgeFinalized(state, message.finalized) !== 'wanted') return 'ignore';
      const worth = proven(proof, committee, check, mayCheck);
      return worth === 'take' && !check.blocks(proposal.content) ? 'invalid' : worth;
    }
  }
}

const isHeld = ({ height, rounds }: ConsensusState, proposal: Proposal): boolean =>
  proposal.height === height && rounds.get(proposal.round)?.proposal?.cut === proposal.cut;

function votersOf(state: ConsensusState, { height }: Vote, isSameEpoch: (height: number) => boolean) {
  if (height < state.height) return state.last?.committee;
  return isSameEpoch(height) ? state.committee : undefined;
}

/** Counted first: with too few votes no signature is checked. */
function proven(proof: Proof, committee: Committee, check: SignatureCheck, mayCheck: MayCheck): Worth {
  if (!isProof(proof, committee, RULES)) return 'invalid';
  if (!mayCheck(proof.votes.length)) return 'ignore';
  return proof.votes.every((vote) => check.vote(vote, committee)) ? 'take' : 'invalid';
}
