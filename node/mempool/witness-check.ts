/**
 * What must hold of a transaction's witnesses (ledger rules 15 and 17): each key belongs to the address it spends from, and each
 * signature is over the body, the input's place and the output spent. The outcome depends on the wire bytes alone, because an outpoint
 * names its output for ever; so a transaction that passed once is remembered by its wire form and never checked again. Who must sign an operation
 * can change with the ledger, a consensus key for one: there the keys are remembered with it.
 */
import { ADDRESS_KINDS, keyAddressPayload } from '../../protocol/address.ts';
import { type Bytes, equalBytes } from '../../protocol/bytes.ts';
import { consensusKeyHash } from '../../protocol/staking/names.ts';
import { operationMessage, spendMessage, type Witness } from '../../protocol/transaction.ts';
import type { UnspentOutput } from '../full-node.ts';
import type { CheckWitnesses, OperationSignatures } from '../ledger/execution.ts';
import { nameOf } from '../ledger/registration.ts';
import type { ReadTransaction } from '../ledger/work-block.ts';
import { verifyMessage } from '../ml-dsa.ts';

export type SignatureCheck = { readonly publicKey: Bytes; readonly message: Bytes; readonly signature: Bytes };

export type SignatureChecks = {
  readonly witnesses: readonly SignatureCheck[];
  /** Those inside an operation: unlike witnesses they are part of what the transaction is. */
  readonly proofs: readonly SignatureCheck[];
};

export type WitnessFault = 'witness_key_mismatch' | 'witness_key_unregistered';

/** The signatures to check, or what is wrong before any is. */
export function signaturesOf(
  transaction: ReadTransaction,
  spends: readonly UnspentOutput[],
  publicKeyOf: (address: Bytes) => Bytes | undefined,
  operation?: OperationSignatures,
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

const REMEMBERED = 65_536;

export class VerifiedTransactions {
  readonly #leaves = new Set<string>();

  /** Without the checks: whether these bytes passed with whatever keys their operation needed then. */
  has(transaction: ReadTransaction, checks?: SignatureChecks): boolean {
    return this.#leaves.has(nameWith(transaction, checks));
  }

  add(transaction: ReadTransaction, checks: SignatureChecks): void {
    for (const name of new Set([nameWith(transaction), nameWith(transaction, checks)])) {
      if (this.#leaves.size >= REMEMBERED) {
        const oldest = this.#leaves.values().next().value;
        if (oldest !== undefined) this.#leaves.delete(oldest);
      }
      this.#leaves.add(name);
    }
  }

  /** For execution: what was not checked at a door is checked here, on this thread. */
  readonly check: CheckWitnesses = (transaction, spends, publicKeyOf, operation) => {
    if (operation === undefined && this.has(transaction)) return 'valid';
    const checks = signaturesOf(transaction, spends, publicKeyOf, operation);
    if (typeof checks === 'string') return checks;
    if (this.has(transaction, checks)) return 'valid';
    if (!checks.witnesses.every(isValid)) return 'signature_invalid';
    if (!checks.proofs.every(isValid)) return 'operation_proof_invalid';
    this.add(transaction, checks);
    return 'valid';
  };
}

const isValid = ({ publicKey, message, signature }: SignatureCheck): boolean =>
  verifyMessage(publicKey, message, signature);

/** Keys of an operation are part of the name; those of inputs follow from the wire form. */
function nameWith(transaction: ReadTransaction, checks?: SignatureChecks): string {
  if (transaction.operation === undefined || checks === undefined) return transaction.leafName;
  const signer = checks.witnesses.at(-1) as SignatureCheck;
  const keys = [signer, ...checks.proofs].map(({ publicKey }) => nameOf(consensusKeyHash(publicKey)));
  return transaction.leafName + keys.join('');
}
