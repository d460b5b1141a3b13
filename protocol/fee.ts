/**
 * Mass and fees (ledger rule 18). Mass counts what a transaction costs everyone: its wire bytes, and for each output it
 * makes a share of the state that every node must keep. The fee is implicit: inputs minus outputs.
 */
import { ADDRESS_PAYLOAD_BYTES } from './address.ts';
import { PUBLIC_KEY_BYTES, SIGNATURE_BYTES, type TransactionBody, type Witness } from './transaction.ts';

export const MASS_PER_OUTPUT = 256;
export const MIN_FEE_PER_MASS = 10n;

export const transactionMass = (wireBytes: number, outputs: number): number => wireBytes + MASS_PER_OUTPUT * outputs;

export const minimumFee = (mass: number, feePerMass: bigint = MIN_FEE_PER_MASS): bigint => BigInt(mass) * feePerMass;

const witnessBytes = (profile: Witness['profile']): number =>
  1 + SIGNATURE_BYTES + (profile === 'inline' ? PUBLIC_KEY_BYTES : 0);

export type Shape = {
  /** One profile per witness, in the order of the wire form. */
  readonly witnesses: readonly Witness['profile'][];
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
  for (const profile of shape.witnesses) witnesses += witnessBytes(profile);
  return 2 + body + operation + witnesses;
}

export const massOf = (shape: Shape): number => transactionMass(wireBytesOf(shape), shape.outputs);

export function shapeOf(body: TransactionBody, witnesses: readonly Witness['profile'][]): Shape {
  const shape = {
    witnesses,
    inputs: body.inputs.length,
    outputs: body.outputs.length,
    payloadBytes: body.payload.length,
  };
  return body.operation === undefined ? shape : { ...shape, operationBytes: body.operation.data.length };
}
