/**
 * Judged shares as bytes, for the message from a listener thread to the main thread: 77 bytes each instead of an object
 * graph to clone. A share's member is named by the handle that the main thread was sent before.
 */

import { HEADER_DIGEST_BYTES } from '../../protocol/books/share-identity.ts';
import { ByteReader, type Bytes, ByteWriter } from '../../protocol/bytes.ts';
import type { JudgedShare, Member } from '../threads/hub.ts';

const SHARE_BYTES = 4 + 4 + 4 + 16 + 8 + 8 + HEADER_DIGEST_BYTES + 8 + 8 + 1;

export function packShares(shares: readonly JudgedShare[]): Uint8Array<ArrayBuffer> {
  const writer = new ByteWriter(SHARE_BYTES * shares.length);
  for (const {
    member,
    generation,
    serial,
    work,
    hashWork,
    cutHeight,
    headerDigest,
    nonce,
    atMillis,
    isPassed,
  } of shares)
    writer
      .u32(member.handle)
      .u32(generation)
      .u32(serial)
      .u128(work)
      .height(hashWork)
      .height(cutHeight)
      .raw(headerDigest)
      .raw(nonce)
      .height(Math.floor(atMillis))
      .u8(isPassed ? 1 : 0);
  return writer.done();
}

export function unpackShares(bytes: Bytes, memberOf: (handle: number) => Member): JudgedShare[] {
  const reader = new ByteReader(bytes);
  const shares: JudgedShare[] = [];
  while (reader.left > 0)
    shares.push({
      member: memberOf(reader.u32()),
      generation: reader.u32(),
      serial: reader.u32(),
      work: reader.u128(),
      hashWork: reader.height(),
      cutHeight: reader.height(),
      headerDigest: reader.take(HEADER_DIGEST_BYTES),
      nonce: reader.take(8),
      atMillis: reader.height(),
      isPassed: reader.u8() === 1,
    });
  return shares;
}
