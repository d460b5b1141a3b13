/**
 * The previous cut (consensus rule 9): a header lists its signers, and a member that prevotes for the header must have
 * each of those signatures. So precommits for it are still accepted during the next height: of the round that decided
 * here, and of the one that the proposal of the current round refers to.
 */
import type { Proposal } from './effects.ts';
import type { ConsensusState, LastCut } from './state.ts';
import { bitsOf, PRECOMMIT, PREVOTE, type Proof, type Vote } from './votes.ts';

/** `ended` is the final state of that height; without it, no other votes are known. */
export const lastCutOf = (
  proof: Proof,
  committee: LastCut['committee'],
  ended?: Pick<ConsensusState, 'rounds' | 'accused' | 'self'>,
): LastCut => ({
  height: proof.height,
  cut: proof.cut,
  committee,
  round: proof.round,
  rounds: new Map([[proof.round, new Map(proof.votes.map((vote) => [vote.member, vote]))]]),
  seen: ended?.rounds ?? new Map(),
  accused: ended?.accused ?? new Set(),
  self: ended?.self ?? -1,
});

/** All precommits for the previous cut, of the round that decided here; a proposer puts them into its header. */
export function lastProof({ last }: ConsensusState): Proof | undefined {
  if (last === undefined) return undefined;
  const { height, round, cut } = last;
  const votes = [...(last.rounds.get(round) as Map<number, Vote>).values()].sort((a, b) => a.member - b.member);
  return { kind: PRECOMMIT, height, round, cut, votes };
}

/**
 * Whether every signature listed in the header is here, and they form a certificate. The first cut has no previous one.
 */
export function hasSigners({ last, rules }: ConsensusState, { signers, lastRound }: Proposal): boolean {
  if (last === undefined) return signers === 0n;
  const held = last.rounds.get(lastRound);
  if (held === undefined || (bitsOf(held.values()) & signers) !== signers) return false;
  return rules.isQuorum(last.committee.stakeOf(signers), last.committee.total);
}

/**
 * Starts collecting for the round that the proposal of the current round refers to; one besides the decided round is
 * kept. Proposals of later rounds wait for theirs: otherwise each could displace the round that is needed now.
 */
export function watchLastRound({ last, rounds, round: current }: ConsensusState): void {
  const lastRound = rounds.get(current)?.proposal?.lastRound;
  if (last === undefined || lastRound === undefined || last.rounds.has(lastRound)) return;
  for (const round of last.rounds.keys()) if (round !== last.round) last.rounds.delete(round);
  const seen = last.seen.get(lastRound)?.precommits.votes ?? [];
  const held = seen.filter((vote): vote is Vote => vote?.cut === last.cut);
  last.rounds.set(lastRound, new Map(held.map((vote) => [vote.member, vote])));
}

export function wantsLastVote({ last }: ConsensusState, vote: Vote): boolean {
  if (last === undefined || vote.height !== last.height || vote.kind !== PRECOMMIT || vote.cut !== last.cut)
    return false;
  const held = last.rounds.get(vote.round);
  return held !== undefined && vote.member < last.committee.size && !held.has(vote.member);
}

/** A different vote of the same member, round and kind at the previous height: both together are evidence (rule 10). */
export function contraryLast({ last }: ConsensusState, { height, round, kind, member, cut }: Vote): Vote | undefined {
  if (last === undefined || height !== last.height || member === last.self || last.accused.has(member))
    return undefined;
  const first = seenVote(last, { round, kind, member });
  return first?.cut === cut ? undefined : first;
}

/** The first vote of that member, round and kind at the previous height. */
export function seenVote(
  last: LastCut,
  { round, kind, member }: Pick<Vote, 'round' | 'kind' | 'member'>,
): Vote | undefined {
  const seen = last.seen.get(round);
  return (
    (kind === PREVOTE ? seen?.prevotes : seen?.precommits)?.votes[member] ??
    (kind === PRECOMMIT ? last.rounds.get(round)?.get(member) : undefined)
  );
}
