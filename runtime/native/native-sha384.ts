/**
 * SHA-384 through OpenSSL, for programs that run in Node: the portable one of protocol/crypto/identifier.ts is for browsers. A digest comes as text and is written
 * into an array of its own, character by character: one that comes as a Buffer, or is filled by a method of Buffer, has its memory outside
 * of the heap, which takes more of it and more time.
 */
import { createHash, hash } from 'node:crypto';
import type { Bytes } from '../../protocol/bytes.ts';
import { ID_BYTES, useSha384 } from '../../protocol/crypto/identifier.ts';

function digestOf(text: string): Uint8Array<ArrayBuffer> {
  const digest = new Uint8Array(ID_BYTES);
  for (let i = 0; i < ID_BYTES; i++) digest[i] = text.charCodeAt(i);
  return digest;
}

export const nativeSha384 = (bytes: Bytes): Uint8Array<ArrayBuffer> => digestOf(hash('sha384', bytes, 'binary'));

export const nativeSha384OfTwo = (head: Bytes, rest: Bytes): Uint8Array<ArrayBuffer> =>
  digestOf(createHash('sha384').update(head).update(rest).digest('binary'));

/** From here on every identifier of this process is made by OpenSSL. */
export const useNativeSha384 = (): void => useSha384(nativeSha384, nativeSha384OfTwo);
