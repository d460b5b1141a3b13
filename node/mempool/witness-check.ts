/**
 * Checks of a transaction's witnesses (protocol/witness-check.ts), with a cache. The result depends only on the wire
 * bytes, because an outpoint always names the same output; so a transaction that passed once is never checked again.
 * The signer of an operation can change with the ledger, for example a consensus key: then the keys are part of the
 * cache key.
 */

import { consensusKeyHash } from '../../protocol/staking/names.ts';
import { type SignatureCheck, type SignatureChecks, signaturesOf } from '../../protocol/witness-check.ts';
import { BoundedMap } from '../../runtime/bounded-map.ts';
import type { CheckWitnesses } from '../ledger/execution.ts';
import { nameOf } from '../ledger/registration.ts';
import type { ReadTransaction } from '../ledger/work-block.ts';
import { verifyMessage } from '../ml-dsa.ts';

const REMEMBERED = 65_536;

export class VerifiedTransactions {
  readonly #leaves = new BoundedMap<string, true>(REMEMBERED);

  /** Reads the cache only: whether these bytes passed, with whatever keys their operation needed then. */
  has(transaction: ReadTransaction, checks?: SignatureChecks): boolean {
    return this.#leaves.has(nameWith(transaction, checks));
  }

  add(transaction: ReadTransaction, checks: SignatureChecks): void {
    for (const name of [nameWith(transaction), nameWith(transaction, checks)]) this.#leaves.set(name, true);
  }

  /** For execution: witnesses not checked at admission are checked here, on this thread. */
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

/** Keys of an operation are part of the cache key; those of inputs follow from the wire form. */
function nameWith(transaction: ReadTransaction, checks?: SignatureChecks): string {
  if (transaction.operation === undefined || checks === undefined) return transaction.leafName;
  const signer = checks.witnesses.at(-1) as SignatureCheck;
  const keys = [signer, ...checks.proofs].map(({ publicKey }) => nameOf(consensusKeyHash(publicKey)));
  return transaction.leafName + keys.join('');
}
