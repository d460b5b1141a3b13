/**
 * Cuts (ledger rules 30 and 31): the header that names a cut and commits the state after it, the list of the work blocks it
 * registered, and the certificate with which validators make it final.
 */
import { ByteReader, type Bytes, ByteWriter, concat } from './bytes.ts';
import { ProtocolError } from './errors.ts';
import { ID_BYTES, id, LABELS } from './identifier.ts';
import { merkleRoot } from './merkle.ts';
import { networkById } from './network.ts';
import { SIGNATURE_BYTES } from './transaction.ts';

export const CUT_HEADER_BYTES = 228;
export const CUT_VERSION = 1;
export const MAX_CUT_BLOCKS = 64;
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

/** What a validator signs to make a cut final. */
export const certificateMessage = (chainId: Bytes, cut: Bytes): Uint8Array<ArrayBuffer> =>
  id(LABELS.certificate, concat(chainId, cut));

export type Certificate = readonly { readonly member: number; readonly signature: Bytes }[];

/** `u8 count`, then `u8 member | signature` in ascending order of members. */
export function encodeCertificate(certificate: Certificate): Uint8Array<ArrayBuffer> {
  const writer = new ByteWriter(1 + certificate.length * (1 + SIGNATURE_BYTES)).u8(certificate.length);
  checkMembers(certificate);
  for (const { member, signature } of certificate) writer.u8(member).raw(signature);
  return writer.done();
}

export function decodeCertificate(bytes: Bytes): Certificate {
  const reader = new ByteReader(bytes);
  const certificate: { member: number; signature: Bytes }[] = [];
  for (let left = reader.u8(); left > 0; left--)
    certificate.push({ member: reader.u8(), signature: reader.take(SIGNATURE_BYTES) });
  reader.end();
  checkMembers(certificate);
  return certificate;
}

function checkMembers(certificate: Certificate): void {
  let before = -1;
  for (const { member, signature } of certificate) {
    if (member <= before || member >= MAX_COMMITTEE)
      throw new ProtocolError('not_canonical', 'members of a certificate are in ascending order, each once');
    if (signature.length !== SIGNATURE_BYTES)
      throw new ProtocolError('out_of_range', `a signature has ${SIGNATURE_BYTES} bytes`);
    before = member;
  }
}

export const signersOf = (certificate: Certificate): bigint => {
  let signers = 0n;
  for (const { member } of certificate) signers |= 1n << BigInt(member);
  return signers;
};
