/**
 * The work block body (ledger rule 12): payout address, extranonce, parents and transactions. Its roots are in the
 * header. A body must not be used for a second block; its identifier shows such a reuse.
 */
import { ADDRESS_PAYLOAD_BYTES, payloadKind } from '../address.ts';
import { ByteReader, type Bytes, ByteWriter, compareBytes } from '../bytes.ts';
import { ID_BYTES, id, LABELS } from '../crypto/identifier.ts';
import { merkleRoot } from '../crypto/merkle.ts';
import { ProtocolError } from '../errors.ts';
import { wireBytesOf } from '../transactions/fee.ts';
import { MAX_TRANSACTION_BYTES } from '../transactions/transaction.ts';
import { rewardRoot } from './reward.ts';
import { decodeExtranonce, MAX_EXTRANONCE } from './tag.ts';

export const MAX_BODY_BYTES = 1024 * 1024;
export const MAX_PARENTS = 8;
const BODY_VERSION = 1;
const LENGTH_BYTES = 4;
/** One input, no output, a referenced key. */
export const MIN_TRANSACTION_BYTES = wireBytesOf({ witnesses: ['referenced'], inputs: 1, outputs: 0, payloadBytes: 0 });
/** No body has more: a mebibyte of shorter ones would take seconds to hash. */
export const MAX_BODY_TRANSACTIONS = Math.floor(MAX_BODY_BYTES / (LENGTH_BYTES + MIN_TRANSACTION_BYTES));

export type Body = {
  readonly payout: Bytes;
  readonly extranonce: Bytes;
  /** Block identifiers in ascending order. */
  readonly parents: readonly Bytes[];
  /** Transactions in wire form, in the order the block carries them. */
  readonly transactions: readonly Bytes[];
};

const headBytes = (body: Body): number =>
  1 + body.payout.length + 1 + body.extranonce.length + 1 + body.parents.length * ID_BYTES + 4;

/** How long the encoded body is. */
export function bodyBytes(body: Body): number {
  let size = headBytes(body);
  for (const wire of body.transactions) size += LENGTH_BYTES + wire.length;
  return size;
}

function writeHead(writer: ByteWriter, body: Body): ByteWriter {
  payloadKind(body.payout);
  checkParents(body.parents);
  writer.u8(BODY_VERSION).raw(body.payout).short(body.extranonce, MAX_EXTRANONCE).u8(body.parents.length);
  for (const parent of body.parents) writer.raw(parent);
  return writer.u32(body.transactions.length);
}

/** The bytes before the transactions, each of which is `u32 length | wire form`: for callers that write the body in pieces. */
export const encodeBodyHead = (body: Body): Uint8Array<ArrayBuffer> =>
  writeHead(new ByteWriter(headBytes(body)), body).done();

export function encodeBody(body: Body): Uint8Array<ArrayBuffer> {
  // A node encodes a mebibyte per block: an exact allocation avoids copies.
  const size = bodyBytes(body);
  if (size > MAX_BODY_BYTES) throw new ProtocolError('too_long', `a body has at most ${MAX_BODY_BYTES} bytes`);
  const writer = writeHead(new ByteWriter(size), body);
  for (const wire of body.transactions) writer.u32(wire.length).raw(wire);
  return writer.done();
}

function checkParents(parents: readonly Bytes[]): void {
  if (parents.length > MAX_PARENTS) throw new ProtocolError('too_long', `a block has at most ${MAX_PARENTS} parents`);
  for (let i = 1; i < parents.length; i++)
    if (compareBytes(parents[i - 1] as Bytes, parents[i] as Bytes) >= 0)
      throw new ProtocolError('not_canonical', 'parents are in ascending order without repetition');
}

/** The transactions are views of these bytes, not decoded: execution decodes them, and checking a share never does. */
export function decodeBody(bytes: Bytes): Body {
  if (bytes.length > MAX_BODY_BYTES) throw new ProtocolError('too_long', `a body has at most ${MAX_BODY_BYTES} bytes`);
  const reader = new ByteReader(bytes);
  const version = reader.u8();
  if (version !== BODY_VERSION) throw new ProtocolError('unsupported_version', `body version ${version}`);
  const payout = reader.take(ADDRESS_PAYLOAD_BYTES);
  payloadKind(payout);
  const extranonce = reader.short(MAX_EXTRANONCE);
  decodeExtranonce(extranonce);
  const parentCount = reader.u8();
  const parents: Bytes[] = [];
  if (parentCount > MAX_PARENTS) throw new ProtocolError('too_long', `a block has at most ${MAX_PARENTS} parents`);
  for (let i = 0; i < parentCount; i++) parents.push(reader.take(ID_BYTES));
  checkParents(parents);
  const count = reader.u32();
  if (count > MAX_BODY_TRANSACTIONS) throw new ProtocolError('too_long', `${count} transactions do not fit a body`);
  const transactions: Bytes[] = [];
  for (let i = 0; i < count; i++) {
    const length = reader.u32();
    if (length < MIN_TRANSACTION_BYTES || length > MAX_TRANSACTION_BYTES)
      throw new ProtocolError('out_of_range', `a transaction of ${length} bytes`);
    transactions.push(reader.view(length));
  }
  reader.end();
  return { payout, extranonce, parents, transactions };
}

export const bodyId = (bytes: Bytes): Uint8Array<ArrayBuffer> => id(LABELS.body, bytes);

export const parentsRoot = (body: Pick<Body, 'parents'>): Bytes => merkleRoot(body.parents);
/** Over the whole wire form, witnesses included: a block commits to exactly the bytes it carries. */
export const transactionsRoot = (body: Pick<Body, 'transactions'>): Bytes => merkleRoot(body.transactions);
export const bodyRewardRoot = (body: Pick<Body, 'payout' | 'extranonce'>): Bytes =>
  rewardRoot(body.payout, body.extranonce);
