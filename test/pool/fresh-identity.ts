/** The identity of a share that is no other's. */
import { randomBytes } from 'node:crypto';
import type { ShareIdentity } from '../../pool/journal/journal-record.ts';
import { SHARE_IDENTITY_BYTES } from '../../protocol/books/share-identity.ts';

export const freshIdentity = (anchorHeight = 0): ShareIdentity => ({
  anchorHeight,
  bytes: Uint8Array.from(randomBytes(SHARE_IDENTITY_BYTES)),
});
