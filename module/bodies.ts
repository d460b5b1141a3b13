/** Transaction bodies: from the JSON of a request to the bytes that are signed, and back; what a transaction will weigh and cost. */
import { formatAddress, parseAddress } from '../protocol/address.ts';
import { parseAtoms } from '../protocol/amount.ts';
import { type Bytes, toHex } from '../protocol/bytes.ts';
import { ProtocolError } from '../protocol/errors.ts';
import { massOf, minimumFee, shapeOf, transactionMass, wireBytesOf } from '../protocol/fee.ts';
import { id, idFromHex, LABELS } from '../protocol/identifier.ts';
import { operationDocument } from '../protocol/staking/operation-document.ts';
import { Fields } from '../protocol/stratum/fields.ts';
import {
  decodeTransactionBody,
  decodeWitness,
  encodeTransactionBody as encodeBody,
  MAX_INPUTS,
  MAX_OUTPUTS,
  type Output,
  PROTOCOL_VERSION,
  RULE_SET,
  type TransactionBody,
  type Witness,
  witnessCount,
} from '../protocol/transaction.ts';
import { shapeOfWitness, WITNESS_BYTES, type WitnessShape } from '../protocol/witness.ts';
import { decimalOf, givenHex, givenList, givenObject, hexIn, listOf, textIn, written } from './given.ts';
import { type Manifest, readManifest } from './manifest.ts';
import { readOperation } from './operations.ts';

export const MAX_WITNESSES = MAX_INPUTS + 1;

export function readOutput(fields: Fields, manifest: Manifest): Output {
  const address = parseAddress(fields.text('address'), manifest.network).payload;
  const amount = parseAtoms(fields.text('amount'));
  fields.end();
  return { address, amount };
}

export function encodeTransactionBody(requestJson: string, manifestJson: string): string {
  const manifest = readManifest(manifestJson);
  const request = givenObject(requestJson, 'request');
  const body: TransactionBody = {
    chainId: manifest.chainId,
    validFromHeight: decimalOf(request, 'valid_from_height', Number.MAX_SAFE_INTEGER),
    validUntilHeight: decimalOf(request, 'valid_until_height', Number.MAX_SAFE_INTEGER),
    inputs: listOf(request.value('inputs'), 'inputs', MAX_INPUTS).map((json) => {
      const input = new Fields(json, 'an input');
      const transactionId = idFromHex(input.text('transaction_id'));
      const outputIndex = decimalOf(input, 'output_index', 0xffffffff);
      input.end();
      return { transactionId, outputIndex };
    }),
    outputs: listOf(request.value('outputs'), 'outputs', MAX_OUTPUTS).map((json) =>
      readOutput(new Fields(json, 'an output'), manifest),
    ),
    payload: request.hex('payload_hex'),
    ...(request.has('operation') && { operation: readOperation(request.fields('operation'), manifest.network) }),
  };
  request.end();
  return toHex(encodeBody(body));
}

/** A body of the manifest's chain (rule 1). */
export function readBody(
  bodyHex: unknown,
  manifest: Manifest,
): { readonly bytes: Bytes; readonly body: TransactionBody } {
  const bytes = givenHex(bodyHex, 'body');
  return { bytes, body: decodeTransactionBody(bytes, manifest.chainId) };
}

export function bodyDocument(bytes: Bytes, body: TransactionBody, { network }: Manifest): Record<string, unknown> {
  return {
    transaction_id: toHex(id(LABELS.transaction, bytes)),
    chain_id: toHex(body.chainId),
    protocol_version: String(PROTOCOL_VERSION),
    rule_set: String(RULE_SET),
    valid_from_height: String(body.validFromHeight),
    valid_until_height: String(body.validUntilHeight),
    inputs: body.inputs.map(({ transactionId, outputIndex }) => ({
      transaction_id: toHex(transactionId),
      output_index: String(outputIndex),
    })),
    outputs: body.outputs.map(({ address, amount }) => ({ address: formatAddress(address, network), amount })),
    payload_hex: toHex(body.payload),
    ...(body.operation && { operation: operationDocument(body.operation, network) }),
  };
}

export function inspectTransactionBody(bodyHex: string, manifestJson: string): string {
  const manifest = readManifest(manifestJson);
  const { bytes, body } = readBody(bodyHex, manifest);
  return written(bodyDocument(bytes, body, manifest));
}

export function transactionId(bodyHex: string, manifestJson: string): string {
  return toHex(id(LABELS.transaction, readBody(bodyHex, readManifest(manifestJson)).bytes));
}

const quoteOf = (wireBytes: number, mass: number, manifest: Manifest): string =>
  written({
    wire_bytes: String(wireBytes),
    mass: String(mass),
    minimum_fee: minimumFee(mass, manifest.minFeePerMass),
  });

function quote(body: TransactionBody, profiles: readonly WitnessShape[], manifest: Manifest): string {
  const shape = shapeOf(body, profiles);
  return quoteOf(wireBytesOf(shape), massOf(shape), manifest);
}

/** With every witness inline, which is what a first payment from an address has. */
export function quoteTransaction(bodyHex: string, manifestJson: string): string {
  const manifest = readManifest(manifestJson);
  const { body } = readBody(bodyHex, manifest);
  return quote(body, Array<WitnessShape>(witnessCount(body)).fill('inline'), manifest);
}

function readShape(text: string): WitnessShape {
  if (!Object.hasOwn(WITNESS_BYTES, text))
    throw new ProtocolError('unsupported_profile', `a profile is one of ${Object.keys(WITNESS_BYTES).join(', ')}`);
  return text as WitnessShape;
}

const checkCount = (given: number, body: TransactionBody): void => {
  if (given !== witnessCount(body))
    throw new ProtocolError('out_of_range', `${witnessCount(body)} witnesses wanted, ${given} given`);
};

/** One profile per input, and one more for the owner of an operation. Those of multisig addresses name the form: `multisig_inline_2_of_3`. */
export function quoteTransactionWithInputProfiles(bodyHex: string, profilesJson: string, manifestJson: string): string {
  const manifest = readManifest(manifestJson);
  const { body } = readBody(bodyHex, manifest);
  const profiles = givenList(profilesJson, 'profiles', MAX_WITNESSES).map((json) => readShape(textIn(json, 'profile')));
  checkCount(profiles.length, body);
  return quote(body, profiles, manifest);
}

export function readWitnesses(witnessesJson: unknown, body: TransactionBody): readonly Witness[] {
  const witnesses = givenList(witnessesJson, 'witnesses', MAX_WITNESSES).map((json) =>
    decodeWitness(hexIn(json, 'witness')),
  );
  checkCount(witnesses.length, body);
  return witnesses;
}

/** With the witnesses themselves. */
export function quoteTransactionWithWitnesses(bodyHex: string, witnessesJson: string, manifestJson: string): string {
  const manifest = readManifest(manifestJson);
  const { body } = readBody(bodyHex, manifest);
  const witnesses = readWitnesses(witnessesJson, body);
  return quote(body, witnesses.map(shapeOfWitness), manifest);
}

export const quoteOfWire = (wire: Bytes, body: TransactionBody, manifest: Manifest) => {
  const mass = transactionMass(wire.length, body.outputs.length);
  return {
    wire_bytes: String(wire.length),
    mass: String(mass),
    minimum_fee: minimumFee(mass, manifest.minFeePerMass),
  };
};
