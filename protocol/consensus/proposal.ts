/**
 * Proposals (consensus rule 5): a cut that a round's proposer puts to the vote, without its signature. The signature
 * covers the cut's identifier and so the header; the block identifiers are checked against the header's root here. So a
 * proposal with a valid signature cannot have been changed in transit.
 */
import { ByteReader, type Bytes, ByteWriter, concat, equalBytes } from '../bytes.ts';
import { ID_BYTES, id, LABELS } from '../crypto/identifier.ts';
import { ProtocolError } from '../errors.ts';
import { blocksRoot, CUT_HEADER_BYTES, type CutHeader, cutId, decodeCutHeader } from '../ledger/cut.ts';

/** Rounds are below 2^31, so that a valid round fits a signed integer. */
export const MAX_ROUND = 0x7fff_ffff;

/** Cut header and block identifiers. */
export type ProposedCut = {
  readonly cutId: Bytes;
  readonly header: CutHeader;
  readonly blockIds: readonly Bytes[];
  /** Both in wire form. */
  readonly content: Bytes;
};

/** A cut header and as many block identifiers as it says, in wire form: whether they are its own is not looked at yet. */
export function readCutContent(reader: ByteReader): Pick<ProposedCut, 'cutId' | 'header' | 'content'> {
  const headerBytes = reader.take(CUT_HEADER_BYTES);
  const header = decodeCutHeader(headerBytes);
  const content = concat(headerBytes, reader.take(header.blockCount * ID_BYTES));
  return { cutId: cutId(headerBytes), header, content };
}

function blockIdsOf(content: Bytes): Bytes[] {
  const reader = new ByteReader(content.subarray(CUT_HEADER_BYTES));
  return Array.from({ length: reader.left / ID_BYTES }, () => reader.take(ID_BYTES));
}

/** Whether the block identifiers are those of the header. It takes up to 127 hashes, nearly as long as a signature. */
export const hasOwnBlocks = (content: Bytes): boolean =>
  equalBytes(blocksRoot(blockIdsOf(content)), decodeCutHeader(content.subarray(0, CUT_HEADER_BYTES)).blocksRoot);

export function readProposedCut(reader: ByteReader): ProposedCut {
  const cut = readCutContent(reader);
  if (!hasOwnBlocks(cut.content))
    throw new ProtocolError('not_canonical', 'the block identifiers are not those of the header');
  return { ...cut, blockIds: blockIdsOf(cut.content) };
}

export function decodeProposedCut(content: Bytes): ProposedCut {
  const reader = new ByteReader(content);
  const proposed = readProposedCut(reader);
  reader.end();
  return proposed;
}

export function readRound(reader: ByteReader): number {
  const round = reader.u32();
  if (round > MAX_ROUND) throw new ProtocolError('out_of_range', `rounds are at most ${MAX_ROUND}`);
  return round;
}

/** `i32`: a round, or -1 for none. */
export const writeRoundOrNone = (writer: ByteWriter, round: number): ByteWriter => writer.u32(round >>> 0);

export function readRoundOrNone(reader: ByteReader): number {
  const round = reader.u32() | 0;
  if (round < -1) throw new ProtocolError('out_of_range', 'a round is -1 for none, or from 0 up');
  return round;
}

export type ProposalPlace = {
  readonly height: number;
  readonly round: number;
  readonly validRound: number;
  readonly cutId: Bytes;
  /** Round of the certificate of the cut before. */
  readonly lastRound: number;
};

/** The bytes that the proposer signs: all of a proposal, so that it cannot be changed in transit. */
export function proposalMessage(chainId: Bytes, place: ProposalPlace): Bytes {
  const writer = new ByteWriter(2 * ID_BYTES + 20).raw(chainId).height(place.height).u32(place.round);
  return id(LABELS.proposal, writeRoundOrNone(writer, place.validRound).raw(place.cutId).u32(place.lastRound).done());
}
