/**
 * The complete effects of one cut: everything that an index, an event stream or a metric needs, so that no cut is
 * executed a second time. Produced by applyCut, handed to indexers in the cut's batch and to listeners once the cut is
 * final.
 */
import type { Bytes } from '../../protocol/bytes.ts';
import type { CutHeader } from '../../protocol/ledger/cut.ts';
import type { Outpoint, TransactionBody } from '../../protocol/transactions/transaction.ts';
import type { StakingChanges } from './staking/layer.ts';

export const OUTPUT_SOURCES = ['regular', 'work_reward', 'stake_reward', 'genesis', 'stake_withdrawal'] as const;
export type OutputSource = (typeof OUTPUT_SOURCES)[number];

export type CreatedOutput = {
  readonly outpoint: Outpoint;
  /** Address payload, 49 bytes. */
  readonly address: Bytes;
  readonly amount: bigint;
  readonly source: OutputSource;
};

/** `spentBy` is the identifier of the transaction that spent it. */
export type SpentOutput = CreatedOutput & { readonly spentBy: Bytes };

/** Why a transaction failed; `conflict` and `expired` in a finalized cut are final. */
export const FAILURE_REASONS = ['conflict', 'invalid', 'expired', 'dropped', 'no_effect'] as const;
export type FailureReason = (typeof FAILURE_REASONS)[number];

type CarriedTransaction = {
  readonly id: Bytes;
  readonly wire: Bytes;
  readonly body: TransactionBody;
  readonly blockId: Bytes;
  /** Place in the block that carried it. */
  readonly index: number;
};

export type ExecutedTransaction = CarriedTransaction & {
  readonly outcome: 'executed';
  readonly fee: bigint;
  readonly mass: number;
  /** Part of its outputs that went to the burn address and was not created. */
  readonly burned: bigint;
};

/** `repeated`: executed by an earlier block of this or another cut, so this block earns nothing by it. */
export type RepeatedTransaction = CarriedTransaction & { readonly outcome: 'repeated' };

export type FailedTransaction = CarriedTransaction & {
  readonly outcome: 'failed';
  readonly reason: Exclude<FailureReason, 'dropped'>;
  readonly detail: string;
};

/**
 * Failures caused by the witnesses or their length: they concern the copy in the block, not the transaction (ledger
 * rule 36).
 */
const COPY_FAILURES: ReadonlySet<string> = new Set([
  'fee_below_minimum',
  'witness_key_mismatch',
  'witness_key_unregistered',
  'signature_invalid',
]);

export const isFaultOfCopy = ({ detail }: FailedTransaction): boolean => COPY_FAILURES.has(detail);

export type TransactionEffect = ExecutedTransaction | RepeatedTransaction | FailedTransaction;

/** A transaction that waited in this node's mempool and cannot be executed after this cut. */
export type LostTransaction = { readonly id: Bytes; readonly reason: 'conflict' | 'expired' };

export type RegisteredBlock = {
  readonly id: Bytes;
  /** 312 bytes. */
  readonly header: Bytes;
  readonly anchorHeight: number;
  readonly payout: Bytes;
  readonly extranonce: Bytes;
  readonly parents: readonly Bytes[];
  readonly transactionCount: number;
  /** Work of its target. */
  readonly work: bigint;
  /** Half of the fees of the transactions it executed: paid with its reward. */
  readonly feeShare: bigint;
  readonly bodyBytes: number;
};

export type ExpiredBlock = { readonly id: Bytes; readonly anchorHeight: number };

/** The reward of one block. Without an outpoint if it is less than one atom. */
export type WorkReward = {
  readonly blockId: Bytes;
  readonly anchorHeight: number;
  readonly payout: Bytes;
  /** Share of the anchor's work half, and half of the fees the block carried. */
  readonly subsidy: bigint;
  readonly fees: bigint;
  readonly amount: bigint;
  readonly outpoint?: Outpoint;
};

export type StakePayout = {
  readonly positionId: Bytes;
  readonly validatorId: Bytes;
  readonly interval: number;
  readonly rewardAddress: Bytes;
  readonly amount: bigint;
  readonly outpoint: Outpoint;
};

export type RegisteredKey = { readonly address: Bytes; readonly publicKey: Bytes };

/** The sides of the value equation after the cut: outputs + bonded + unbonding + reserves + burned = minted. */
export type ValueFigures = {
  readonly outputs: bigint;
  readonly bonded: bigint;
  readonly unbonding: bigint;
  readonly workReserve: bigint;
  readonly stakeReserve: bigint;
  readonly burned: bigint;
  readonly minted: bigint;
  /** Emission still to come after this cut. */
  readonly unscheduled: bigint;
};

export type CutEffects = {
  readonly chainId: Bytes;
  readonly cutId: Bytes;
  readonly header: CutHeader;
  readonly headerBytes: Bytes;
  readonly created: readonly CreatedOutput[];
  readonly spent: readonly SpentOutput[];
  /** In the order of execution, whatever their result. */
  readonly transactions: readonly TransactionEffect[];
  readonly lost: readonly LostTransaction[];
  /** In the order of execution. */
  readonly registered: readonly RegisteredBlock[];
  /** Blocks this node knew whose window closed before a cut took them. */
  readonly expired: readonly ExpiredBlock[];
  readonly rewards: readonly WorkReward[];
  readonly stakePayouts: readonly StakePayout[];
  readonly keys: readonly RegisteredKey[];
  /** Staking records that the cut made, changed or removed. */
  readonly staking: StakingChanges;
  /** Subsidy of this cut and what its transactions paid. */
  readonly subsidy: bigint;
  readonly fees: bigint;
  readonly interval: number;
  readonly figures: ValueFigures;
  /** Number of unspent outputs after the cut. */
  readonly outputCount: number;
  /** Work that a block anchored at this cut must have, and its target. */
  readonly nextWork: bigint;
  readonly nextTarget: bigint;
};
