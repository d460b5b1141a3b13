/** Records of the write-ahead log as bytes (consensus rule 12). Only this node reads and writes the log. */
import { ByteReader, type Bytes, ByteWriter } from '../../../protocol/bytes.ts';
import { ID_BYTES } from '../../../protocol/crypto/identifier.ts';
import { ProtocolError } from '../../../protocol/errors.ts';
import { nameOf } from '../../ledger/registration.ts';
import type { LogRecord, Proposal, Unsigned } from '../engine/effects.ts';
import {
  type CutName,
  cutBytes,
  NIL,
  PRECOMMIT,
  PREVOTE,
  type Proof,
  type Vote,
  type VoteKind,
} from '../engine/votes.ts';

/** No chain reaches a higher round: time-outs grow without bound. */
const MAX_ROUND = 0x7fff_ffff;

const NO_CUT = nameOf(cutBytes(NIL));

export function writeCut(writer: ByteWriter, cut: CutName): ByteWriter {
  const bytes = cutBytes(cut);
  if (bytes.length !== ID_BYTES) throw new ProtocolError('out_of_range', 'an identifier has 48 bytes');
  return writer.raw(bytes);
}

export function readCut(reader: ByteReader): CutName {
  const cut = nameOf(reader.take(ID_BYTES));
  return cut === NO_CUT ? NIL : cut;
}

const writeSignature = (writer: ByteWriter, signature: Bytes) => writer.u16(signature.length).raw(signature);
const readSignature = (reader: ByteReader) => reader.take(reader.u16());

/** A round, or -1 for none. */
const writeRound = (writer: ByteWriter, round: number) => writer.u32(round + 1);

function readRound(reader: ByteReader): number {
  const round = reader.u32() - 1;
  if (round > MAX_ROUND) throw new ProtocolError('out_of_range', 'a round that no chain reaches');
  return round;
}

export function readKind(reader: ByteReader): VoteKind {
  const kind = reader.u8();
  if (kind !== PREVOTE && kind !== PRECOMMIT) throw new ProtocolError('unsupported_kind', `vote kind ${kind}`);
  return kind;
}

function writeVote(writer: ByteWriter, vote: Vote): void {
  writeRound(writer.u8(vote.kind).height(vote.height), vote.round);
  writeSignature(writeCut(writer, vote.cut).u8(vote.member), vote.signature);
}

function readVote(reader: ByteReader): Vote {
  return {
    kind: readKind(reader),
    height: reader.height(),
    round: readRound(reader),
    cut: readCut(reader),
    member: reader.u8(),
    signature: readSignature(reader),
  };
}

function writeProposal(writer: ByteWriter, proposal: Proposal): void {
  writeRound(writeRound(writer.height(proposal.height), proposal.round), proposal.validRound);
  writeCut(writer, proposal.cut).u64(proposal.signers).u32(proposal.lastRound);
  writeSignature(writer.u32(proposal.content.length).raw(proposal.content), proposal.signature);
}

function readProposal(reader: ByteReader): Proposal {
  return {
    height: reader.height(),
    round: readRound(reader),
    validRound: readRound(reader),
    cut: readCut(reader),
    signers: reader.u64(),
    lastRound: reader.u32(),
    content: reader.take(reader.u32()),
    signature: readSignature(reader),
  };
}

function writeProof(writer: ByteWriter, { kind, height, round, cut, votes }: Proof): void {
  writeRound(writer.u8(kind).height(height), round);
  writeCut(writer, cut).u8(votes.length);
  for (const vote of votes) writeSignature(writer.u8(vote.member), vote.signature);
}

function readProof(reader: ByteReader): Proof {
  const kind = readKind(reader);
  const height = reader.height();
  const round = readRound(reader);
  const cut = readCut(reader);
  const votes: Vote[] = [];
  for (let left = reader.u8(); left > 0; left--)
    votes.push({ kind, height, round, cut, member: reader.u8(), signature: readSignature(reader) });
  return { kind, height, round, cut, votes };
}

export function encodeRecord(record: LogRecord): Uint8Array<ArrayBuffer> {
  const writer = new ByteWriter(512).height(record.height);
  if (record.message.type === 'proposal') writeProposal(writer.u8(0), record.message.proposal);
  else writeVote(writer.u8(1), record.message.vote);
  writeCut(writeRound(writer, record.lockedRound), record.locked);
  writeCut(writeRound(writer, record.validRound), record.valid).u8(record.polkas.length);
  for (const polka of record.polkas) writeProof(writer, polka);
  writer.u8(record.proposals.length);
  for (const proposal of record.proposals) writeProposal(writer, proposal);
  return writer.done();
}

export function decodeRecord(bytes: Bytes): LogRecord {
  const reader = new ByteReader(bytes);
  const height = reader.height();
  const type = reader.u8();
  if (type > 1) throw new ProtocolError('unsupported_kind', `message type ${type}`);
  const message: Unsigned =
    type === 0 ? { type: 'proposal', proposal: readProposal(reader) } : { type: 'vote', vote: readVote(reader) };
  const record = {
    height,
    message,
    lockedRound: readRound(reader),
    locked: readCut(reader),
    validRound: readRound(reader),
    valid: readCut(reader),
    polkas: Array.from({ length: reader.u8() }, () => readProof(reader)),
    proposals: Array.from({ length: reader.u8() }, () => readProposal(reader)),
  };
  reader.end();
  return record;
}
