/**
 * Messages between validators as bytes (consensus rules 5, 15 and 18). Only the form is checked here; heights and rounds
 * are checked later (intake.ts), and then, where the message is useful, roots and signatures (examine.ts).
 */
import { ByteReader, type Bytes, ByteWriter } from '../../../protocol/bytes.ts';
import { readCutContent, readRound, readRoundOrNone, writeRoundOrNone } from '../../../protocol/consensus/proposal.ts';
import { ProtocolError } from '../../../protocol/errors.ts';
import { decodeCertificate, encodeCertificate, MAX_COMMITTEE } from '../../../protocol/ledger/cut.ts';
import { SIGNATURE_BYTES } from '../../../protocol/transactions/transaction.ts';
import { nameOf } from '../../ledger/registration.ts';
import { finalizedOf } from '../engine/anti-entropy.ts';
import type { Finalized, Have, Message, Proposal } from '../engine/effects.ts';
import { type Proof, proofOfCertificate, type Vote } from '../engine/votes.ts';
import { MESSAGE_TYPES } from '../link/message-types.ts';
import { readCut, readKind, writeCut } from '../log/log-record.ts';

/** A final cut with 64 blocks and 64 signatures is the largest. */
export const MAX_MESSAGE_BYTES = 220_000;

function writeSignature(writer: ByteWriter, signature: Bytes): ByteWriter {
  if (signature.length !== SIGNATURE_BYTES)
    throw new ProtocolError('out_of_range', `a signature has ${SIGNATURE_BYTES} bytes`);
  return writer.raw(signature);
}

function readMember(reader: ByteReader): number {
  const member = reader.u8();
  if (member >= MAX_COMMITTEE) throw new ProtocolError('out_of_range', 'a committee has at most 64 members');
  return member;
}

function writeProposal(writer: ByteWriter, proposal: Proposal): void {
  writeRoundOrNone(writer.height(proposal.height).u32(proposal.round), proposal.validRound);
  writeSignature(writer.raw(proposal.content).u32(proposal.lastRound), proposal.signature);
}

function readProposal(reader: ByteReader): Proposal {
  const height = reader.height();
  const round = readRound(reader);
  const validRound = readRoundOrNone(reader);
  const cut = readCutContent(reader);
  if (cut.header.height !== height || validRound >= round)
    throw new ProtocolError('not_canonical', 'height or valid round of the proposal do not fit');
  const lastRound = readRound(reader);
  return {
    height,
    round,
    validRound,
    cut: nameOf(cut.cutId),
    signers: cut.header.signers,
    content: cut.content,
    lastRound,
    signature: reader.take(SIGNATURE_BYTES),
  };
}

function writeVote(writer: ByteWriter, vote: Vote): void {
  writeCut(writer.u8(vote.kind).height(vote.height).u32(vote.round), vote.cut);
  writeSignature(writer.u8(vote.member), vote.signature);
}

function readVote(reader: ByteReader): Vote {
  return {
    kind: readKind(reader),
    height: reader.height(),
    round: readRound(reader),
    cut: readCut(reader),
    member: readMember(reader),
    signature: reader.take(SIGNATURE_BYTES),
  };
}

function writeProof(writer: ByteWriter, proof: Proof): void {
  writeCut(writer.u8(proof.kind).height(proof.height).u32(proof.round), proof.cut).u8(proof.votes.length);
  for (const { member, signature } of proof.votes) writeSignature(writer.u8(member), signature);
}

function readProof(reader: ByteReader): Proof {
  const vote = { kind: readKind(reader), height: reader.height(), round: readRound(reader), cut: readCut(reader) };
  const votes: Vote[] = [];
  let before = -1;
  for (let left = reader.u8(); left > 0; left--) {
    const member = readMember(reader);
    if (member <= before) throw new ProtocolError('not_canonical', 'members of a proof are in ascending order');
    before = member;
    votes.push({ ...vote, member, signature: reader.take(SIGNATURE_BYTES) });
  }
  return { ...vote, votes };
}

function writeHave(writer: ByteWriter, have: Have): void {
  writer
    .height(have.height)
    .u32(have.round)
    .u64(have.prevotes)
    .u64(have.precommits)
    .u8(have.hasProposal ? 1 : 0);
  writeRoundOrNone(writeRoundOrNone(writer, have.validRound), have.wantPolka);
  writeCut(writer, have.wantCut).u32(have.lastRound).u64(have.lastPrecommits);
}

function readHave(reader: ByteReader): Have {
  const height = reader.height();
  const round = readRound(reader);
  const [prevotes, precommits, flag] = [reader.u64(), reader.u64(), reader.u8()];
  if (flag > 1) throw new ProtocolError('not_canonical', 'a flag is 0 or 1');
  return {
    height,
    round,
    prevotes,
    precommits,
    hasProposal: flag === 1,
    validRound: readRoundOrNone(reader),
    wantPolka: readRoundOrNone(reader),
    wantCut: readCut(reader),
    lastRound: readRound(reader),
    lastPrecommits: reader.u64(),
  };
}

function writeFinalized(writer: ByteWriter, { proof, proposal }: Finalized): void {
  const certificate = encodeCertificate({ round: proof.round, signatures: proof.votes });
  writer.raw(proposal.content).raw(certificate);
}

function readFinalized(reader: ByteReader): Finalized {
  const { cutId, header, content } = readCutContent(reader);
  const certificate = decodeCertificate(reader.take(reader.left));
  return finalizedOf(proofOfCertificate(header.height, nameOf(cutId), certificate), header.signers, content);
}

export function encodeMessage(message: Message): Uint8Array<ArrayBuffer> {
  const writer = new ByteWriter(8_192).u8(MESSAGE_TYPES[message.type]);
  if (message.type === 'proposal') writeProposal(writer, message.proposal);
  else if (message.type === 'vote') writeVote(writer, message.vote);
  else if (message.type === 'proof') writeProof(writer, message.proof);
  else if (message.type === 'have') writeHave(writer, message.have);
  else writeFinalized(writer, message.finalized);
  return writer.done();
}

export function decodeMessage(bytes: Bytes): Message {
  if (bytes.length > MAX_MESSAGE_BYTES)
    throw new ProtocolError('too_long', `a message has at most ${MAX_MESSAGE_BYTES} bytes`);
  const reader = new ByteReader(bytes);
  const message = readMessage(reader.u8(), reader);
  reader.end();
  return message;
}

function readMessage(type: number, reader: ByteReader): Message {
  switch (type) {
    case MESSAGE_TYPES.proposal:
      return { type: 'proposal', proposal: readProposal(reader) };
    case MESSAGE_TYPES.vote:
      return { type: 'vote', vote: readVote(reader) };
    case MESSAGE_TYPES.proof:
      return { type: 'proof', proof: readProof(reader) };
    case MESSAGE_TYPES.have:
      return { type: 'have', have: readHave(reader) };
    case MESSAGE_TYPES.finalized:
      return { type: 'finalized', finalized: readFinalized(reader) };
    default:
      throw new ProtocolError('unsupported_kind', `message type ${type} is not known`);
  }
}
