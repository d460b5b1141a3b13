/**
 * What is signed, and the transaction that comes of it (specification: Rules 1, 3 and 5). `verifyTransaction` is the last step before a transaction leaves the program: it
 * decodes the bytes again.
 */
import { keyAddressPayload, parseAddress } from '../protocol/address.ts';
import { type Bytes, equalBytes, toHex } from '../protocol/bytes.ts';
import { PUBLIC_KEY_BYTES, SIGNATURE_BYTES } from '../protocol/crypto/key-sizes.ts';
import { ProtocolError } from '../protocol/errors.ts';
import type { NetworkName } from '../protocol/network.ts';
import { possessionMessage as possession } from '../protocol/staking/names.ts';
import { bondedBy, decodeOperation, type StakingOperation } from '../protocol/staking/operation.ts';
import { inField } from '../protocol/stratum/fields.ts';
import { minimumFee, transactionMass } from '../protocol/transactions/fee.ts';
import { MOST_MEMBERS } from '../protocol/transactions/multisig.ts';
import {
  bodyOfWire,
  decodeTransaction,
  encodeWitness as encode,
  encodeTransaction,
  MAX_INPUTS,
  type Output,
  operationMessage as operationBytes,
  spendMessage as spend,
  type Transaction,
  type Witness,
} from '../protocol/transactions/transaction.ts';
import { isMultisigWitness } from '../protocol/transactions/witness.ts';
import { type OperationSigners, signaturesOf } from '../protocol/transactions/witness-check.ts';
import { bodyDocument, MAX_WITNESSES, quoteOfWire, readBody, readOutput, readWitnesses } from './bodies.ts';
import {
  givenHex,
  givenInteger,
  givenList,
  givenObject,
  givenOr,
  givenParsed,
  givenText,
  hexIn,
  objectIn,
  written,
} from './given.ts';
import { type Manifest, readManifest } from './manifest.ts';
import { ModuleError } from './module-error.ts';
import { descriptorDocument, signaturesDocument } from './multisig.ts';
import { verifySignature } from './wasm.ts';

export function spendMessage(bodyHex: string, index: number, previousOutputJson: string, manifestJson: string): string {
  const manifest = readManifest(manifestJson);
  const { bytes, body } = readBody(bodyHex, manifest);
  const at = givenInteger(index, 'index', body.inputs.length - 1);
  return toHex(spend(bytes, at, readOutput(givenObject(previousOutputJson, 'previous_output'), manifest)));
}

export function operationMessage(bodyHex: string, manifestJson: string): string {
  const { bytes, body } = readBody(bodyHex, readManifest(manifestJson));
  if (body.operation === undefined) throw new ModuleError('operation_missing', 'the body carries no operation');
  return toHex(operationBytes(bytes));
}

const givenOwner = (owner: unknown, network: NetworkName): Bytes =>
  givenParsed(owner, 'owner', (text) => parseAddress(text, network).payload);

/** What a consensus key signs for the owner that registers it. */
export function possessionMessage(publicKey: string, ownerAddress: string, manifestJson: string): string {
  const { chainId, network } = readManifest(manifestJson);
  const key = givenHex(publicKey, 'public key', PUBLIC_KEY_BYTES);
  return toHex(possession(chainId, givenOwner(ownerAddress, network), key));
}

export function encodeWitness(publicKey: string, signature: string): string {
  return encodeWitnessWithProfile('inline', publicKey, signature);
}

/** `referenced` takes no public key: the chain has it (rule 5). */
export function encodeWitnessWithProfile(
  profile: string,
  publicKey: string | null | undefined,
  signature: string,
): string {
  const name = givenText(profile, 'profile');
  if (name !== 'inline' && name !== 'referenced')
    throw new ProtocolError('unsupported_profile', 'the profile of a single key is inline or referenced', {
      field: 'profile',
    });
  const signed = givenHex(signature, 'signature', SIGNATURE_BYTES);
  const key = givenOr(publicKey, (value) => givenHex(value, 'public key', PUBLIC_KEY_BYTES));
  if (name === 'referenced') {
    if (key !== undefined)
      throw new ProtocolError('field_unknown', 'a referenced witness has no public key', { field: 'public key' });
    return toHex(encode({ profile: name, signature: signed }));
  }
  if (key === undefined)
    throw new ProtocolError('field_missing', 'an inline witness has a public key', { field: 'public key' });
  return toHex(encode({ profile: name, publicKey: key, signature: signed }));
}

/** Input witnesses in their order, then that of the operation if there is one. */
export function assembleTransaction(bodyHex: string, witnessesJson: string, manifestJson: string): string {
  const { body } = readBody(bodyHex, readManifest(manifestJson));
  return toHex(encodeTransaction({ body, witnesses: readWitnesses(witnessesJson, body) }));
}

type Read = Transaction & { readonly wire: Bytes; readonly bodyBytes: Bytes };

function readWire(wireHex: unknown, manifest: Manifest): Read {
  const wire = givenHex(wireHex, 'transaction');
  return inField('transaction', () => ({
    ...decodeTransaction(wire, manifest.chainId),
    wire,
    bodyBytes: bodyOfWire(wire),
  }));
}

function witnessDocument(witness: Witness): unknown {
  const { profile } = witness;
  if (!isMultisigWitness(witness)) {
    const signature = toHex(witness.signature);
    return profile === 'inline' ? { profile, public_key: toHex(witness.publicKey), signature } : { profile, signature };
  }
  const signatures = signaturesDocument(witness.signatures);
  if (witness.profile === 'multisig_inline')
    return { profile, descriptor: descriptorDocument(witness.descriptor), signatures };
  return { profile, threshold: String(witness.threshold), key_hashes: witness.keyHashes.map(toHex), signatures };
}

export function inspectTransaction(wireHex: string, manifestJson: string): string {
  const manifest = readManifest(manifestJson);
  const { body, bodyBytes, wire, witnesses } = readWire(wireHex, manifest);
  return written({
    ...bodyDocument(bodyBytes, body, manifest),
    witnesses: witnesses.map(witnessDocument),
    ...quoteOfWire(wire, body, manifest),
  });
}

/** Who signs the operation, and the signatures inside it that can be checked without the ledger. */
function signersOf(operation: StakingOperation, owner: Bytes, { chainId }: Manifest): OperationSigners {
  const signer = { address: owner };
  if (operation.name !== 'register' && operation.name !== 'rotate') {
    if (operation.name === 'bond' && !equalBytes(operation.owner, owner))
      throw new ModuleError('witness_key_mismatch', 'the operation names another owner');
    return { signer, proofs: [] };
  }
  if (operation.name === 'register' && !equalBytes(operation.owner, owner))
    throw new ModuleError('witness_key_mismatch', 'the operation names another owner');
  const { consensusKey, possession: signature } = operation;
  const message = possession(chainId, owner, consensusKey);
  return { signer, proofs: [{ publicKey: consensusKey, message, signature }] };
}

const FAULTS = {
  witness_key_mismatch: 'a public key, or set of keys, does not belong to the address it spends from',
  witness_key_unregistered: 'a witness names a key that was not given',
} as const;

function judge(
  wireHex: unknown,
  previousOutputsJson: unknown,
  ownerAddress: unknown,
  publicKeyOf: (address: Bytes) => Bytes | undefined,
  manifest: Manifest,
): string {
  const read = readWire(wireHex, manifest);
  const { body, bodyBytes, wire } = read;
  const spends = givenList(
    previousOutputsJson,
    'previous_outputs',
    MAX_INPUTS,
    (json, what): Output => readOutput(objectIn(json, what), manifest),
  );
  if (spends.length !== body.inputs.length)
    throw new ProtocolError(
      'out_of_range',
      `previous_outputs must have ${body.inputs.length} entries, not ${spends.length}`,
      { field: 'previous_outputs' },
    );
  const owner = givenOr(ownerAddress, (value) => givenOwner(value, manifest.network));
  const operation = body.operation === undefined ? undefined : decodeOperation(body.operation);
  if (operation !== undefined && owner === undefined)
    throw new ProtocolError('field_missing', 'the owner of the operation is missing', { field: 'owner' });
  if (operation === undefined && owner !== undefined)
    throw new ModuleError('operation_missing', 'there is an owner and no operation');
  const paidIn = spends.reduce((sum, { amount }) => sum + amount, 0n);
  const paidOut = body.outputs.reduce((sum, { amount }) => sum + amount, bondedBy(operation));
  if (paidOut > paidIn)
    throw new ModuleError('amounts_exceed_inputs', 'the outputs, and what is bonded, are more than the inputs');
  const fee = paidIn - paidOut;
  const least = minimumFee(transactionMass(wire.length, body.outputs.length), manifest.minFeePerMass);
  if (fee < least)
    throw new ModuleError('fee_below_minimum', `the fee is ${fee} atoms, at least ${least} are needed`, {
      minimum_fee: least.toString(),
    });
  const signers = operation && signersOf(operation, owner as Bytes, manifest);
  const checks = signaturesOf(read, spends, publicKeyOf, signers);
  if (typeof checks === 'string') throw new ModuleError(checks, FAULTS[checks]);
  const isGood = (check: (typeof checks.proofs)[number]): boolean =>
    verifySignature(check.publicKey, check.message, check.signature);
  const bad = checks.witnesses.findIndex((check) => !isGood(check));
  if (bad !== -1)
    throw new ModuleError(
      'signature_invalid',
      `signature ${bad} does not verify: it is of another key, body, chain or previous output (address and amount)`,
      { signature: bad },
    );
  if (!checks.proofs.every(isGood))
    throw new ModuleError('operation_proof_invalid', 'a signature inside the staking operation does not verify');
  return written({ ...bodyDocument(bodyBytes, body, manifest), fee, ...quoteOfWire(wire, body, manifest) });
}

/** Throws for whatever a node would refuse without looking into its ledger. Referenced witnesses need the other function. */
export function verifyTransaction(
  wireHex: string,
  previousOutputsJson: string,
  ownerAddress: string | null | undefined,
  manifestJson: string,
): string {
  return judge(wireHex, previousOutputsJson, ownerAddress, () => undefined, readManifest(manifestJson));
}

/** `keysJson`: the public keys that a finalized cut has registered, as a list. Each counts for its own address only. */
export function verifyTransactionWithReferencedKeys(
  wireHex: string,
  previousOutputsJson: string,
  ownerAddress: string | null | undefined,
  keysJson: string,
  manifestJson: string,
): string {
  const manifest = readManifest(manifestJson);
  const keys = new Map<string, Bytes>();
  for (const key of givenList(keysJson, 'keys', MAX_WITNESSES * MOST_MEMBERS, hexIn(PUBLIC_KEY_BYTES)))
    keys.set(toHex(keyAddressPayload(key)), key);
  return judge(wireHex, previousOutputsJson, ownerAddress, (address) => keys.get(toHex(address)), manifest);
}
