/** Bytes that look random but follow from a name and a length alone: the inputs of all generated vectors. */
import { sha384 } from '@noble/hashes/sha2.js';
import { utf8 } from '../../protocol/bytes.ts';

export function pattern(name: string, length: number): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(length);
  for (let block = 0, at = 0; at < length; block++) {
    const digest = sha384(utf8(`${name}/${block}`)).subarray(0, Math.min(48, length - at));
    bytes.set(digest, at);
    at += digest.length;
  }
  return bytes;
}
