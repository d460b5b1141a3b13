/**
 * Signatures of votes and proposals: the signed bytes, and checks with key objects that are created once per committee.
 */
import { type KeyObject, verify } from 'node:crypto';
import type { Bytes } from '../../../protocol/bytes.ts';
import { hasOwnBlocks, proposalMessage } from '../../../protocol/consensus/proposal.ts';
import { voteMessage } from '../../../protocol/consensus/vote.ts';
import type { Evidence } from '../../../protocol/staking/operation.ts';
import { importPublicKey, UncheckedSignatureError } from '../../ml-dsa.ts';
import type { Committee } from '../engine/committee.ts';
import type { Proposal, Unsigned } from '../engine/effects.ts';
import { cutBytes, PREVOTE, type Vote } from '../engine/votes.ts';

const voted = ({ kind, height, round, cut }: Vote) =>
  ({ kind: kind === PREVOTE ? 'prevote' : 'precommit', height, round, cutId: cutBytes(cut) }) as const;

const voteText = (chainId: Bytes, vote: Vote): Bytes => voteMessage(chainId, voted(vote));

/** Two votes of one member for the same height, round and kind, in the chain's format. */
export const evidenceOf = (validator: Bytes, first: Vote, second: Vote): Evidence => ({
  name: 'evidence',
  validator,
  votes: [
    { vote: voted(first), signature: first.signature },
    { vote: voted(second), signature: second.signature },
  ],
});

const proposalText = (chainId: Bytes, { height, round, validRound, cut, lastRound }: Proposal): Bytes =>
  proposalMessage(chainId, { height, round, validRound, cutId: cutBytes(cut), lastRound });

/** The bytes that the member signs. */
export const signedText = (chainId: Bytes, message: Unsigned): Bytes =>
  message.type === 'vote' ? voteText(chainId, message.vote) : proposalText(chainId, message.proposal);

/** Throws an UncheckedSignatureError where a check could not be made: that is nobody's fault. */
export interface SignatureCheck {
  /** Whether the member in the vote signed it; also false if the committee has no such member. */
  vote(vote: Vote, committee: Committee): boolean;
  /** Whether the block identifiers of a cut are those of its header. */
  blocks(content: Bytes): boolean;
  /** By the proposer of its height and round. */
  proposal(proposal: Proposal, committee: Committee): boolean;
}

export function signatureCheck(chainId: Bytes): SignatureCheck {
  const keys = new WeakMap<Committee, Map<number, KeyObject>>();
  const keyOf = (committee: Committee, member: number): KeyObject | undefined => {
    let known = keys.get(committee);
    if (known === undefined) {
      known = new Map();
      keys.set(committee, known);
    }
    let key = known.get(member);
    const raw = committee.members[member]?.publicKey;
    if (key === undefined && raw !== undefined) {
      key = importPublicKey(raw);
      known.set(member, key);
    }
    return key;
  };
  const check = (committee: Committee, member: number, text: Bytes, signature: Bytes): boolean => {
    try {
      const key = keyOf(committee, member);
      return key !== undefined && verify(null, text, key, signature);
    } catch (cause) {
      throw new UncheckedSignatureError(`a signature could not be checked: ${(cause as Error).message}`, { cause });
    }
  };
  return {
    vote: (vote, committee) => check(committee, vote.member, voteText(chainId, vote), vote.signature),
    blocks: hasOwnBlocks,
    proposal: (proposal, committee) =>
      check(
        committee,
        committee.proposer(proposal.height, proposal.round),
        proposalText(chainId, proposal),
        proposal.signature,
      ),
  };
}
