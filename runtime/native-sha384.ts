/**
 * SHA-384 through OpenSSL, for programs that run in Node: the portable one of protocol/identifier.ts is for browsers. A digest comes as text and is written
 * into an array of its own: one that comes as a Buffer takes twice as long, because its memory lies outside the heap.
 */
import { createHash, hash } from 'node:crypto';
import type { Bytes } from '../protocol/bytes.ts';
import { ID_BYTES, useSha384 } from '../protocol/identifier.ts';

/** Buffer's own method, called on any bytes: making a Buffer first would cost more than the copy. */
const { latin1Write } = Buffer.prototype as unknown as {
  latin1Write(this: Uint8Array, text: string, at: number, length: number): number;
};

function digestOf(text: string): Uint8Array<ArrayBuffer> {
  const digest = new Uint8Array(ID_BYTES);
  latin1Write.call(digest, text, 0, ID_BYTES);
  return digest;
}

export const nativeSha384 = (bytes: Bytes): Uint8Array<ArrayBuffer> => digestOf(hash('sha384', bytes, 'binary'));

export const nativeSha384OfTwo = (head: Bytes, rest: Bytes): Uint8Array<ArrayBuffer> =>
  digestOf(createHash('sha384').update(head).update(rest).digest('binary'));

/** From here on every identifier of this process is made by OpenSSL. */
export const useNativeSha384 = (): void => useSha384(nativeSha384, nativeSha384OfTwo);
