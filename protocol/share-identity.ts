/**
 * What makes two shares the same one (docs/protocol/books.md, rule 14): the header hashed and the nonce in it, whatever
 * job id, connection or server they came by. A header is named by 16 bytes of an identifier over all of it but the nonce.
 */
import { type Bytes, concat } from './bytes.ts';
import { HEADER_BYTES, NONCE_OFFSET } from './header-layout.ts';
import { id, LABELS } from './identifier.ts';

export const HEADER_DIGEST_BYTES = 16;
const NONCE_BYTES = HEADER_BYTES - NONCE_OFFSET;
export const SHARE_IDENTITY_BYTES = HEADER_DIGEST_BYTES + NONCE_BYTES;

/** Of a whole header or of one without its nonce: the nonce does not enter. */
export const headerDigest = (header: Bytes): Uint8Array<ArrayBuffer> =>
  id(LABELS.shareHeader, header.subarray(0, NONCE_OFFSET)).slice(0, HEADER_DIGEST_BYTES);

export const shareIdentity = (digest: Bytes, nonce: Bytes): Uint8Array<ArrayBuffer> => concat(digest, nonce);
