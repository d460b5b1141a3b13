/**
 * Keys and values of the address index. Integers in keys are big-endian, so that the order of the keys is the order of
 * heights; one letter tells the kinds apart:
 *
 * | key | value |
 * |---|---|
 * | `h` | format u32, indexed height u64 |
 * | `b` address | balance u64, unspent outputs u64, height of the last change u64, then up to 15 events not in a page yet |
 * | `u` address, outpoint | amount u64, source u8, height u64 |
 * | `e` address, height and place of its first event | a page of 16 events, oldest first |
 * | `c` height, place | event, address |
 * | `n` height, place | transaction: id, block id, outcome u8, fee u64, mass u32, sum of outputs u64, its index in the block u32, place of the change of its first input u32 |
 * | `w` height, place | identifier of a block this cut registered |
 * | `k` address | height of the cut that registered the address's key u64 |
 *
 * An event is kind u8, source u8, amount u64, outpoint 52 bytes, the transaction that made or spent the output, and height and place once
 * more. Events are stored in pages because the cost of a read is the number of records, not their size: a history of 100 is 7 records.
 */
import { ADDRESS_PAYLOAD_BYTES } from '../../protocol/address.ts';
import { CHANGE_KINDS } from '../../protocol/api/documents.ts';
import type { Bytes } from '../../protocol/bytes.ts';
import { ID_BYTES } from '../../protocol/crypto/identifier.ts';
import type { Outpoint } from '../../protocol/transactions/transaction.ts';
import { OUTPUT_SOURCES, type OutputSource } from '../ledger/effects.ts';

export const INDEX_NAME = 'addresses';
export const INDEX_FORMAT = 2;
export const OUTPOINT_BYTES = ID_BYTES + 4;
export const PLACE_BYTES = 12;

const kind = (letter: string): number => letter.charCodeAt(0);
export const SPACES = {
  head: kind('h'),
  balance: kind('b'),
  unspent: kind('u'),
  event: kind('e'),
  change: kind('c'),
  transaction: kind('n'),
  block: kind('w'),
  key: kind('k'),
} as const;
export type Space = (typeof SPACES)[keyof typeof SPACES];

export const HEAD_KEY: Buffer = Buffer.from([SPACES.head]);

/** A key of a space: the letter, then the parts as they are. */
export function key(space: Space, ...parts: Bytes[]): Buffer {
  let length = 1;
  for (const part of parts) length += part.length;
  const bytes = Buffer.allocUnsafe(length);
  bytes[0] = space;
  let at = 1;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}

/** The first key after every key that starts with `prefix`; no prefix used here is all 0xff. */
export function afterPrefix(prefix: Bytes): Buffer {
  const bytes = Buffer.from(prefix);
  let at = bytes.length - 1;
  while (bytes[at] === 0xff) at--;
  bytes[at] = (bytes[at] as number) + 1;
  return bytes.subarray(0, at + 1);
}

/** Height and place within the cut: orders everything that ever happened. */
export type Place = { readonly height: number; readonly place: number };

export function placeBytes(height: number, place: number): Buffer {
  const bytes = Buffer.allocUnsafe(PLACE_BYTES);
  bytes.writeBigUInt64BE(BigInt(height), 0);
  bytes.writeUInt32BE(place, 8);
  return bytes;
}

/** The place that ends a key, or these bytes of it. */
export function placeOf(key: Bytes, end = key.length): Place {
  const word = (at: number): number =>
    (((key[at] as number) << 24) |
      ((key[at + 1] as number) << 16) |
      ((key[at + 2] as number) << 8) |
      (key[at + 3] as number)) >>>
    0;
  const at = end - PLACE_BYTES;
  return { height: word(at) * 2 ** 32 + word(at + 4), place: word(at + 8) };
}

export function outpointKey(outpoint: Outpoint): Buffer {
  const bytes = Buffer.allocUnsafe(OUTPOINT_BYTES);
  bytes.set(outpoint.transactionId, 0);
  bytes.writeUInt32BE(outpoint.outputIndex, ID_BYTES);
  return bytes;
}

export const EVENT_BYTES = 1 + 1 + 8 + OUTPOINT_BYTES + ID_BYTES + PLACE_BYTES;
export const BY_AT = 10 + OUTPOINT_BYTES;
export const PLACE_AT = BY_AT + ID_BYTES;

export type IndexedEvent = {
  readonly kind: (typeof CHANGE_KINDS)[number];
  readonly source: OutputSource;
  readonly amount: bigint;
  readonly outpoint: Outpoint;
  /** The transaction that made or spent the output. */
  readonly transactionId: Bytes;
};

/** Events of a page. More make reads cheaper and every cut's write larger: an address that a cut touches writes its open page again. */
export const PAGE_EVENTS = 16;

/** The events of a page, or of the part of a balance record that follows its figures. */
export function splitEvents(page: Bytes, from = 0): Uint8Array[] {
  const events: Uint8Array[] = [];
  for (let at = from; at < page.length; at += EVENT_BYTES) events.push(page.subarray(at, at + EVENT_BYTES));
  return events;
}

/** The bytes that order events, as `placeBytes` makes them. */
export const eventOrder = (event: Bytes): Bytes => event.subarray(PLACE_AT, EVENT_BYTES);

export const eventPlace = (value: Bytes): Place => placeOf(value, EVENT_BYTES);

export function encodeEvent(event: IndexedEvent, where: Bytes, address?: Bytes): Buffer {
  const bytes = Buffer.allocUnsafe(EVENT_BYTES + (address === undefined ? 0 : ADDRESS_PAYLOAD_BYTES));
  bytes[0] = CHANGE_KINDS.indexOf(event.kind);
  bytes[1] = OUTPUT_SOURCES.indexOf(event.source);
  bytes.writeBigUInt64LE(event.amount, 2);
  bytes.set(outpointKey(event.outpoint), 10);
  bytes.set(event.transactionId, BY_AT);
  bytes.set(where, PLACE_AT);
  if (address !== undefined) bytes.set(address, EVENT_BYTES);
  return bytes;
}

export const asBuffer = (bytes: Bytes): Buffer => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);

export function decodeEvent(value: Bytes): IndexedEvent {
  const bytes = asBuffer(value);
  return {
    kind: CHANGE_KINDS[bytes[0] as number] as IndexedEvent['kind'],
    source: OUTPUT_SOURCES[bytes[1] as number] as OutputSource,
    amount: bytes.readBigUInt64LE(2),
    outpoint: decodeOutpoint(bytes.subarray(10, BY_AT)),
    transactionId: bytes.subarray(BY_AT, PLACE_AT),
  };
}

export function decodeOutpoint(value: Bytes): Outpoint {
  const bytes = asBuffer(value);
  return { transactionId: bytes.subarray(0, ID_BYTES), outputIndex: bytes.readUInt32BE(ID_BYTES) };
}
