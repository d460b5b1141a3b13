/**
 * Bytes and hexadecimal text, and the two cursors every binary format of this project is read and written with.
 * Integers are little-endian. Reading past the end, or leaving bytes behind, is a ProtocolError.
 */
import { ProtocolError } from './errors.ts';

export type Bytes = Uint8Array<ArrayBufferLike>;

const DIGITS = Uint8Array.from('0123456789abcdef', (digit) => digit.charCodeAt(0));
const ascii = new TextDecoder();

/** Of this many bytes: a decoder takes a microsecond before its first character. */
const SHORT = 64;

/** Made in one call: text concatenated byte by byte stays a rope in memory, twenty times larger. */
export function toHex(bytes: Bytes): string {
  if (bytes.length <= SHORT) {
    const codes = new Array<number>(2 * bytes.length);
    for (let i = 0; i < bytes.length; i++) {
      const byte = bytes[i] as number;
      codes[2 * i] = DIGITS[byte >> 4] as number;
      codes[2 * i + 1] = DIGITS[byte & 15] as number;
    }
    return String.fromCharCode(...codes);
  }
  const text = new Uint8Array(2 * bytes.length);
  for (let i = 0; i < bytes.length; i++) {
    const byte = bytes[i] as number;
    text[2 * i] = DIGITS[byte >> 4] as number;
    text[2 * i + 1] = DIGITS[byte & 15] as number;
  }
  return ascii.decode(text);
}

/** The value of each digit's code; -1 for any other. */
const VALUES = Int8Array.from({ length: 128 }, (_, code) => DIGITS.indexOf(code));

/** Lower-case only: a value has exactly one spelling. */
export function fromHex(text: string, length?: number): Uint8Array<ArrayBuffer> {
  if (text.length % 2 !== 0) throw new ProtocolError('bad_hex', 'hex text has an odd number of characters');
  if (length !== undefined && text.length !== length * 2)
    throw new ProtocolError('bad_hex', `expected ${length * 2} hex characters, got ${text.length}`);
  const bytes = new Uint8Array(text.length / 2);
  for (let i = 0; i < bytes.length; i++) {
    const high = VALUES[text.charCodeAt(2 * i)] ?? -1;
    const byte = (high << 4) | (VALUES[text.charCodeAt(2 * i + 1)] ?? -1);
    if (byte < 0) throw new ProtocolError('bad_hex', 'hex text may hold only 0-9 and a-f');
    bytes[i] = byte;
  }
  return bytes;
}

export function concat(...parts: Bytes[]): Uint8Array<ArrayBuffer> {
  let length = 0;
  for (const part of parts) length += part.length;
  const all = new Uint8Array(length);
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}

export function equalBytes(a: Bytes, b: Bytes): boolean {
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false;
  return true;
}

/** Orders byte strings as the ledger does: byte by byte, the shorter first. */
export function compareBytes(a: Bytes, b: Bytes): number {
  const shared = Math.min(a.length, b.length);
  for (let i = 0; i < shared; i++) if (a[i] !== b[i]) return (a[i] as number) - (b[i] as number);
  return a.length - b.length;
}

const encoder = new TextEncoder();
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

export const utf8 = (text: string): Uint8Array<ArrayBuffer> => encoder.encode(text);

export function fromUtf8(bytes: Bytes): string {
  try {
    return decoder.decode(bytes);
  } catch {
    throw new ProtocolError('bad_utf8', 'text is not valid UTF-8');
  }
}

export function bigintToBytesBE(value: bigint, length: number): Uint8Array<ArrayBuffer> {
  if (value < 0n || value >> BigInt(8 * length) !== 0n)
    throw new ProtocolError('out_of_range', `integer does not fit ${length} bytes`);
  return fromHex(value.toString(16).padStart(2 * length, '0'));
}

export const bigintFromBytesBE = (bytes: Bytes): bigint => (bytes.length === 0 ? 0n : BigInt(`0x${toHex(bytes)}`));

/** Arrays up to this size are in V8's heap until their buffer is accessed. */
const SMALL = 64;

export class ByteReader {
  readonly bytes: Bytes;
  /** Created for the first bigint: most values need none, and a view moves a small array out of the heap. */
  #view: DataView | null = null;
  at = 0;

  constructor(bytes: Bytes) {
    this.bytes = bytes;
  }

  get left(): number {
    return this.bytes.length - this.at;
  }

  #advance(count: number): number {
    if (count > this.left) throw new ProtocolError('truncated', `${count} bytes wanted, ${this.left} left`);
    const from = this.at;
    this.at += count;
    return from;
  }

  u8(): number {
    return this.bytes[this.#advance(1)] as number;
  }

  u16(): number {
    const at = this.#advance(2);
    return (this.bytes[at] as number) | ((this.bytes[at + 1] as number) << 8);
  }

  u32(): number {
    const { bytes } = this;
    const at = this.#advance(4);
    const low = (bytes[at] as number) | ((bytes[at + 1] as number) << 8) | ((bytes[at + 2] as number) << 16);
    return (low | ((bytes[at + 3] as number) << 24)) >>> 0;
  }

  u64(): bigint {
    const { buffer, byteOffset, byteLength } = this.bytes;
    this.#view ??= new DataView(buffer, byteOffset, byteLength);
    return this.#view.getBigUint64(this.#advance(8), true);
  }

  u128(): bigint {
    const low = this.u64();
    return low | (this.u64() << 64n);
  }

  /** A 64-bit height, count or time, which must be a safe integer. */
  height(): number {
    if (this.left < 8) this.#advance(8);
    const low = this.u32();
    const value = this.u32() * 0x1_0000_0000 + low;
    if (value > Number.MAX_SAFE_INTEGER) throw new ProtocolError('out_of_range', 'height is too large');
    return value;
  }

  /** A copy, so that a value never keeps a network buffer alive. */
  take(count: number): Uint8Array<ArrayBuffer> {
    const from = this.#advance(count);
    if (count > SMALL) return new Uint8Array(this.bytes.subarray(from, from + count));
    // Quicker than a view and a copy of it.
    const { bytes } = this;
    const copy = new Uint8Array(count);
    for (let i = 0; i < count; i++) copy[i] = bytes[from + i] as number;
    return copy;
  }

  /** A part of the bytes that are read, not a copy: for values that live as long as they do. */
  view(count: number): Bytes {
    const from = this.#advance(count);
    return new Uint8Array(this.bytes.buffer, this.bytes.byteOffset + from, count);
  }

  /** `u8 length | bytes`. */
  short(max = 255): Uint8Array<ArrayBuffer> {
    const length = this.u8();
    if (length > max) throw new ProtocolError('too_long', `field of ${length} bytes, at most ${max} allowed`);
    return this.take(length);
  }

  /** `u8 length | UTF-8`. */
  text(max = 255): string {
    return fromUtf8(this.short(max));
  }

  end(): void {
    if (this.left !== 0) throw new ProtocolError('trailing_bytes', `${this.left} bytes follow the value`);
  }
}

export class ByteWriter {
  #bytes: Uint8Array<ArrayBuffer>;
  /** Made for the first bigint: without one, an array of at most 64 bytes stays in the heap, at half the memory and a third of the time. */
  #view: DataView | null = null;
  #at = 0;

  constructor(capacity = 256) {
    this.#bytes = new Uint8Array(capacity);
  }

  /** Growing replaces buffer and view, so the position is taken before either is used. */
  #reserve(count: number): number {
    const need = this.#at + count;
    if (need > this.#bytes.length) {
      const grown = new Uint8Array(Math.max(need, 2 * this.#bytes.length));
      grown.set(this.#bytes.subarray(0, this.#at));
      this.#bytes = grown;
      this.#view = null;
    }
    const from = this.#at;
    this.#at = need;
    return from;
  }

  #integer(value: number, limit: number): number {
    if (!Number.isInteger(value) || value < 0 || value >= limit)
      throw new ProtocolError('out_of_range', `${value} is not an integer from 0 to ${limit - 1}`);
    return value;
  }

  /** The lowest 32 bits. */
  #put32(at: number, value: number): void {
    const bytes = this.#bytes;
    bytes[at] = value;
    bytes[at + 1] = value >>> 8;
    bytes[at + 2] = value >>> 16;
    bytes[at + 3] = value >>> 24;
  }

  u8(value: number): this {
    const at = this.#reserve(1);
    this.#bytes[at] = this.#integer(value, 0x100);
    return this;
  }

  u16(value: number): this {
    const at = this.#reserve(2);
    this.#bytes[at] = this.#integer(value, 0x10000);
    this.#bytes[at + 1] = value >>> 8;
    return this;
  }

  u32(value: number): this {
    const at = this.#reserve(4);
    this.#put32(at, this.#integer(value, 0x100000000));
    return this;
  }

  u64(value: bigint): this {
    if (value < 0n || value >> 64n !== 0n) throw new ProtocolError('out_of_range', `${value} does not fit 64 bits`);
    const at = this.#reserve(8);
    this.#view ??= new DataView(this.#bytes.buffer);
    this.#view.setBigUint64(at, value, true);
    return this;
  }

  u128(value: bigint): this {
    if (value < 0n || value >> 128n !== 0n) throw new ProtocolError('out_of_range', `${value} does not fit 128 bits`);
    return this.u64(value & 0xffffffffffffffffn).u64(value >> 64n);
  }

  height(value: number): this {
    const at = this.#reserve(8);
    this.#put32(at, this.#integer(value, Number.MAX_SAFE_INTEGER + 1));
    this.#put32(at + 4, Math.floor(value / 0x1_0000_0000));
    return this;
  }

  raw(bytes: Bytes): this {
    const at = this.#reserve(bytes.length);
    this.#bytes.set(bytes, at);
    return this;
  }

  short(bytes: Bytes, max = 255): this {
    if (bytes.length > max)
      throw new ProtocolError('too_long', `field of ${bytes.length} bytes, at most ${max} allowed`);
    return this.u8(bytes.length).raw(bytes);
  }

  text(value: string, max = 255): this {
    return this.short(utf8(value), max);
  }

  /** Without a copy when the capacity was met exactly: later writes go to new memory. */
  done(): Uint8Array<ArrayBuffer> {
    return this.#at === this.#bytes.length ? this.#bytes : this.#bytes.slice(0, this.#at);
  }
}
