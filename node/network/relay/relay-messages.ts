/**
 * Relay messages: identifiers of transactions, and blocks without their transactions, by gossip; and the requests of
 * `/svc/relay/1` for missing parts. Blocks carry the first 8 bytes of each transaction's identifier: a collision or
 * other witnesses show in the root of the header, and then the whole body is asked for.
 */
import { ADDRESS_PAYLOAD_BYTES } from '../../../protocol/address.ts';
import { ByteReader, type Bytes, ByteWriter } from '../../../protocol/bytes.ts';
import { ID_BYTES } from '../../../protocol/crypto/identifier.ts';
import { ProtocolError } from '../../../protocol/errors.ts';
import { type Body, MAX_BODY_TRANSACTIONS, MAX_PARENTS } from '../../../protocol/ledger/body.ts';
import { HEADER_BYTES } from '../../../protocol/ledger/header.ts';
import { MAX_EXTRANONCE } from '../../../protocol/ledger/tag.ts';
import { MAX_TRANSACTION_BYTES, transactionIdOfWire } from '../../../protocol/transactions/transaction.ts';
import { distinctIds } from '../sync/sync-messages.ts';

export const MAX_TRANSACTIONS = 256;
export const SALT_BYTES = 8;
const SHORT_ID_BYTES = 8;

const counted = (value: number, least: number, most: number): number => {
  if (value < least || value > most)
    throw new ProtocolError('out_of_range', `${value} where ${least} to ${most} may be`);
  return value;
};

function encodeIds(ids: readonly Bytes[]): Uint8Array<ArrayBuffer> {
  const writer = new ByteWriter(2 + ids.length * ID_BYTES).u16(ids.length);
  for (const id of ids) writer.raw(id);
  return writer.done();
}

function readIds(reader: ByteReader): Bytes[] {
  const count = counted(reader.u16(), 1, MAX_TRANSACTIONS);
  return distinctIds(Array.from({ length: count }, () => reader.take(ID_BYTES)));
}

/**
 * A batch by gossip. The salt makes it another message than a batch with the same identifiers that somebody else sent:
 * of two equal messages gossip delivers the first alone.
 */
export const encodeBatch = (salt: Bytes, ids: readonly Bytes[]): Uint8Array<ArrayBuffer> =>
  new ByteWriter(SALT_BYTES + 2 + ids.length * ID_BYTES).raw(salt).raw(encodeIds(ids)).done();

/** Throws a ProtocolError. */
export function decodeBatch(bytes: Bytes): Bytes[] {
  const reader = new ByteReader(bytes);
  reader.take(SALT_BYTES);
  const ids = readIds(reader);
  reader.end();
  return ids;
}

export type ShortBlock = Pick<Body, 'payout' | 'extranonce' | 'parents'> & {
  readonly header: Bytes;
  /** Names of 8 bytes each, as keys of maps. */
  readonly shortIds: readonly string[];
};

export const shortName = (id: Bytes): string =>
  Buffer.from(id.buffer, id.byteOffset, SHORT_ID_BYTES).toString('latin1');

export function encodeShortBlock(
  header: Bytes,
  { payout, extranonce, parents, transactions }: Body,
): Uint8Array<ArrayBuffer> {
  const writer = new ByteWriter(HEADER_BYTES + 1_024)
    .raw(header)
    .raw(payout)
    .short(extranonce, MAX_EXTRANONCE)
    .u8(parents.length);
  for (const parent of parents) writer.raw(parent);
  writer.u16(transactions.length);
  for (const wire of transactions) writer.raw(transactionIdOfWire(wire).subarray(0, SHORT_ID_BYTES));
  return writer.done();
}

/** Throws a ProtocolError. */
export function decodeShortBlock(bytes: Bytes): ShortBlock {
  const reader = new ByteReader(bytes);
  const header = reader.take(HEADER_BYTES);
  const payout = reader.take(ADDRESS_PAYLOAD_BYTES);
  const extranonce = reader.short(MAX_EXTRANONCE);
  const parents = Array.from({ length: counted(reader.u8(), 0, MAX_PARENTS) }, () => reader.take(ID_BYTES));
  const count = counted(reader.u16(), 0, MAX_BODY_TRANSACTIONS);
  const shortIds = Array.from({ length: count }, () => Buffer.from(reader.take(SHORT_ID_BYTES)).toString('latin1'));
  reader.end();
  return { header, payout, extranonce, parents, shortIds };
}

export type RelayQuestion =
  | { readonly type: 'transactions'; readonly ids: readonly Bytes[] }
  /** Transactions of a block by their indexes. */
  | { readonly type: 'carried'; readonly block: Bytes; readonly indexes: readonly number[] }
  /** A whole block. */
  | { readonly type: 'block'; readonly block: Bytes }
  /** Identifiers of waiting transactions and blocks. */
  | { readonly type: 'waiting' };

const TYPES = { transactions: 1, carried: 2, block: 3, waiting: 4 } as const;

export function encodeRelayQuestion(question: RelayQuestion): Uint8Array<ArrayBuffer> {
  const writer = new ByteWriter(64).u8(TYPES[question.type]);
  if (question.type === 'waiting') return writer.done();
  if (question.type === 'transactions') return writer.raw(encodeIds(question.ids)).done();
  writer.raw(question.block);
  if (question.type === 'carried') {
    writer.u16(question.indexes.length);
    for (const index of question.indexes) writer.u16(index);
  }
  return writer.done();
}

/** Throws a ProtocolError. */
export function decodeRelayQuestion(bytes: Bytes): RelayQuestion {
  const reader = new ByteReader(bytes);
  const question = readQuestion(reader);
  reader.end();
  return question;
}

function readQuestion(reader: ByteReader): RelayQuestion {
  const type = reader.u8();
  if (type === TYPES.waiting) return { type: 'waiting' };
  if (type === TYPES.transactions) return { type: 'transactions', ids: readIds(reader) };
  if (type !== TYPES.block && type !== TYPES.carried)
    throw new ProtocolError('unsupported_version', `question ${type}`);
  const block = reader.take(ID_BYTES);
  if (type === TYPES.block) return { type: 'block', block };
  const count = counted(reader.u16(), 1, MAX_BODY_TRANSACTIONS);
  const indexes = Array.from({ length: count }, () => reader.u16());
  if (indexes.some((index, i) => i > 0 && index <= (indexes[i - 1] as number)))
    throw new ProtocolError('not_canonical', 'indexes are named once, in ascending order');
  return { type: 'carried', block, indexes };
}

/** In the order of the question; empty for one that is not here, or for which there was no room. */
export function encodeWires(wires: readonly (Bytes | undefined)[]): Uint8Array<ArrayBuffer> {
  const writer = new ByteWriter(4_096).u16(wires.length);
  for (const wire of wires) writer.u32(wire?.length ?? 0).raw(wire ?? new Uint8Array(0));
  return writer.done();
}

/** Throws a ProtocolError. */
export function decodeWires(bytes: Bytes, count: number): (Bytes | undefined)[] {
  const reader = new ByteReader(bytes);
  if (reader.u16() !== count) throw new ProtocolError('out_of_range', 'another number of transactions than asked for');
  const wires = Array.from({ length: count }, () => {
    const length = counted(reader.u32(), 0, MAX_TRANSACTION_BYTES);
    return length === 0 ? undefined : reader.take(length);
  });
  reader.end();
  return wires;
}

export const MAX_WAITING = { transactions: 4_096, blocks: 128 } as const;

export type Waiting = { readonly transactions: readonly Bytes[]; readonly blocks: readonly Bytes[] };

/** `u16 count | transaction ids | u16 count | block ids`. */
export function encodeWaiting({ transactions, blocks }: Waiting): Uint8Array<ArrayBuffer> {
  const writer = new ByteWriter(4_096);
  for (const ids of [transactions, blocks]) {
    writer.u16(ids.length);
    for (const id of ids) writer.raw(id);
  }
  return writer.done();
}

/** Throws a ProtocolError. */
export function decodeWaiting(bytes: Bytes): Waiting {
  const reader = new ByteReader(bytes);
  const read = (most: number) => Array.from({ length: counted(reader.u16(), 0, most) }, () => reader.take(ID_BYTES));
  const transactions = read(MAX_WAITING.transactions);
  const blocks = read(MAX_WAITING.blocks);
  reader.end();
  return { transactions, blocks };
}
