/** The state of a round as plain JSON, for people and tools (`svcd consensus dump`). Cuts are hex, members are numbers of the committee, -1 and null mean none. */
import { toHex } from '../../../protocol/bytes.ts';
import { cutsLeft, isListening } from '../engine/listening.ts';
import { isBarred } from '../engine/own-key.ts';
import type { ConsensusState } from '../engine/state.ts';
import { type CutName, cutBytes, NIL, type Tally } from '../engine/votes.ts';

export const hexOf = (cut: CutName): string => (cut === NIL ? 'nil' : toHex(cutBytes(cut)));

const tallyOf = ({ votes, quorum }: Tally) => ({
  votes: Object.fromEntries(votes.flatMap((vote) => (vote === undefined ? [] : [[vote.member, hexOf(vote.cut)]]))),
  quorum: quorum === undefined ? null : hexOf(quorum),
});

export function dumpOf(state: ConsensusState) {
  const { height, round, step, self, committee, stopped, last } = state;
  return {
    height,
    round,
    step,
    member: self,
    signs: self >= 0 && !stopped && !isListening(state) && !isBarred(state),
    stopped,
    /** It listens before it signs, for about this many more cuts. */
    listens: isListening(state),
    listens_cuts: cutsLeft(state),
    /** Nothing is signed up to this height. */
    barred: state.ownKey.barred,
    proposer: committee.proposer(height, round),
    locked: { round: state.lockedRound, cut: hexOf(state.locked) },
    valid: { round: state.validRound, cut: hexOf(state.valid) },
    rounds: [...state.rounds.values()].map((kept) => ({
      round: kept.round,
      proposal: kept.proposal === undefined ? null : hexOf(kept.proposal.cut),
      valid_round: kept.proposal?.validRound ?? -1,
      prevotes: tallyOf(kept.prevotes),
      precommits: tallyOf(kept.precommits),
    })),
    cuts: Object.fromEntries([...state.values].map(([cut, { verdict, timely }]) => [hexOf(cut), { verdict, timely }])),
    members: committee.members.map(({ publicKey, stake }, member) => ({
      key: toHex(publicKey).slice(0, 16),
      stake: stake.toString(),
      seen_round: state.memberRounds[member] ?? -1,
      accused: state.accused.has(member),
    })),
    last: last === undefined ? null : { height: last.height, cut: hexOf(last.cut), round: last.round },
    wants: hexOf(state.wantCut),
  };
}

export type ConsensusDump = ReturnType<typeof dumpOf>;
