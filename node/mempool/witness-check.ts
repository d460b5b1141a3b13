/**
 * Checks of a transaction's witnesses (protocol/transactions/witness-check.ts), with a cache. The result depends only on the wire
 * bytes, because an outpoint always names the same output; so a transaction is checked once, whether it passed or not.
 * The signer of an operation can change with the ledger, for example a consensus key: then the keys are part of the
 * cache key.
 */

import { consensusKeyHash } from '../../protocol/staking/names.ts';
import { type SignatureCheck, type SignatureChecks, signaturesOf } from '../../protocol/transactions/witness-check.ts';
import { BoundedMap } from '../../runtime/bounded-map.ts';
import type { CheckWitnesses, WitnessCheck } from '../ledger/execution.ts';
import { nameOf } from '../ledger/registration.ts';
import type { ReadTransaction } from '../ledger/work-block.ts';
import { CheckedSignatures, type ChecksAside } from './checked-signatures.ts';

const REMEMBERED = 65_536;

/** What the signatures say, once keys and addresses fit. */
type Verdict = Extract<WitnessCheck, 'valid' | 'signature_invalid' | 'operation_proof_invalid'>;

export class VerifiedTransactions {
  readonly #verdicts = new BoundedMap<string, Verdict>(REMEMBERED);
  readonly #signatures: CheckedSignatures;

  constructor(signatures = new CheckedSignatures()) {
    this.#signatures = signatures;
  }

  /** Reads the cache only: whether these bytes passed, with whatever keys their operation needed then. */
  has(transaction: ReadTransaction): boolean {
    return this.#verdicts.get(transaction.leafName) === 'valid';
  }

  /** For execution: what was not checked ahead is checked here, on this thread. */
  readonly check: CheckWitnesses = (...asked) => {
    const found = this.#look(...asked);
    if (typeof found === 'string') return found;
    const { isValid } = this.#signatures;
    const areValid = found.witnesses.every(isValid);
    return this.#keep(asked[0], found, areValid, areValid && found.proofs.every(isValid));
  };

  /** The same in other threads. */
  async checkAside(aside: ChecksAside, ...asked: Parameters<CheckWitnesses>): Promise<WitnessCheck> {
    const found = this.#look(...asked);
    if (typeof found === 'string') return found;
    const areValid = await this.#signatures.areValid(found.witnesses, aside);
    return this.#keep(asked[0], found, areValid, areValid && (await this.#signatures.areValid(found.proofs, aside)));
  }

  /** The result, or the signatures on which it depends. */
  #look(...[transaction, spends, publicKeyOf, operation]: Parameters<CheckWitnesses>): WitnessCheck | SignatureChecks {
    const known = operation === undefined ? this.#verdicts.get(transaction.leafName) : undefined;
    if (known !== undefined) return known;
    const checks = signaturesOf(transaction, spends, publicKeyOf, operation);
    return typeof checks === 'string' ? checks : (this.#verdicts.get(nameWith(transaction, checks)) ?? checks);
  }

  #keep(transaction: ReadTransaction, checks: SignatureChecks, areValid: boolean, areProven: boolean): Verdict {
    const verdict = areProven ? 'valid' : areValid ? 'operation_proof_invalid' : 'signature_invalid';
    this.#verdicts.set(nameWith(transaction, checks), verdict);
    if (verdict === 'valid') this.#verdicts.set(transaction.leafName, verdict);
    return verdict;
  }
}

/** Keys of an operation are part of the cache key; those of inputs follow from the wire form. */
function nameWith(transaction: ReadTransaction, checks: SignatureChecks): string {
  if (transaction.operation === undefined) return transaction.leafName;
  const signer = checks.witnesses.at(-1) as SignatureCheck;
  const keys = [signer, ...checks.proofs].map(({ publicKey }) => nameOf(consensusKeyHash(publicKey)));
  return transaction.leafName + keys.join('');
}
