/**
 * Transactions (ledger rules 13 to 17): the body, which is signed and hashed into the identifier, and the wire form,
 * which adds witnesses. The identifier covers the body alone, so a witness can change neither what a transaction does
 * nor its name.
 */
import { ADDRESS_PAYLOAD_BYTES, payloadKind } from '../address.ts';
import { checkAmount } from '../amount.ts';
import { ByteReader, type Bytes, ByteWriter, concat, equalBytes } from '../bytes.ts';
import { ID_BYTES, id, LABELS } from '../crypto/identifier.ts';
import { ProtocolError } from '../errors.ts';
import { decodeOperation, MAX_OPERATION_BYTES, type Operation } from '../staking/operation.ts';
import { readWitness, type Witness, writeWitness } from './witness.ts';

export { PUBLIC_KEY_BYTES, SIGNATURE_BYTES } from '../crypto/key-sizes.ts';
export type { Operation } from '../staking/operation.ts';
export { decodeWitness, encodeWitness, type SingleWitness, WITNESS_PROFILES, type Witness } from './witness.ts';

export const PROTOCOL_VERSION = 1;
export const RULE_SET = 1;
/** So that its hex fits a request of 128 KiB. */
export const MAX_TRANSACTION_BYTES = 65_000;
export const MAX_INPUTS = 8;
export const MAX_OUTPUTS = 8;
export const MAX_PAYLOAD_BYTES = 2048;

export const PAYLOAD_KINDS = { text: 0, perRecipient: 1, messenger: 2 } as const;
export type Outpoint = { readonly transactionId: Bytes; readonly outputIndex: number };
export type Output = { readonly address: Bytes; readonly amount: bigint };

export type TransactionBody = {
  readonly chainId: Bytes;
  readonly validFromHeight: number;
  readonly validUntilHeight: number;
  readonly inputs: readonly Outpoint[];
  readonly outputs: readonly Output[];
  /** Empty, or a kind byte followed by data. */
  readonly payload: Bytes;
  readonly operation?: Operation;
};

export type Transaction = { readonly body: TransactionBody; readonly witnesses: readonly Witness[] };

function checkBody(body: TransactionBody): void {
  if (body.inputs.length < 1 || body.inputs.length > MAX_INPUTS)
    throw new ProtocolError('out_of_range', `a transaction spends 1 to ${MAX_INPUTS} outputs`);
  if (body.outputs.length > MAX_OUTPUTS)
    throw new ProtocolError('out_of_range', `a transaction makes at most ${MAX_OUTPUTS} outputs`);
  if (body.validUntilHeight < body.validFromHeight)
    throw new ProtocolError('out_of_range', 'valid_until_height is below valid_from_height');
  if (body.chainId.length !== ID_BYTES) throw new ProtocolError('out_of_range', 'a chain id has 48 bytes');
  let total = 0n;
  for (const output of body.outputs) {
    payloadKind(output.address);
    if (output.amount < 1n) throw new ProtocolError('amount_range', 'an output holds at least one atom');
    total += checkAmount(output.amount);
  }
  checkAmount(total);
  for (let i = 0; i < body.inputs.length; i++)
    for (let j = 0; j < i; j++) {
      const [a, b] = [body.inputs[i] as Outpoint, body.inputs[j] as Outpoint];
      if (a.outputIndex === b.outputIndex && equalBytes(a.transactionId, b.transactionId))
        throw new ProtocolError('duplicate_entry', 'an output is spent twice in one transaction');
    }
  if (body.payload.length > MAX_PAYLOAD_BYTES)
    throw new ProtocolError('too_long', `a payload has at most ${MAX_PAYLOAD_BYTES} bytes`);
  if (body.payload.length > 0 && (body.payload[0] as number) > PAYLOAD_KINDS.messenger)
    throw new ProtocolError('unsupported_kind', `payload kind ${body.payload[0]} is not known`);
  if (body.operation !== undefined) decodeOperation(body.operation);
}

export function encodeTransactionBody(body: TransactionBody): Uint8Array<ArrayBuffer> {
  checkBody(body);
  const writer = new ByteWriter(512)
    .u16(PROTOCOL_VERSION)
    .u16(RULE_SET)
    .raw(body.chainId)
    .height(body.validFromHeight)
    .height(body.validUntilHeight)
    .u8(body.inputs.length);
  for (const input of body.inputs) {
    if (input.transactionId.length !== ID_BYTES) throw new ProtocolError('out_of_range', 'an identifier has 48 bytes');
    writer.raw(input.transactionId).u32(input.outputIndex);
  }
  writer.u8(body.outputs.length);
  for (const output of body.outputs) writer.raw(output.address).u64(output.amount);
  writer.u16(body.payload.length).raw(body.payload);
  if (body.operation === undefined) return writer.u8(0).done();
  const { type, data } = body.operation;
  if (data.length > MAX_OPERATION_BYTES) throw new ProtocolError('too_long', 'a staking operation is too long');
  return writer.u8(1).u8(type).u16(data.length).raw(data).done();
}

/** `expectedChain` refuses a body bound to another chain; protocol version and rule set are always checked. */
export function decodeTransactionBody(bytes: Bytes, expectedChain?: Bytes): TransactionBody {
  const reader = new ByteReader(bytes);
  const version = reader.u16();
  const ruleSet = reader.u16();
  if (version !== PROTOCOL_VERSION || ruleSet !== RULE_SET)
    throw new ProtocolError('unsupported_version', `transaction of protocol ${version}, rule set ${ruleSet}`);
  const boundTo = reader.view(ID_BYTES);
  if (expectedChain !== undefined && !equalBytes(boundTo, expectedChain))
    throw new ProtocolError('wrong_chain', 'the transaction is bound to another chain');
  const chainId = expectedChain ?? new Uint8Array(boundTo);
  const validFromHeight = reader.height();
  const validUntilHeight = reader.height();
  const inputs: Outpoint[] = [];
  for (let left = reader.u8(); left > 0; left--)
    inputs.push({ transactionId: reader.take(ID_BYTES), outputIndex: reader.u32() });
  const outputs: Output[] = [];
  for (let left = reader.u8(); left > 0; left--)
    outputs.push({ address: reader.take(ADDRESS_PAYLOAD_BYTES), amount: reader.u64() });
  const payload = reader.take(reader.u16());
  const marker = reader.u8();
  if (marker > 1) throw new ProtocolError('not_canonical', 'the operation marker is 0 or 1');
  const base = { chainId, validFromHeight, validUntilHeight, inputs, outputs, payload };
  let body: TransactionBody = base;
  if (marker === 1) {
    const type = reader.u8();
    const length = reader.u16();
    if (length > MAX_OPERATION_BYTES) throw new ProtocolError('too_long', 'a staking operation is too long');
    body = { ...base, operation: { type, data: reader.take(length) } };
  }
  reader.end();
  checkBody(body);
  return body;
}

/** One witness per input, then one for the staking operation if there is one. */
export const witnessCount = (body: TransactionBody): number =>
  body.inputs.length + (body.operation === undefined ? 0 : 1);

export function encodeTransaction(transaction: Transaction): Uint8Array<ArrayBuffer> {
  const { body, witnesses } = transaction;
  if (witnesses.length !== witnessCount(body))
    throw new ProtocolError('out_of_range', `${witnessCount(body)} witnesses wanted, ${witnesses.length} given`);
  const bodyBytes = encodeTransactionBody(body);
  const writer = new ByteWriter(bodyBytes.length + 6000).u16(bodyBytes.length).raw(bodyBytes);
  for (const witness of witnesses) writeWitness(writer, witness);
  const bytes = writer.done();
  if (bytes.length > MAX_TRANSACTION_BYTES)
    throw new ProtocolError('too_long', `a transaction has at most ${MAX_TRANSACTION_BYTES} bytes`);
  return bytes;
}

/** The body's part of a wire form: what is signed over and named. */
export function bodyOfWire(wire: Bytes): Bytes {
  const reader = new ByteReader(wire);
  return reader.view(reader.u16());
}

/** Keys and signatures stay part of the bytes: they are nearly all of them, and a node keeps thousands of transactions. */
export function decodeTransaction(bytes: Bytes, expectedChain?: Bytes): Transaction {
  if (bytes.length > MAX_TRANSACTION_BYTES)
    throw new ProtocolError('too_long', `a transaction has at most ${MAX_TRANSACTION_BYTES} bytes`);
  const reader = new ByteReader(bytes);
  const body = decodeTransactionBody(reader.view(reader.u16()), expectedChain);
  const witnesses: Witness[] = [];
  for (let left = witnessCount(body); left > 0; left--) witnesses.push(readWitness(reader));
  reader.end();
  return { body, witnesses };
}

export const transactionId = (body: TransactionBody): Uint8Array<ArrayBuffer> =>
  id(LABELS.transaction, encodeTransactionBody(body));

/** The identifier of a transaction in wire form, without reading it. */
export const transactionIdOfWire = (wire: Bytes): Uint8Array<ArrayBuffer> => id(LABELS.transaction, bodyOfWire(wire));

/** The bytes that the key of input `index` signs: the whole body, the input's index and the spent output. */
export const spendMessage = (bodyBytes: Bytes, index: number, spent: Output): Uint8Array<ArrayBuffer> =>
  id(LABELS.spend, concat(bodyBytes, new ByteWriter(64).u8(index).raw(spent.address).u64(spent.amount).done()));

/** The bytes that the owner of a staking operation signs. */
export const operationMessage = (bodyBytes: Bytes): Uint8Array<ArrayBuffer> => id(LABELS.operation, bodyBytes);
