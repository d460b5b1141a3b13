/**
 * Miner tags and extranonces (ledger rules 7 and 8). An extranonce is `u8 tag length | tag | unique bytes` of at most 40 bytes;
 * the unique bytes make every connection's body, and so every header, its own.
 */
import { ByteReader, type Bytes, ByteWriter, fromUtf8, utf8 } from '../bytes.ts';
import { ProtocolError } from '../errors.ts';

export const MAX_TAG = 20;
export const MAX_EXTRANONCE = 40;

const TAG = /^[A-Za-z0-9 ._\-/:+@#()!]*$/;

export function checkTag(tag: string): string {
  if (!TAG.test(tag))
    throw new ProtocolError('tag_characters', 'a tag may hold letters, digits, spaces and . _ - / : + @ # ( ) !');
  if (tag.length > MAX_TAG) throw new ProtocolError('too_long', `a tag has at most ${MAX_TAG} characters`);
  return tag;
}

export type Extranonce = { readonly tag: string; readonly unique: Uint8Array<ArrayBuffer> };

export function encodeExtranonce(tag: string, unique: Bytes): Uint8Array<ArrayBuffer> {
  const bytes = new ByteWriter(MAX_EXTRANONCE)
    .short(utf8(checkTag(tag)))
    .raw(unique)
    .done();
  if (bytes.length > MAX_EXTRANONCE)
    throw new ProtocolError('too_long', `an extranonce has at most ${MAX_EXTRANONCE} bytes`);
  return bytes;
}

export function decodeExtranonce(bytes: Bytes): Extranonce {
  if (bytes.length > MAX_EXTRANONCE)
    throw new ProtocolError('too_long', `an extranonce has at most ${MAX_EXTRANONCE} bytes`);
  const reader = new ByteReader(bytes);
  const tag = checkTag(fromUtf8(reader.short(MAX_TAG)));
  return { tag, unique: reader.take(reader.left) };
}
