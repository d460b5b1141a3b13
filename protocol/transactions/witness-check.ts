/**
 * Lists the signatures in a transaction's witnesses (ledger rules 15, 17 and 20): each key, or set of keys, must belong
 * to the address it spends from, and each signature covers the body, the input's index and the spent output. The caller
 * verifies them.
 */
import { ADDRESS_KINDS, keyAddressPayload } from '../address.ts';
import { type Bytes, concat, equalBytes } from '../bytes.ts';
import { type StakingOperation, signaturesInside } from '../staking/operation.ts';
import { areAscending, type MultisigDescriptor, multisigAddressPayload } from './multisig.ts';
import { type Output, operationMessage, spendMessage, type Witness } from './transaction.ts';
import { isMultisigWitness, type MultisigWitness } from './witness.ts';

export type SignatureCheck = { readonly publicKey: Bytes; readonly message: Bytes; readonly signature: Bytes };

export type SignatureChecks = {
  readonly witnesses: readonly SignatureCheck[];
  /** Those inside an operation: unlike witnesses they are part of what the transaction is. */
  readonly proofs: readonly SignatureCheck[];
};

/** The required signer of an operation; with the key if the ledger has it outside the registry. */
export type OperationSigners = {
  readonly signer: { readonly address: Bytes; readonly publicKey?: Bytes };
  readonly proofs: readonly SignatureCheck[];
};

/** Signatures that a transaction carries (ledger rule 43), from its bytes alone: no execution of it checks more. */
export function signatureCount(witnesses: readonly Witness[], operation?: StakingOperation): number {
  let count = operation === undefined ? 0 : signaturesInside(operation);
  for (const witness of witnesses) count += isMultisigWitness(witness) ? witness.signatures.length : 1;
  return count;
}

export type WitnessFault = 'witness_key_mismatch' | 'witness_key_unregistered';

/** The signatures to check, or an error found before that. */
export function signaturesOf(
  transaction: { readonly witnesses: readonly Witness[]; readonly bodyBytes: Bytes },
  spends: readonly Output[],
  publicKeyOf: (address: Bytes) => Bytes | undefined,
  operation?: OperationSigners,
): SignatureChecks | WitnessFault {
  const { witnesses: given, bodyBytes } = transaction;
  const witnesses: SignatureCheck[] = [];
  const add = (
    witness: Witness | undefined,
    address: Bytes,
    message: Bytes,
    keyOf: (address: Bytes) => Bytes | undefined,
  ): WitnessFault | undefined => {
    const found = signersOf(witness, address, keyOf);
    if (typeof found === 'string') return found;
    for (const { publicKey, signature } of found) witnesses.push({ publicKey, message, signature });
    return undefined;
  };
  for (const [i, output] of spends.entries()) {
    const fault = add(given[i], output.address, spendMessage(bodyBytes, i, output), publicKeyOf);
    if (fault !== undefined) return fault;
  }
  if (operation === undefined) return { witnesses, proofs: [] };
  const { signer, proofs } = operation;
  const fault = add(
    given[spends.length],
    signer.address,
    operationMessage(bodyBytes),
    (address) => signer.publicKey ?? publicKeyOf(address),
  );
  return fault ?? { witnesses, proofs };
}

type Signer = { readonly publicKey: Bytes; readonly signature: Bytes };

/** The keys that a witness shows for an address, each with its signature. */
function signersOf(
  witness: Witness | undefined,
  address: Bytes,
  publicKeyOf: (address: Bytes) => Bytes | undefined,
): readonly Signer[] | WitnessFault {
  if (witness === undefined) return 'witness_key_mismatch';
  if (isMultisigWitness(witness)) return membersOf(witness, address, publicKeyOf);
  if (address[0] !== ADDRESS_KINDS.key) return 'witness_key_mismatch';
  const publicKey = witness.profile === 'inline' ? witness.publicKey : publicKeyOf(address);
  if (publicKey === undefined) return 'witness_key_unregistered';
  if (witness.profile === 'inline' && !equalBytes(keyAddressPayload(publicKey), address)) return 'witness_key_mismatch';
  return [{ publicKey, signature: witness.signature }];
}

/** Ledger rule 20: all keys of the address are shown or named, whichever members sign. */
function membersOf(
  witness: MultisigWitness,
  address: Bytes,
  publicKeyOf: (address: Bytes) => Bytes | undefined,
): readonly Signer[] | WitnessFault {
  if (address[0] !== ADDRESS_KINDS.multisig) return 'witness_key_mismatch';
  const descriptor = witness.profile === 'multisig_inline' ? witness.descriptor : named(witness, publicKeyOf);
  if (typeof descriptor === 'string') return descriptor;
  if (!equalBytes(multisigAddressPayload(descriptor), address)) return 'witness_key_mismatch';
  return witness.signatures.map(({ member, signature }) => ({
    publicKey: descriptor.keys[member] as Bytes,
    signature,
  }));
}

function named(
  { threshold, keyHashes }: Extract<MultisigWitness, { profile: 'multisig_referenced' }>,
  publicKeyOf: (address: Bytes) => Bytes | undefined,
): MultisigDescriptor | WitnessFault {
  const keys: Bytes[] = [];
  for (const hash of keyHashes) {
    const key = publicKeyOf(concat(Uint8Array.of(ADDRESS_KINDS.key), hash));
    if (key === undefined) return 'witness_key_unregistered';
    keys.push(key);
  }
  // Nobody can spend from an address over keys in another order: its descriptor has no inline form either.
  return areAscending(keys) ? { threshold, keys } : 'witness_key_mismatch';
}
