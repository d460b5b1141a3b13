/**
 * Votes as the engine counts them (consensus rules 6, 10 and 14): the first vote of each member of a round and kind,
 * their stake by cut, and the proof that a cut has more than two thirds. Signatures are checked before.
 */
import type { Bytes } from '../../../protocol/bytes.ts';
import { ID_BYTES } from '../../../protocol/crypto/identifier.ts';
import type { Certificate } from '../../../protocol/ledger/cut.ts';
import type { Committee } from './committee.ts';

/** A cut's identifier as a text of 48 characters, one per byte; empty for 'no cut'. */
export type CutName = string;
export const NIL: CutName = '';

/** Zero for no cut. */
export const cutBytes = (cut: CutName): Bytes =>
  cut === NIL ? new Uint8Array(ID_BYTES) : new Uint8Array(Buffer.from(cut, 'latin1'));

/** The signature of what is not signed, or not yet. */
export const UNSIGNED: Bytes = new Uint8Array(0);

export const PREVOTE = 1;
export const PRECOMMIT = 2;
export type VoteKind = typeof PREVOTE | typeof PRECOMMIT;

export type Vote = {
  readonly kind: VoteKind;
  readonly height: number;
  readonly round: number;
  readonly cut: CutName;
  readonly member: number;
  readonly signature: Bytes;
};

/** Votes of one kind and round for one cut by more than two thirds of the stake: of prevotes a polka, of precommits a certificate. */
export type Proof = {
  readonly kind: VoteKind;
  readonly height: number;
  readonly round: number;
  readonly cut: CutName;
  readonly votes: readonly Vote[];
};

export function proofOfCertificate(height: number, cut: CutName, { round, signatures }: Certificate): Proof {
  const vote = { kind: PRECOMMIT, height, round, cut } as const;
  return { ...vote, votes: signatures.map(({ member, signature }) => ({ ...vote, member, signature })) };
}

/** The threshold of more than two thirds. */
export type Quorum = { readonly isQuorum: (stake: bigint, total: bigint) => boolean };

export type Tally = {
  readonly votes: (Vote | undefined)[];
  /** Stake of all members that voted, for any value. */
  any: bigint;
  readonly byCut: Map<CutName, bigint>;
  /** The value that more than two thirds voted for. */
  quorum: CutName | undefined;
  /**
   * The proof as received, if single votes do not add up to it because a member sent different votes to different
   * members.
   */
  proof: Proof | undefined;
};

export const emptyTally = (members: number): Tally => ({
  votes: new Array<Vote | undefined>(members).fill(undefined),
  any: 0n,
  byCut: new Map(),
  quorum: undefined,
  proof: undefined,
});

/** Counts a vote. Returns the member's earlier vote, if there is one. */
export function addVote(tally: Tally, vote: Vote, committee: Committee, rules: Quorum): Vote | undefined {
  const before = tally.votes[vote.member];
  if (before !== undefined) return before;
  tally.votes[vote.member] = vote;
  const stake = committee.stake(vote.member);
  tally.any += stake;
  const sum = (tally.byCut.get(vote.cut) ?? 0n) + stake;
  tally.byCut.set(vote.cut, sum);
  if (tally.quorum === undefined && rules.isQuorum(sum, committee.total)) tally.quorum = vote.cut;
  return undefined;
}

/** The votes that prove the quorum of a tally; undefined if it has none. */
export function proofOf(tally: Tally): Proof | undefined {
  if (tally.quorum === undefined) return undefined;
  if (tally.proof !== undefined) return tally.proof;
  const votes = tally.votes.filter((vote): vote is Vote => vote !== undefined && vote.cut === tally.quorum);
  const [first] = votes;
  if (first === undefined) return undefined;
  return { kind: first.kind, height: first.height, round: first.round, cut: first.cut, votes };
}

const BITS = Array.from({ length: 64 }, (_, i) => 1n << BigInt(i));

export function bitsOf(votes: Iterable<Vote | undefined>): bigint {
  let bits = 0n;
  for (const vote of votes) if (vote !== undefined) bits |= BITS[vote.member] as bigint;
  return bits;
}

export const hasBit = (bits: bigint, member: number): boolean => (bits & (BITS[member] as bigint)) !== 0n;

/** Whether a proof is valid: one vote each, all for the same value, by more than two thirds of the stake. */
export function isProof(proof: Proof, committee: Committee, rules: Quorum): boolean {
  let stake = 0n;
  let before = -1;
  for (const { kind, height, round, cut, member } of proof.votes) {
    if (member <= before || member >= committee.size) return false;
    if (kind !== proof.kind || height !== proof.height || round !== proof.round || cut !== proof.cut) return false;
    stake += committee.stake(member);
    before = member;
  }
  return rules.isQuorum(stake, committee.total);
}
