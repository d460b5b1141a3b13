/**
 * Executing transactions inside a cut (ledger rule 36): outputs are taken from and put into a layer over the finalized set, which
 * becomes the changes of the cut. A transaction either does everything it says or nothing.
 */
import { ADDRESS_KINDS, keyAddressPayload } from '../../protocol/address.ts';
import type { Bytes } from '../../protocol/bytes.ts';
import { bondedBy } from '../../protocol/staking/operation.ts';
import { minimumFee } from '../../protocol/transactions/fee.ts';
import type { Outpoint, Witness } from '../../protocol/transactions/transaction.ts';
import type { UnspentOutput } from '../full-node.ts';
import type { CreatedOutput, FailedTransaction, RegisteredKey, SpentOutput } from './effects.ts';
import { outpointKey, outputEntry } from './output-set.ts';
import { nameOf } from './registration.ts';
import type { StakingLayer } from './staking/layer.ts';
import { type OperationContext, type Prepared, prepare } from './staking/operations.ts';
import type { Sweep } from './staking/slashing.ts';
import type { TrieChange } from './trie.ts';
import type { ReadTransaction } from './work-block.ts';

/** The finalized ledger as execution sees it. */
export interface LedgerReads {
  output(outpoint: Outpoint): UnspentOutput | undefined;
  /** The transaction of a finalized cut that spent this output. */
  spender(outpoint: Outpoint): Bytes | undefined;
  isExecuted(transactionId: Bytes): boolean;
  /** First cut of which it is known what was spent and executed, where not of all: a node may begin with a snapshot. */
  readonly historyFrom?: number;
  /** Key of an address from the registry as the cut before left it. */
  publicKey(address: Bytes): Bytes | undefined;
}

export type WitnessCheck =
  | 'valid'
  | 'witness_key_mismatch'
  | 'witness_key_unregistered'
  | 'signature_invalid'
  | 'operation_proof_invalid';

/** The signer of a transaction's operation, and the signatures inside it. */
export type OperationSignatures = Pick<Prepared, 'signer' | 'proofs'>;

/** Checks the witnesses of a transaction against the outputs it spends, and the signatures of its operation. */
export type CheckWitnesses = (
  transaction: ReadTransaction,
  spends: readonly UnspentOutput[],
  publicKey: (address: Bytes) => Bytes | undefined,
  operation?: OperationSignatures,
) => WitnessCheck;

/** The staking records that operations change. */
export type StakingPart = Pick<OperationContext, 'intervalCuts' | 'chainId' | 'sweeps' | 'isPaymentDue'> & {
  readonly layer: StakingLayer;
};

export type Executed = { readonly fee: bigint; readonly burned: bigint };
type Failed = { readonly reason: FailedTransaction['reason']; readonly detail: string };
export type Outcome = Executed | Failed | 'repeated';

export const isBurn = (address: Bytes): boolean => address[0] === ADDRESS_KINDS.burn;

export class CutExecution {
  readonly created: CreatedOutput[] = [];
  readonly spent: SpentOutput[] = [];
  readonly keys: RegisteredKey[] = [];
  burned = 0n;
  readonly #height: number;
  readonly #reads: LedgerReads;
  readonly #check: CheckWitnesses;
  readonly #staking: StakingPart;
  /** Slashings that this cut began. */
  readonly begun: Sweep[] = [];
  /** Outputs made by this cut and still unspent. */
  readonly #fresh = new Map<string, CreatedOutput>();
  readonly #spenders = new Map<string, Bytes>();
  readonly #executed = new Set<string>();
  readonly #newKeys = new Set<string>();

  constructor(height: number, reads: LedgerReads, staking: StakingPart, check: CheckWitnesses) {
    this.#height = height;
    this.#reads = reads;
    this.#staking = staking;
    this.#check = check;
  }

  create(output: CreatedOutput): void {
    this.created.push(output);
    this.#fresh.set(nameOf(outpointKey(output.outpoint)), output);
  }

  execute(transaction: ReadTransaction): Outcome {
    const { body, id } = transaction;
    if (this.#executed.has(nameOf(id)) || this.#reads.isExecuted(id)) return 'repeated';
    // A cut before this node's history may have executed it. Either way this one does not, and nothing is said of it.
    const mayBeOld = body.validFromHeight < (this.#reads.historyFrom ?? 0);
    if (this.#height > body.validUntilHeight)
      return mayBeOld ? 'repeated' : { reason: 'expired', detail: 'transaction_expired' };
    if (this.#height < body.validFromHeight) return { reason: 'no_effect', detail: 'transaction_not_valid_yet' };
    const spends: UnspentOutput[] = [];
    let paidIn = 0n;
    for (const outpoint of body.inputs) {
      const output = this.#find(outpoint);
      if (output === 'input_unknown' && mayBeOld) return 'repeated';
      if (typeof output === 'string')
        return { reason: output === 'input_spent' ? 'conflict' : 'no_effect', detail: output };
      spends.push(output);
      paidIn += output.amount;
    }
    const operation = this.#prepare(transaction, spends);
    if (operation !== undefined && 'reason' in operation) return operation;
    let paidOut = bondedBy(transaction.operation);
    for (const { amount } of body.outputs) paidOut += amount;
    if (paidOut > paidIn) return { reason: 'invalid', detail: 'amounts_exceed_inputs' };
    const fee = paidIn - paidOut;
    if (fee < minimumFee(transaction.mass)) return { reason: 'invalid', detail: 'fee_below_minimum' };
    const check = this.#check(transaction, spends, this.#reads.publicKey, operation);
    // A key may be registered later; a wrong signature stays wrong.
    if (check !== 'valid')
      return { reason: check === 'witness_key_unregistered' ? 'no_effect' : 'invalid', detail: check };
    const burned = this.#carryOut(transaction, spends);
    if (operation !== undefined) this.#operate(transaction, operation);
    return { fee, burned };
  }

  #prepare({ id, operation }: ReadTransaction, spends: readonly UnspentOutput[]) {
    if (operation === undefined) return undefined;
    const { layer, sweeps, ...rest } = this.#staking;
    return prepare(operation, {
      ...rest,
      staking: layer,
      sweeps: [...sweeps, ...this.begun],
      height: this.#height,
      transactionId: id,
      payer: (spends[0] as UnspentOutput).address,
    });
  }

  #operate({ body, witnesses }: ReadTransaction, { signer, withdrawal, sweep, apply }: Prepared): void {
    apply(this.#staking.layer);
    if (withdrawal !== undefined) this.create({ ...withdrawal, source: 'stake_withdrawal' });
    if (sweep !== undefined) this.begun.push(sweep);
    this.#registerKeys(witnesses[body.inputs.length], signer.address);
  }

  #find(outpoint: Outpoint): UnspentOutput | 'input_spent' | 'input_unknown' {
    const name = nameOf(outpointKey(outpoint));
    if (this.#spenders.has(name)) return 'input_spent';
    const output = this.#fresh.get(name) ?? this.#reads.output(outpoint);
    if (output !== undefined) return output;
    return this.#reads.spender(outpoint) === undefined ? 'input_unknown' : 'input_spent';
  }

  #carryOut({ id, body, witnesses }: ReadTransaction, spends: readonly UnspentOutput[]): bigint {
    this.#executed.add(nameOf(id));
    spends.forEach((output, i) => {
      this.spent.push({ ...output, spentBy: id });
      this.#spenders.set(nameOf(outpointKey(output.outpoint)), id);
      this.#registerKeys(witnesses[i], output.address);
    });
    let burned = 0n;
    body.outputs.forEach(({ address, amount }, outputIndex) => {
      if (isBurn(address)) burned += amount;
      else this.create({ outpoint: { transactionId: id, outputIndex }, address, amount, source: 'regular' });
    });
    this.burned += burned;
    return burned;
  }

  /** Of a multisig address all members' keys, each under the hash that its own address has. */
  #registerKeys(witness: Witness | undefined, address: Bytes): void {
    if (witness?.profile === 'inline') this.#registerKey(address, witness.publicKey);
    if (witness?.profile === 'multisig_inline')
      for (const key of witness.descriptor.keys) this.#registerKey(keyAddressPayload(key), key);
  }

  #registerKey(address: Bytes, publicKey: Bytes): void {
    const name = nameOf(address);
    if (this.#newKeys.has(name) || this.#reads.publicKey(address) !== undefined) return;
    this.#newKeys.add(name);
    this.keys.push({ address, publicKey });
  }

  /** Changes of the output set: outputs both made and spent in this cut do not appear. */
  outputChanges(): TrieChange[] {
    const changes: TrieChange[] = [];
    for (const output of this.created) {
      const key = outpointKey(output.outpoint);
      if (!this.#spenders.has(nameOf(key))) changes.push({ key, entry: outputEntry(output) });
    }
    for (const output of this.spent) {
      const key = outpointKey(output.outpoint);
      if (!this.#fresh.has(nameOf(key))) changes.push({ key });
    }
    return changes;
  }

  keyChanges(): TrieChange[] {
    return this.keys.map(({ address }) => ({ key: address.subarray(1), entry: address.subarray(1) }));
  }
}
