/**
 * Cursors of pages: the position where a page ended, and a digest over it and the query. A cursor of another query, or
 * a modified one, is refused.
 */
import { type Bytes, concat, equalBytes, fromHex, toHex, utf8 } from '../../protocol/bytes.ts';
import { id } from '../../protocol/crypto/identifier.ts';

const DIGEST_BYTES = 8;
const LABEL = 'SVC_API_CURSOR_V1';

const digest = (scope: string, place: Bytes): Bytes =>
  id(LABEL, concat(utf8(`${scope}\0`), place)).subarray(0, DIGEST_BYTES);

export const makeCursor = (scope: string, place: Bytes): string => toHex(concat(place, digest(scope, place)));

/** The place of length `bytes`, or undefined. `text` has passed the schema: hex digits, of limited length. */
export function readCursor(scope: string, text: string, bytes: number): Bytes | undefined {
  if (text.length !== 2 * (bytes + DIGEST_BYTES)) return undefined;
  const all = fromHex(text);
  const place = all.subarray(0, bytes);
  return equalBytes(all.subarray(bytes), digest(scope, place)) ? place : undefined;
}
