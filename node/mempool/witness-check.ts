/**
 * What must hold of a transaction's witnesses (ledger rules 15 and 17): each key belongs to the address it spends from, and each
 * signature is over the body, the input's place and the output spent. The outcome depends on the wire bytes alone, because an outpoint
 * names its output for ever; so a transaction that passed once is remembered by its wire form and never checked again.
 */
import { ADDRESS_KINDS, keyAddressPayload } from '../../protocol/address.ts';
import { type Bytes, equalBytes } from '../../protocol/bytes.ts';
import { spendMessage } from '../../protocol/transaction.ts';
import type { UnspentOutput } from '../full-node.ts';
import type { CheckWitnesses, WitnessCheck } from '../ledger/execution.ts';
import type { ReadTransaction } from '../ledger/work-block.ts';
import { verifyMessage } from '../ml-dsa.ts';

export type SignatureCheck = { readonly publicKey: Bytes; readonly message: Bytes; readonly signature: Bytes };

export type SignatureChecks = readonly SignatureCheck[] | Exclude<WitnessCheck, 'valid' | 'signature_invalid'>;

/** The signatures to check, or what is wrong before any is. */
export function signaturesOf(
  transaction: ReadTransaction,
  spends: readonly UnspentOutput[],
  publicKeyOf: (address: Bytes) => Bytes | undefined,
): SignatureChecks {
  const checks: SignatureCheck[] = [];
  for (const [i, output] of spends.entries()) {
    const witness = transaction.witnesses[i];
    if (witness === undefined || output.address[0] !== ADDRESS_KINDS.key) return 'witness_key_mismatch';
    const publicKey = witness.profile === 'inline' ? witness.publicKey : publicKeyOf(output.address);
    if (publicKey === undefined) return 'witness_key_unregistered';
    if (witness.profile === 'inline' && !equalBytes(keyAddressPayload(publicKey), output.address))
      return 'witness_key_mismatch';
    checks.push({ publicKey, message: spendMessage(transaction.bodyBytes, i, output), signature: witness.signature });
  }
  return checks;
}

const REMEMBERED = 65_536;

export class VerifiedTransactions {
  readonly #leaves = new Set<string>();

  has(transaction: ReadTransaction): boolean {
    return this.#leaves.has(transaction.leafName);
  }

  add(transaction: ReadTransaction): void {
    if (this.#leaves.size >= REMEMBERED) {
      const oldest = this.#leaves.values().next().value;
      if (oldest !== undefined) this.#leaves.delete(oldest);
    }
    this.#leaves.add(transaction.leafName);
  }

  /** For execution: what was not checked at a door is checked here, on this thread. */
  readonly check: CheckWitnesses = (transaction, spends, publicKeyOf) => {
    if (this.has(transaction)) return 'valid';
    const checks = signaturesOf(transaction, spends, publicKeyOf);
    if (typeof checks === 'string') return checks;
    for (const { publicKey, message, signature } of checks)
      if (!verifyMessage(publicKey, message, signature)) return 'signature_invalid';
    this.add(transaction);
    return 'valid';
  };
}
