/**
 * Mass and fees (ledger rule 18). Mass measures the cost of a transaction for all nodes: its wire bytes, and a constant
 * per output for the state that every node must keep. The fee is implicit: inputs minus outputs.
 */
import { ADDRESS_PAYLOAD_BYTES } from '../address.ts';
import type { TransactionBody } from './transaction.ts';
import { WITNESS_BYTES, type WitnessShape } from './witness.ts';

export const MASS_PER_OUTPUT = 256;
export const MIN_FEE_PER_MASS = 10n;

export const transactionMass = (wireBytes: number, outputs: number): number => wireBytes + MASS_PER_OUTPUT * outputs;

export const minimumFee = (mass: number, feePerMass: bigint = MIN_FEE_PER_MASS): bigint => BigInt(mass) * feePerMass;

export type Shape = {
  /** One per witness, in the order of the wire form. */
  readonly witnesses: readonly WitnessShape[];
  readonly inputs: number;
  readonly outputs: number;
  readonly payloadBytes: number;
  readonly operationBytes?: number;
};

/** The exact wire size of a transaction that is not signed yet. */
export function wireBytesOf(shape: Shape): number {
  const body =
    2 +
    2 +
    48 +
    8 +
    8 +
    1 +
    52 * shape.inputs +
    1 +
    (ADDRESS_PAYLOAD_BYTES + 8) * shape.outputs +
    2 +
    shape.payloadBytes;
  const operation = 1 + (shape.operationBytes === undefined ? 0 : 3 + shape.operationBytes);
  let witnesses = 0;
  for (const witness of shape.witnesses) witnesses += WITNESS_BYTES[witness];
  return 2 + body + operation + witnesses;
}

export const massOf = (shape: Shape): number => transactionMass(wireBytesOf(shape), shape.outputs);

export function shapeOf(body: TransactionBody, witnesses: readonly WitnessShape[]): Shape {
  const shape = {
    witnesses,
    inputs: body.inputs.length,
    outputs: body.outputs.length,
    payloadBytes: body.payload.length,
  };
  return body.operation === undefined ? shape : { ...shape, operationBytes: body.operation.data.length };
}
