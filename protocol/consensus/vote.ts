/**
 * Votes of the committee (ledger rule 31): a member votes twice in a round, first for the proposal it saw (prevote), then for the cut that got a quorum of prevotes (precommit).
 * The precommits of one round for one cut are its certificate; two different votes of one member for the same height, round and kind are evidence
 * against it. A vote is `u8 kind | u64 height | u32 round | cut id 48`, the cut id zero where the member votes for none.
 */
import { ByteReader, type Bytes, ByteWriter, concat, equalBytes } from '../bytes.ts';
import { ID_BYTES, id, LABELS } from '../crypto/identifier.ts';
import { ProtocolError } from '../errors.ts';

export const VOTE_KINDS = { prevote: 1, precommit: 2 } as const;
export type VoteKind = keyof typeof VOTE_KINDS;

export type Vote = {
  readonly kind: VoteKind;
  readonly height: number;
  readonly round: number;
  /** Zero: for no cut in this round. */
  readonly cutId: Bytes;
};

export const VOTE_BYTES = 1 + 8 + 4 + ID_BYTES;

export function encodeVote(vote: Vote): Uint8Array<ArrayBuffer> {
  if (vote.cutId.length !== ID_BYTES) throw new ProtocolError('out_of_range', 'an identifier has 48 bytes');
  return new ByteWriter(VOTE_BYTES)
    .u8(VOTE_KINDS[vote.kind])
    .height(vote.height)
    .u32(vote.round)
    .raw(vote.cutId)
    .done();
}

export function decodeVote(bytes: Bytes): Vote {
  const reader = new ByteReader(bytes);
  const vote = readVote(reader);
  reader.end();
  return vote;
}

export function readVote(reader: ByteReader): Vote {
  const kind = reader.u8();
  if (kind !== VOTE_KINDS.prevote && kind !== VOTE_KINDS.precommit)
    throw new ProtocolError('unsupported_kind', `vote kind ${kind} is not known`);
  return {
    kind: kind === VOTE_KINDS.prevote ? 'prevote' : 'precommit',
    height: reader.height(),
    round: reader.u32(),
    cutId: reader.take(ID_BYTES),
  };
}

/** The bytes that a member signs. */
export const voteMessage = (chainId: Bytes, vote: Vote): Uint8Array<ArrayBuffer> =>
  id(LABELS.vote, concat(chainId, encodeVote(vote)));

/** Two votes of which a member must sign at most one. */
export const areContrary = (a: Vote, b: Vote): boolean =>
  a.kind === b.kind && a.height === b.height && a.round === b.round && !equalBytes(a.cutId, b.cutId);

/** More than two thirds: two such groups share an honest member while less than a third lies. */
export const isQuorum = (stake: bigint, total: bigint): boolean => stake * 3n > total * 2n;

/** More than a third: at least one honest member is among them. */
export const isThird = (stake: bigint, total: bigint): boolean => stake * 3n > total;
