/**
 * Cuts (ledger rules 30 and 31): the header that identifies a cut and commits to the state after it, the list of the
 * work blocks it registered, and the certificate with which validators make it final.
 */
import { ByteReader, type Bytes, ByteWriter } from '../bytes.ts';
import { voteMessage } from '../consensus/vote.ts';
import { ID_BYTES, id, LABELS } from '../crypto/identifier.ts';
import { merkleRoot } from '../crypto/merkle.ts';
import { ProtocolError } from '../errors.ts';
import { networkById } from '../network.ts';
import { SIGNATURE_BYTES } from '../transactions/transaction.ts';

export const CUT_HEADER_BYTES = 228;
export const CUT_VERSION = 1;
export const MAX_CUT_BLOCKS = 64;
/**
 * Signatures that the blocks of a cut carry together (ledger rule 43), executed or not: they are nearly all of what a
 * cut costs. A full body has 316, and four bodies are what the target aims at.
 */
export const MAX_CUT_SIGNATURES = 1_280;
export const MAX_COMMITTEE = 64;

export type CutHeader = {
  readonly networkId: number;
  readonly height: number;
  readonly timestampMillis: number;
  /** The cut before; of cut 0 the chain id. */
  readonly previousId: Bytes;
  readonly blocksRoot: Bytes;
  readonly stateRoot: Bytes;
  readonly validatorSetId: Bytes;
  readonly blockCount: number;
  /** Who signed the certificate of the cut before: bit i is member i of the committee. */
  readonly signers: bigint;
};

function identifier(bytes: Bytes): Bytes {
  if (bytes.length !== ID_BYTES) throw new ProtocolError('out_of_range', 'an identifier has 48 bytes');
  return bytes;
}

export function encodeCutHeader(header: CutHeader): Uint8Array<ArrayBuffer> {
  if (header.blockCount > MAX_CUT_BLOCKS)
    throw new ProtocolError('out_of_range', `a cut registers at most ${MAX_CUT_BLOCKS} blocks`);
  return new ByteWriter(CUT_HEADER_BYTES)
    .u32(CUT_VERSION)
    .u32(header.networkId)
    .height(header.height)
    .height(header.timestampMillis)
    .raw(identifier(header.previousId))
    .raw(identifier(header.blocksRoot))
    .raw(identifier(header.stateRoot))
    .raw(identifier(header.validatorSetId))
    .u32(header.blockCount)
    .u64(header.signers)
    .done();
}

export function decodeCutHeader(bytes: Bytes): CutHeader {
  const reader = new ByteReader(bytes);
  const version = reader.u32();
  if (version !== CUT_VERSION) throw new ProtocolError('unsupported_version', `cut version ${version}`);
  const header = {
    networkId: networkById(reader.u32()).id,
    height: reader.height(),
    timestampMillis: reader.height(),
    previousId: reader.take(ID_BYTES),
    blocksRoot: reader.take(ID_BYTES),
    stateRoot: reader.take(ID_BYTES),
    validatorSetId: reader.take(ID_BYTES),
    blockCount: reader.u32(),
    signers: reader.u64(),
  };
  if (header.blockCount > MAX_CUT_BLOCKS)
    throw new ProtocolError('out_of_range', `a cut registers at most ${MAX_CUT_BLOCKS} blocks`);
  reader.end();
  return header;
}

export const cutId = (header: Bytes): Uint8Array<ArrayBuffer> => id(LABELS.cut, header);

/** Block identifiers in the order of execution. */
export const blocksRoot = (blockIds: readonly Bytes[]): Bytes => merkleRoot(blockIds);

/** The bytes that a member signs to make a cut final: its precommit of that round. */
export const certificateMessage = (
  chainId: Bytes,
  cut: { readonly height: number; readonly cutId: Bytes },
  round: number,
): Uint8Array<ArrayBuffer> => voteMessage(chainId, { kind: 'precommit', height: cut.height, round, cutId: cut.cutId });

/** Precommits of one round: those of several rounds put together prove nothing, because a member may vote differently in each. */
export type Certificate = { readonly round: number; readonly signatures: readonly MemberSignature[] };
export type MemberSignature = { readonly member: number; readonly signature: Bytes };

/** `u32 round | u8 count`, then `u8 member | signature` in ascending order of members. */
export function encodeCertificate({ round, signatures }: Certificate): Uint8Array<ArrayBuffer> {
  checkMembers(signatures);
  const writer = new ByteWriter(5 + signatures.length * (1 + SIGNATURE_BYTES)).u32(round).u8(signatures.length);
  for (const { member, signature } of signatures) writer.u8(member).raw(signature);
  return writer.done();
}

export function decodeCertificate(bytes: Bytes): Certificate {
  const reader = new ByteReader(bytes);
  const round = reader.u32();
  const signatures: MemberSignature[] = [];
  for (let left = reader.u8(); left > 0; left--)
    signatures.push({ member: reader.u8(), signature: reader.take(SIGNATURE_BYTES) });
  reader.end();
  checkMembers(signatures);
  return { round, signatures };
}

function checkMembers(signatures: readonly MemberSignature[]): void {
  let before = -1;
  for (const { member, signature } of signatures) {
    if (member <= before || member >= MAX_COMMITTEE)
      throw new ProtocolError('not_canonical', 'members of a certificate are in ascending order, each once');
    if (signature.length !== SIGNATURE_BYTES)
      throw new ProtocolError('out_of_range', `a signature has ${SIGNATURE_BYTES} bytes`);
    before = member;
  }
}

export const signersOf = (certificate: Certificate): bigint => {
  let signers = 0n;
  for (const { member } of certificate.signatures) signers |= 1n << BigInt(member);
  return signers;
};
