/**
 * Keys and values of the address index. Integers in keys are big-endian, so that the order of the keys is the order of
 * heights; one letter tells the kinds apart:
 *
 * | key | value |
 * |---|---|
 * | `h` | format u32, indexed height u64 |
 * | `b` address | balance u64, unspent outputs u64 |
 * | `u` address, outpoint | amount u64, source u8, height u64 |
 * | `e` address, height, place | event |
 * | `c` height, place | event, address |
 * | `n` height, place | transaction: id, block id, outcome u8, fee u64, mass u32, sum of outputs u64 |
 * | `w` height, place | identifier of a block this cut registered |
 * | `k` address | height of the cut that registered the address's key u64 |
 *
 * An event is kind u8, source u8, amount u64, outpoint 52 bytes and the transaction that made or spent the output.
 */
import { ADDRESS_PAYLOAD_BYTES } from '../../protocol/address.ts';
import { CHANGE_KINDS } from '../../protocol/api/documents.ts';
import type { Bytes } from '../../protocol/bytes.ts';
import { ID_BYTES } from '../../protocol/identifier.ts';
import type { Outpoint } from '../../protocol/transaction.ts';
import { OUTPUT_SOURCES, type OutputSource } from '../ledger/effects.ts';

export const INDEX_NAME = 'addresses';
export const INDEX_FORMAT = 1;
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

/** The place that ends a key. */
export function placeOf(key: Bytes): Place {
  const view = new DataView(key.buffer, key.byteOffset + key.length - PLACE_BYTES, PLACE_BYTES);
  return { height: Number(view.getBigUint64(0)), place: view.getUint32(8) };
}

export function outpointKey(outpoint: Outpoint): Buffer {
  const bytes = Buffer.allocUnsafe(OUTPOINT_BYTES);
  bytes.set(outpoint.transactionId, 0);
  bytes.writeUInt32BE(outpoint.outputIndex, ID_BYTES);
  return bytes;
}

export const EVENT_BYTES = 1 + 1 + 8 + OUTPOINT_BYTES + ID_BYTES;

export type IndexedEvent = {
  readonly kind: (typeof CHANGE_KINDS)[number];
  readonly source: OutputSource;
  readonly amount: bigint;
  readonly outpoint: Outpoint;
  /** The transaction that made or spent the output. */
  readonly transactionId: Bytes;
};

export function encodeEvent(event: IndexedEvent, address?: Bytes): Buffer {
  const bytes = Buffer.allocUnsafe(EVENT_BYTES + (address === undefined ? 0 : ADDRESS_PAYLOAD_BYTES));
  bytes[0] = CHANGE_KINDS.indexOf(event.kind);
  bytes[1] = OUTPUT_SOURCES.indexOf(event.source);
  bytes.writeBigUInt64LE(event.amount, 2);
  bytes.set(outpointKey(event.outpoint), 10);
  bytes.set(event.transactionId, 10 + OUTPOINT_BYTES);
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
    outpoint: decodeOutpoint(bytes.subarray(10, 10 + OUTPOINT_BYTES)),
    transactionId: bytes.subarray(10 + OUTPOINT_BYTES, EVENT_BYTES),
  };
}

export function decodeOutpoint(value: Bytes): Outpoint {
  const bytes = asBuffer(value);
  return { transactionId: bytes.subarray(0, ID_BYTES), outputIndex: bytes.readUInt32BE(ID_BYTES) };
}
