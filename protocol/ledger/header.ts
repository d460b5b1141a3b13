/**
 * The work block header (ledger rule 10): 312 bytes, little-endian, the nonce last. A block's identifier is the hash of
 * its header, and so is its PoW input.
 */
import { ByteReader, type Bytes, ByteWriter } from '../bytes.ts';
import { ID_BYTES, id, LABELS } from '../crypto/identifier.ts';
import { ProtocolError } from '../errors.ts';
import { networkById, REGISTRATION_WINDOW } from '../network.ts';
import { HEADER_BYTES } from './header-layout.ts';
import { targetFromBytes, targetToBytes } from './target.ts';

export * from './header-layout.ts';
export const HEADER_VERSION = 1;

export type Header = {
  readonly networkId: number;
  readonly anchorHeight: number;
  readonly timestampMillis: number;
  readonly anchorId: Bytes;
  readonly parentsRoot: Bytes;
  readonly transactionsRoot: Bytes;
  readonly rewardRoot: Bytes;
  /** State root of the anchor. */
  readonly stateRoot: Bytes;
  readonly target: bigint;
  /** The 8 bytes as in the header. */
  readonly nonce: Bytes;
};

export const registrationWindowEnd = (anchorHeight: number): number => anchorHeight + REGISTRATION_WINDOW;

function fixed(bytes: Bytes, length: number): Bytes {
  if (bytes.length !== length)
    throw new ProtocolError('out_of_range', `a field of ${length} bytes has ${bytes.length}`);
  return bytes;
}

export function encodeHeader(header: Header): Uint8Array<ArrayBuffer> {
  return new ByteWriter(HEADER_BYTES)
    .u32(HEADER_VERSION)
    .u32(header.networkId)
    .height(header.anchorHeight)
    .height(registrationWindowEnd(header.anchorHeight))
    .height(header.timestampMillis)
    .raw(fixed(header.anchorId, ID_BYTES))
    .raw(fixed(header.parentsRoot, ID_BYTES))
    .raw(fixed(header.transactionsRoot, ID_BYTES))
    .raw(fixed(header.rewardRoot, ID_BYTES))
    .raw(fixed(header.stateRoot, ID_BYTES))
    .raw(targetToBytes(header.target))
    .raw(fixed(header.nonce, 8))
    .done();
}

export function decodeHeader(bytes: Bytes): Header {
  const reader = new ByteReader(bytes);
  const version = reader.u32();
  if (version !== HEADER_VERSION) throw new ProtocolError('unsupported_version', `header version ${version}`);
  const networkId = networkById(reader.u32()).id;
  const anchorHeight = reader.height();
  if (reader.height() !== registrationWindowEnd(anchorHeight))
    throw new ProtocolError('not_canonical', 'registration_window_end is not anchor_height + 96');
  const header: Header = {
    networkId,
    anchorHeight,
    timestampMillis: reader.height(),
    anchorId: reader.take(ID_BYTES),
    parentsRoot: reader.take(ID_BYTES),
    transactionsRoot: reader.take(ID_BYTES),
    rewardRoot: reader.take(ID_BYTES),
    stateRoot: reader.take(ID_BYTES),
    target: targetFromBytes(reader.take(32)),
    nonce: reader.take(8),
  };
  reader.end();
  return header;
}

export const blockId = (header: Bytes): Uint8Array<ArrayBuffer> => id(LABELS.block, fixed(header, HEADER_BYTES));
