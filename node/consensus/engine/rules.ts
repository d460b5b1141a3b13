/**
 * The few decisions on which agreement depends, each a separate function (docs/protocol/consensus.md). A member's
 * state has this table: tests replace one decision at a time by a wrong one and check that the simulator finds it.
 */
import { isQuorum, isThird } from '../../../protocol/consensus/vote.ts';
import type { Committee } from './committee.ts';
import type { Effect } from './effects.ts';
import { type CutName, type Proof, proofOf, type Quorum, type Tally } from './votes.ts';

export type Lock = { readonly round: number; readonly cut: CutName };

/** Of a round and of a height, what a decision reads. */
type Voted = { readonly round: number; readonly precommits: Tally };
type VotedHeight = {
  readonly height: number;
  readonly committee: Committee;
  readonly rounds: ReadonlyMap<number, Voted>;
};

export type Rules = Quorum & {
  /** At least one honest member is among them. */
  readonly isThird: (stake: bigint, total: bigint) => boolean;
  /** Lines 23 and 29 of the paper: whether a member with this lock may prevote for a proposal. */
  readonly lockAllows: (lock: Lock, cut: CutName, validRound: number) => boolean;
  /** Line 49: precommits that make a cut final, checked in every round. */
  readonly decision: (round: Voted, height: VotedHeight) => Proof | undefined;
  /** The steps for a signed message, in this order. */
  readonly signed: (write: Effect, send: Effect) => readonly Effect[];
  /** Line 28: a proposal with an older polka can be voted for. */
  readonly takesReproposals: boolean;
  /** Line 55: a member follows more than a third to a later round. */
  readonly jumps: boolean;
  /** Polkas and certificates of rounds that are over still count. */
  readonly looksBack: boolean;
  /** Neighbours are sent the messages that they lack. */
  readonly answers: boolean;
};

export const RULES: Rules = {
  isQuorum,
  isThird,
  lockAllows: (lock, cut, validRound) => lock.round <= validRound || lock.cut === cut,
  decision: (round) => proofOf(round.precommits),
  signed: (write, send) => [write, send],
  takesReproposals: true,
  jumps: true,
  looksBack: true,
  answers: true,
};
