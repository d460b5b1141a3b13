/**
 * The identity of a share (docs/protocol/books.md, rule 14): the hashed header and its nonce, whatever the job id,
 * connection or server. A header is identified by 16 bytes of an identifier over all of it except the nonce.
 */
import { type Bytes, concat } from '../bytes.ts';
import { id, LABELS } from '../crypto/identifier.ts';
import { HEADER_BYTES, NONCE_OFFSET } from '../ledger/header-layout.ts';

export const HEADER_DIGEST_BYTES = 16;
const NONCE_BYTES = HEADER_BYTES - NONCE_OFFSET;
export const SHARE_IDENTITY_BYTES = HEADER_DIGEST_BYTES + NONCE_BYTES;

/** Accepts a header with or without its nonce: the nonce is not hashed. */
export const headerDigest = (header: Bytes): Uint8Array<ArrayBuffer> =>
  id(LABELS.shareHeader, header.subarray(0, NONCE_OFFSET)).slice(0, HEADER_DIGEST_BYTES);

export const shareIdentity = (digest: Bytes, nonce: Bytes): Uint8Array<ArrayBuffer> => concat(digest, nonce);
