/**
 * Admission of transactions (ledger rules 50 and 51): cheap checks first, signatures last and in worker threads, then the cheap checks
 * again, because a cut or a conflicting transaction may have come in between. The same checks apply to own and relayed transactions.
 */

import type { Bytes } from '../../protocol/bytes.ts';
import { ProtocolError } from '../../protocol/errors.ts';
import { bondedBy, type StakingOperation } from '../../protocol/staking/operation.ts';
import { minimumFee } from '../../protocol/transactions/fee.ts';
import type { CutInProgress } from '../chain/cut-in-progress.ts';
import type { Origin, Submission, UnspentOutput } from '../full-node.ts';
import type { LedgerView } from '../ledger/apply-cut.ts';
import type { LedgerReads } from '../ledger/execution.ts';
import {
  type OperationRefusal,
  type OperationRefusalCode,
  type Prepared,
  prepare,
} from '../ledger/staking/operations.ts';
import { isPaymentDue } from '../ledger/staking/payment.ts';
import { type ReadTransaction, readTransaction } from '../ledger/work-block.ts';
import { type NodeError, type NodeErrorCode, nodeError } from '../node-error.ts';
import type { ChecksAside } from './checked-signatures.ts';
import type { Mempool } from './mempool.ts';
import type { VerifiedTransactions } from './witness-check.ts';

export type AdmissionOptions = { readonly chainId: Bytes; readonly maxPending: number };
export type AdmissionDependencies = {
  readonly mempool: Mempool;
  /** `first`: for those of blocks. */
  readonly workers: ChecksAside & { readonly first: ChecksAside };
  readonly verified: VerifiedTransactions;
  /** The ledger at the finalized head. */
  ledger(): DoorLedger;
  /** The cut that is being made, if one is. */
  readonly progress: Pick<CutInProgress, 'sealing'>;
};

/** The part of the ledger that admission reads. */
export type DoorLedger = LedgerReads & Pick<LedgerView, 'state' | 'staking'>;

/** This part of the capacity is reserved for transactions submitted here: peers cannot fill it. */
const OWN_PART = 4;
/** At most this part of each origin's capacity may wait for a cut: anybody can use inputs that never exist. */
const WAITING_PART = 4;

type Funds = {
  readonly spends: readonly UnspentOutput[];
  readonly fee: bigint;
  readonly operation?: Prepared;
};

const WITNESS_TEXT = {
  witness_key_mismatch: 'a public key does not belong to the address it spends from',
  witness_key_unregistered: 'a referenced key is not in the registry of a finalized cut',
  signature_invalid: 'a signature does not verify',
  operation_proof_invalid: 'a signature inside the staking operation does not verify',
} as const;

const OPERATION_TEXT: Readonly<Record<OperationRefusalCode, string>> = {
  validator_unknown: 'no validator has this identifier',
  validator_inactive: 'the validator exits or is slashed',
  validator_slashed: 'the validator is slashed already',
  consensus_key_used: 'a validator has or had this consensus key',
  change_pending: 'a change that was announced is not in force yet',
  position_unknown: 'no position has this identifier',
  position_self_bond: 'a self-bond leaves with the exit of its validator only',
  position_unbonding: 'the position is unbonding',
  position_bonded: 'the position is bonded: unbond it first',
  position_locked: 'the position is not released yet',
  position_empty: 'nothing is left of the position',
  unbond_amount: 'both parts must hold at least 100 coins; 0 unbonds all',
  heartbeat_epoch: 'the heartbeat is for another epoch than the running one',
  heartbeat_repeated: 'the heartbeat of this validator was already sent this epoch',
  evidence_expired: 'the votes are too old',
  evidence_early: 'the votes are for a cut that is still to come',
  evidence_key_unknown: 'the validator had no key in the epoch of the votes',
};

export class Admission {
  readonly #options: AdmissionOptions;
  readonly #dependencies: AdmissionDependencies;
  readonly #pending = new Map<string, Promise<Submission>>();
  /** Transactions that wait for the cut being made. */
  readonly #waiting: Record<Origin, number> = { own: 0, relayed: 0 };

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
    const { maxPending } = this.#options;
    if (this.#pending.size >= (origin === 'own' ? maxPending : maxPending - maxPending / OWN_PART))
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
    const { mempool, ledger, workers } = this.#dependencies;
    let funds = await this.#fundsNow(transaction, origin);
    for (;;) {
      if ('code' in funds) return this.#refuse(transaction, funds);
      // Signatures cost most: a transaction without room is refused before they are checked.
      if (!mempool.hasRoomFor(transaction, funds.fee)) return fullFor(transaction, funds.fee);
      const { state } = ledger();
      const fault = await this.#faultOfSignatures(transaction, funds, workers);
      if (fault !== undefined) return refused(fault, WITNESS_TEXT[fault]);
      if (mempool.get(transaction.id) !== undefined) return { status: 'known', id: transaction.id };
      // Without a cut in between, only a conflicting transaction can have arrived. Nothing may be awaited between the
      // last check and the insertion.
      const isSameCut = ledger().state === state;
      const now: Funds | NodeError = isSameCut ? (this.#rival(transaction) ?? funds) : this.#funds(transaction);
      if ('code' in now) return this.#refuse(transaction, now);
      funds = now;
      // A cut in between may have changed the required signer of an operation: everything is checked again.
      if (isSameCut || funds.operation === undefined) break;
    }
    if (!mempool.add(transaction, funds.spends, funds.fee, origin, funds.operation?.validator))
      return fullFor(transaction, funds.fee);
    return { status: 'accepted', id: transaction.id };
  }

  async #faultOfSignatures(
    transaction: ReadTransaction,
    { spends, operation }: Funds,
    aside: ChecksAside,
  ): Promise<keyof typeof WITNESS_TEXT | undefined> {
    const { verified, ledger } = this.#dependencies;
    const keyOf = (address: Bytes) => ledger().publicKey(address);
    const check = await verified.checkAside(aside, transaction, spends, keyOf, operation);
    return check === 'valid' ? undefined : check;
  }

  /** Why the next cut can no longer carry out the operation of a waiting transaction. */
  operationRefusal(transaction: ReadTransaction, spends: readonly UnspentOutput[]): OperationRefusal | undefined {
    const prepared = this.#operation(transaction, spends);
    return prepared !== undefined && 'reason' in prepared ? prepared : undefined;
  }

  #operation({ id, operation }: ReadTransaction, spends: readonly UnspentOutput[]) {
    if (operation === undefined) return undefined;
    const { state, staking } = this.#dependencies.ledger();
    const { walk, previous, sweeps } = state.stake;
    return prepare(operation, {
      staking,
      height: state.height + 1,
      intervalCuts: state.intervalCuts,
      chainId: this.#options.chainId,
      transactionId: id,
      payer: (spends[0] as UnspentOutput).address,
      sweeps,
      isPaymentDue: (validator) => isPaymentDue(walk, previous, validator),
    });
  }

  /** Checks the signatures of a transaction in a block in advance; execution decides in any case. */
  async verifyAhead(transaction: ReadTransaction, spends: readonly UnspentOutput[]): Promise<void> {
    const operation = this.#operation(transaction, spends);
    if (operation !== undefined && 'reason' in operation) return;
    const { first } = this.#dependencies.workers;
    await this.#faultOfSignatures(transaction, { spends, fee: 0n, ...(operation && { operation }) }, first);
  }

  /**
   * An executed transaction is reported as known, not refused. It has spent its inputs, so it never passes the checks,
   * and only this code needs to look it up.
   */
  #refuse({ id }: ReadTransaction, error: NodeError): Submission {
    return this.#dependencies.ledger().isExecuted(id) ? { status: 'known', id } : { status: 'refused', error };
  }

  #rival({ body, operation }: ReadTransaction): NodeError | undefined {
    const { mempool } = this.#dependencies;
    const index = body.inputs.findIndex((outpoint) => mempool.spender(outpoint) !== undefined);
    if (index >= 0) return conflictOf(index);
    return mempool.isSlotTaken(operation) ? slotTaken(operation) : undefined;
  }

  /**
   * A cut is in the store, and shown to readers, shortly before it is the head of this ledger. A client that spends an output it
   * has just read must not get `input_unknown`: an unknown input is looked up again when the cut has settled.
   */
  async #fundsNow(transaction: ReadTransaction, origin: Origin): Promise<Funds | NodeError> {
    const funds = this.#funds(transaction);
    const sealing = this.#dependencies.progress.sealing;
    if (!('code' in funds) || funds.code !== 'input_unknown' || sealing === undefined) return funds;
    if (this.#waiting[origin] >= this.#options.maxPending / WAITING_PART) return funds;
    this.#waiting[origin]++;
    await sealing.catch(() => undefined);
    this.#waiting[origin]--;
    return this.#funds(transaction);
  }

  #funds(transaction: ReadTransaction): Funds | NodeError {
    const { body, mass } = transaction;
    const { mempool, ledger } = this.#dependencies;
    const reads = ledger();
    const next = reads.state.height + 1;
    if (body.validUntilHeight < next)
      return nodeError('transaction_expired', `it was valid until cut ${body.validUntilHeight}`, { next_height: next });
    if (body.validFromHeight > next)
      return nodeError('transaction_not_valid_yet', `it is valid from cut ${body.validFromHeight}`, {
        next_height: next,
      });
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
    const operation = this.#operation(transaction, spends);
    if (operation !== undefined && 'reason' in operation)
      return nodeError(operation.detail, OPERATION_TEXT[operation.detail], { next_height: next });
    if (mempool.isSlotTaken(transaction.operation)) return slotTaken(transaction.operation);
    let paidOut = bondedBy(transaction.operation);
    for (const { amount } of body.outputs) paidOut += amount;
    if (paidOut > paidIn)
      return nodeError('amounts_exceed_inputs', 'the outputs, and what is bonded, are more than the inputs');
    const fee = paidIn - paidOut;
    const least = minimumFee(mass);
    if (fee < least)
      return nodeError('fee_below_minimum', `the fee is ${fee} atoms, at least ${least} are needed`, {
        minimum_fee: least.toString(),
      });
    return { spends, fee, ...(operation && { operation }) };
  }
}

const slotTaken = (operation: StakingOperation | undefined): NodeError =>
  nodeError(
    'operation_conflict',
    operation?.name === 'heartbeat'
      ? 'the heartbeat of this validator was already sent this epoch: it waits for its cut'
      : 'an operation of this kind waits already',
  );

const conflictOf = (index: number): NodeError =>
  nodeError('input_conflict', `input ${index} is spent by a transaction that waits`, { input: index });

const fullFor = ({ mass }: ReadTransaction, fee: bigint): Submission =>
  refused('mempool_full', 'the mempool is full of transactions that pay a higher rate', {
    fee_rate: (fee / BigInt(mass)).toString(),
  });

const refused = (
  code: NodeErrorCode,
  message: string,
  fields: Readonly<Record<string, string | number>> = {},
): Submission => ({ status: 'refused', error: nodeError(code, message, fields) });
