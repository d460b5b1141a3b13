/** Transaction bodies: from the JSON of a request to the bytes that are signed, and back; what a transaction will weigh and cost. */
import { formatAddress, parseAddress } from '../protocol/address.ts';
import { parseAtoms } from '../protocol/amount.ts';
import { type Bytes, toHex } from '../protocol/bytes.ts';
import { id, idFromHex, LABELS } from '../protocol/crypto/identifier.ts';
import { ProtocolError } from '../protocol/errors.ts';
import { operationDocument } from '../protocol/staking/operation-document.ts';
import { type Fields, inField } from '../protocol/stratum/fields.ts';
import { massOf, minimumFee, shapeOf, transactionMass, wireBytesOf } from '../protocol/transactions/fee.ts';
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
} from '../protocol/transactions/transaction.ts';
import { shapeOfWitness, WITNESS_BYTES, type WitnessShape } from '../protocol/transactions/witness.ts';
import { decimalOf, givenHex, givenList, givenObject, hexIn, listIn, objectIn, textIn, written } from './given.ts';
import { type Manifest, readManifest } from './manifest.ts';
import { readOperation } from './operations.ts';

export const MAX_WITNESSES = MAX_INPUTS + 1;

export function readOutput(fields: Fields, manifest: Manifest): Output {
  const address = fields.parsed('address', (text) => parseAddress(text, manifest.network).payload);
  const amount = fields.parsed('amount', parseAtoms);
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
    inputs: listIn(request, 'inputs', MAX_INPUTS, (json, what) => {
      const input = objectIn(json, what);
      const transactionId = input.parsed('transaction_id', idFromHex);
      const outputIndex = decimalOf(input, 'output_index', 0xffffffff);
      input.end();
      return { transactionId, outputIndex };
    }),
    outputs: listIn(request, 'outputs', MAX_OUTPUTS, (json, what) => readOutput(objectIn(json, what), manifest)),
    payload: request.hex('payload_hex'),
    ...(request.has('operation') && { operation: readOperation(request.fields('operation'), manifest.network) }),
  };
  request.end();
  return toHex(inField('request', () => encodeBody(body)));
}

/** A body of the manifest's chain (rule 1). */
export function readBody(
  bodyHex: unknown,
  manifest: Manifest,
): { readonly bytes: Bytes; readonly body: TransactionBody } {
  const bytes = givenHex(bodyHex, 'body');
  return { bytes, body: inField('body', () => decodeTransactionBody(bytes, manifest.chainId)) };
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

const checkCount = (field: string, given: number, body: TransactionBody): void => {
  if (given !== witnessCount(body))
    throw new ProtocolError('out_of_range', `${field} must have ${witnessCount(body)} entries, not ${given}`, {
      field,
    });
};

/** One profile per input, and one more for the owner of an operation. Those of multisig addresses name the form: `multisig_inline_2_of_3`. */
export function quoteTransactionWithInputProfiles(bodyHex: string, profilesJson: string, manifestJson: string): string {
  const manifest = readManifest(manifestJson);
  const { body } = readBody(bodyHex, manifest);
  const profiles = givenList(profilesJson, 'profiles', MAX_WITNESSES, (json, what) => readShape(textIn(json, what)));
  checkCount('profiles', profiles.length, body);
  return quote(body, profiles, manifest);
}

export function readWitnesses(witnessesJson: unknown, body: TransactionBody): readonly Witness[] {
  const witnesses = givenList(witnessesJson, 'witnesses', MAX_WITNESSES, (json, what) =>
    decodeWitness(hexIn()(json, what)),
  );
  checkCount('witnesses', witnesses.length, body);
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
