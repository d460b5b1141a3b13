/** Questions of `/svc/sync/1` about snapshots: which there are, and the bytes of a part. The parts are those of the file, in its order (node/snapshot/snapshot-parts.ts); a part is used once all of it is proven. */
import { ByteReader, type Bytes, ByteWriter } from '../../../protocol/bytes.ts';
import { ID_BYTES } from '../../../protocol/crypto/identifier.ts';
import { ProtocolError } from '../../../protocol/errors.ts';
import type { Place } from '../sync/cut-proof.ts';

/** Snapshots offered by one node: those that it keeps, and a deleted one that is still being fetched. */
export const MAX_OFFERED = 4;
/** Bytes of one part, or of one block, in one answer: two come in time over a line that has 30 KB/s left for a peer. */
export const CHUNK_BYTES = 256 * 1_024;

export type SnapshotQuestion =
  | { readonly type: 'snapshots' }
  /** The bytes of a part from a place on; the first part of a snapshot is 0. */
  | { readonly type: 'part'; readonly height: number; readonly part: number; readonly from: number };

export function encodeOffers(offers: readonly Place[]): Uint8Array<ArrayBuffer> {
  const writer = new ByteWriter(256).u8(offers.length);
  for (const { height, cutId } of offers) writer.height(height).raw(cutId);
  return writer.done();
}

/** Throws a ProtocolError. */
export function decodeOffers(bytes: Bytes): Place[] {
  const reader = new ByteReader(bytes);
  const count = reader.u8();
  if (count > MAX_OFFERED) throw new ProtocolError('out_of_range', 'snapshots: too many');
  const offers = Array.from({ length: count }, () => ({ height: reader.height(), cutId: reader.take(ID_BYTES) }));
  reader.end();
  return offers;
}

/** `length`: of the whole part; 0 where it is not here. */
export type Chunk = { readonly length: number; readonly bytes: Bytes };

export const NO_CHUNK: Chunk = { length: 0, bytes: new Uint8Array(0) };

/** Whether it is what was asked for of a part of this length. */
export const isWholeChunk = (chunk: Chunk, length: number, from: number): boolean =>
  chunk.length === length && chunk.bytes.length === Math.min(CHUNK_BYTES, length - from);

export const encodeChunk = ({ length, bytes }: Chunk): Uint8Array<ArrayBuffer> =>
  new ByteWriter(4 + bytes.length).u32(length).raw(bytes).done();

/** Throws a ProtocolError. */
export function decodeChunk(bytes: Bytes): Chunk {
  const reader = new ByteReader(bytes);
  const length = reader.u32();
  return { length, bytes: reader.view(reader.left) };
}
