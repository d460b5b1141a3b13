/**
 * The door for transactions (ledger rules 50 and 51): cheap checks first, signatures last and in worker threads, then the cheap checks
 * again, because a cut or a rival may have come in between. Own and relayed transactions pass the same door.
 */

import type { Bytes } from '../../protocol/bytes.ts';
import { ProtocolError } from '../../protocol/errors.ts';
import { minimumFee } from '../../protocol/fee.ts';
import type { Origin, Submission, UnspentOutput } from '../full-node.ts';
import type { LedgerReads } from '../ledger/execution.ts';
import { type ReadTransaction, readTransaction } from '../ledger/work-block.ts';
import { type NodeError, type NodeErrorCode, nodeError } from '../node-error.ts';
import type { Mempool } from './mempool.ts';
import type { SignatureWorkers } from './signature-workers.ts';
import { signaturesOf, type VerifiedTransactions } from './witness-check.ts';

export type AdmissionOptions = { readonly chainId: Bytes; readonly maxPending: number };
export type AdmissionDependencies = {
  readonly mempool: Mempool;
  readonly workers: SignatureWorkers;
  readonly verified: VerifiedTransactions;
  /** The ledger at the finalized head. */
  ledger(): LedgerReads & { readonly state: { readonly height: number } };
  /** The cut that is being made, if one is. */
  sealing(): Promise<unknown> | undefined;
};

type Funds = { readonly spends: readonly UnspentOutput[]; readonly fee: bigint };

const WITNESS_TEXT = {
  witness_key_mismatch: 'a public key does not belong to the address it spends from',
  witness_key_unregistered: 'a referenced key is not in the registry of a finalized cut',
  signature_invalid: 'a signature does not verify',
} as const;

export class Admission {
  readonly #options: AdmissionOptions;
  readonly #dependencies: AdmissionDependencies;
  readonly #pending = new Map<string, Promise<Submission>>();

  constructor(options: AdmissionOptions, dependencies: AdmissionDependencies) {
    this.#options = options;
    this.#dependencies = dependencies;
  }

  async submit(wire: Bytes, origin: Origin): Promise<Submission> {
    let transaction: ReadTransaction;
    try {
      transaction = readTransaction(new Uint8Array(wire), this.#options.chainId);
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      return refused('transaction_malformed', error.message, { reason: error.code });
    }
    const { mempool } = this.#dependencies;
    const known: Submission = { status: 'known', id: transaction.id };
    if (mempool.get(transaction.id) !== undefined) return known;
    const name = transaction.leafName;
    const pending = this.#pending.get(name);
    if (pending !== undefined) {
      const outcome = await pending;
      return outcome.status === 'accepted' ? known : outcome;
    }
    if (this.#pending.size >= this.#options.maxPending)
      return refused('mempool_full', 'too many transactions are being checked');
    const admission = this.#admit(transaction, origin);
    this.#pending.set(name, admission);
    try {
      return await admission;
    } finally {
      this.#pending.delete(name);
    }
  }

  async #admit(transaction: ReadTransaction, origin: Origin): Promise<Submission> {
    const { mempool, workers, verified, ledger } = this.#dependencies;
    const before = await this.#fundsNow(transaction);
    if ('code' in before) return this.#refuse(transaction, before);
    const { state } = ledger();
    if (!verified.has(transaction)) {
      const checks = signaturesOf(transaction, before.spends, (address) => ledger().publicKey(address));
      if (typeof checks === 'string') return refused(checks, WITNESS_TEXT[checks]);
      if (!(await workers.verify(checks))) return refused('signature_invalid', WITNESS_TEXT.signature_invalid);
      verified.add(transaction);
    }
    if (mempool.get(transaction.id) !== undefined) return { status: 'known', id: transaction.id };
    // Without a cut in between only a rival can have come.
    const funds = ledger().state === state ? (this.#rival(transaction) ?? before) : this.#funds(transaction);
    if ('code' in funds) return this.#refuse(transaction, funds);
    if (!mempool.add(transaction, funds.spends, funds.fee, origin))
      return refused('mempool_full', 'the mempool is full of transactions that pay a higher rate', {
        fee_rate: (funds.fee / BigInt(transaction.mass)).toString(),
      });
    return { status: 'accepted', id: transaction.id };
  }

  /** Checks the signatures of a transaction that came in a block; whatever the outcome, execution decides. */
  async verifyAhead(transaction: ReadTransaction, spends: readonly UnspentOutput[]): Promise<void> {
    const { workers, verified, ledger } = this.#dependencies;
    const checks = signaturesOf(transaction, spends, (address) => ledger().publicKey(address));
    if (typeof checks === 'string') return;
    const valid = await workers.verify(checks).catch(() => false);
    if (valid) verified.add(transaction);
  }

  /** An executed transaction is not refused but known. It has spent its inputs, so it never gets past the checks, and only here need it be asked for. */
  #refuse({ id }: ReadTransaction, error: NodeError): Submission {
    return this.#dependencies.ledger().isExecuted(id) ? { status: 'known', id } : { status: 'refused', error };
  }

  #rival({ body }: ReadTransaction): NodeError | undefined {
    const index = body.inputs.findIndex((outpoint) => this.#dependencies.mempool.spender(outpoint) !== undefined);
    return index < 0 ? undefined : conflictOf(index);
  }

  /**
   * A cut is in the store, and shown to readers, a moment before this ledger stands on it. Whoever spends what it just
   * read must not be told that it does not exist: an unknown input is looked for again when the cut has settled.
   */
  async #fundsNow(transaction: ReadTransaction): Promise<Funds | NodeError> {
    const funds = this.#funds(transaction);
    const sealing = this.#dependencies.sealing();
    if (!('code' in funds) || funds.code !== 'input_unknown' || sealing === undefined) return funds;
    await sealing.catch(() => undefined);
    return this.#funds(transaction);
  }

  #funds({ body, mass }: ReadTransaction): Funds | NodeError {
    const { mempool, ledger } = this.#dependencies;
    const reads = ledger();
    const next = reads.state.height + 1;
    if (body.validUntilHeight < next)
      return nodeError('transaction_expired', `it was valid until cut ${body.validUntilHeight}`, { next_height: next });
    if (body.validFromHeight > next)
      return nodeError('transaction_not_valid_yet', `it is valid from cut ${body.validFromHeight}`, {
        next_height: next,
      });
    if (body.operation !== undefined)
      return nodeError('operation_unsupported', 'staking operations are not supported by this release');
    const spends: UnspentOutput[] = [];
    let paidIn = 0n;
    for (const [index, outpoint] of body.inputs.entries()) {
      const output = reads.output(outpoint);
      if (output === undefined)
        return reads.spender(outpoint) === undefined
          ? nodeError('input_unknown', `input ${index} is no output of a finalized cut`, { input: index })
          : nodeError('input_spent', `input ${index} is spent by a finalized transaction`, { input: index });
      if (mempool.spender(outpoint) !== undefined) return conflictOf(index);
      spends.push(output);
      paidIn += output.amount;
    }
    let paidOut = 0n;
    for (const { amount } of body.outputs) paidOut += amount;
    if (paidOut > paidIn) return nodeError('amounts_exceed_inputs', 'the outputs are more than the inputs');
    const fee = paidIn - paidOut;
    const least = minimumFee(mass);
    if (fee < least)
      return nodeError('fee_below_minimum', `the fee is ${fee} atoms, at least ${least} are needed`, {
        minimum_fee: least.toString(),
      });
    return { spends, fee };
  }
}

const conflictOf = (index: number): NodeError =>
  nodeError('input_conflict', `input ${index} is spent by a transaction that waits`, { input: index });

const refused = (
  code: NodeErrorCode,
  message: string,
  fields: Readonly<Record<string, string | number>> = {},
): Submission => ({ status: 'refused', error: nodeError(code, message, fields) });
