/**
 * Which signatures a transaction's witnesses are (ledger rules 15 and 17): each key belongs to the address it spends from, and each signature is over the body, the
 * input's place and the output spent. Checking them is up to the caller.
 */
import { ADDRESS_KINDS, keyAddressPayload } from './address.ts';
import { type Bytes, equalBytes } from './bytes.ts';
import { type Output, operationMessage, spendMessage, type Witness } from './transaction.ts';

export type SignatureCheck = { readonly publicKey: Bytes; readonly message: Bytes; readonly signature: Bytes };

export type SignatureChecks = {
  readonly witnesses: readonly SignatureCheck[];
  /** Those inside an operation: unlike witnesses they are part of what the transaction is. */
  readonly proofs: readonly SignatureCheck[];
};

/** Who must sign an operation; the key where the ledger knows it apart from the registry. */
export type OperationSigners = {
  readonly signer: { readonly address: Bytes; readonly publicKey?: Bytes };
  readonly proofs: readonly SignatureCheck[];
};

export type WitnessFault = 'witness_key_mismatch' | 'witness_key_unregistered';

/** The signatures to check, or what is wrong before any is. */
export function signaturesOf(
  transaction: { readonly witnesses: readonly Witness[]; readonly bodyBytes: Bytes },
  spends: readonly Output[],
  publicKeyOf: (address: Bytes) => Bytes | undefined,
  operation?: OperationSigners,
): SignatureChecks | WitnessFault {
  const { witnesses: given, bodyBytes } = transaction;
  const witnesses: SignatureCheck[] = [];
  for (const [i, output] of spends.entries()) {
    const publicKey = keyOf(given[i], output.address, publicKeyOf);
    if (typeof publicKey === 'string') return publicKey;
    witnesses.push({
      publicKey,
      message: spendMessage(bodyBytes, i, output),
      signature: (given[i] as Witness).signature,
    });
  }
  if (operation === undefined) return { witnesses, proofs: [] };
  const { signer, proofs } = operation;
  const witness = given[spends.length];
  const publicKey = keyOf(witness, signer.address, (address) => signer.publicKey ?? publicKeyOf(address));
  if (typeof publicKey === 'string') return publicKey;
  witnesses.push({ publicKey, message: operationMessage(bodyBytes), signature: (witness as Witness).signature });
  return { witnesses, proofs };
}

function keyOf(
  witness: Witness | undefined,
  address: Bytes,
  publicKeyOf: (address: Bytes) => Bytes | undefined,
): Bytes | WitnessFault {
  if (witness === undefined || address[0] !== ADDRESS_KINDS.key) return 'witness_key_mismatch';
  if (witness.profile === 'referenced') return publicKeyOf(address) ?? 'witness_key_unregistered';
  return equalBytes(keyAddressPayload(witness.publicKey), address) ? witness.publicKey : 'witness_key_mismatch';
}
