/**
 * The interface of a full node as returned by createNode (node.ts): for the public API, the mining listener, a bridge,
 * a pool or a test. Reads answer from the finalized state and are synchronous where the answer is in memory or one
 * lookup away.
 */
import type { Bytes } from '../protocol/bytes.ts';
import type { Certificate, CutHeader } from '../protocol/ledger/cut.ts';
import type { EmissionState } from '../protocol/ledger/emission.ts';
import type { Genesis } from '../protocol/ledger/genesis.ts';
import type { Network } from '../protocol/network.ts';
import type { SetPath, SetSide } from '../protocol/proofs/set-proof.ts';
import type { Outpoint, TransactionBody } from '../protocol/transactions/transaction.ts';
import type {
  CutEffects,
  FailureReason,
  OutputSource,
  StakePayout,
  ValueFigures,
  WorkReward,
} from './ledger/effects.ts';
import type { StakeState } from './ledger/staking/epoch.ts';
import type { StakingReads } from './ledger/staking/layer.ts';
import type { Position } from './ledger/staking/position.ts';
import type { Validator } from './ledger/staking/validator.ts';
import type { AnchorPolicy } from './mining/anchor-choice.ts';
import type { NodeError } from './node-error.ts';
import type { StoreReader } from './store/cut-indexer.ts';
import type { StorageMode } from './store/storage-mode.ts';

/** Sent by a caller of this node, or by another node: both pass the same checks. */
export type Origin = 'own' | 'relayed';

export type Head = {
  readonly height: number;
  readonly cutId: Bytes;
  readonly stateRoot: Bytes;
  readonly validatorSetId: Bytes;
  readonly timestampMillis: number;
  /** Target of a block anchored at this cut. */
  readonly target: bigint;
};

/** A finalized cut as the store keeps it. */
export type CutRecord = {
  readonly cutId: Bytes;
  readonly header: CutHeader;
  readonly headerBytes: Bytes;
  /** In the order of execution. */
  readonly blockIds: readonly Bytes[];
  readonly transactionCount: number;
  readonly executedBlocks: number;
  readonly rewards: readonly Pick<WorkReward, 'blockId' | 'amount' | 'outpoint'>[];
  readonly stakePayouts: readonly Pick<StakePayout, 'positionId' | 'rewardAddress' | 'amount' | 'outpoint'>[];
  readonly subsidy: bigint;
  readonly fees: bigint;
  readonly figures: ValueFigures;
  /** Target of blocks anchored at this cut, and the work this cut registered. */
  readonly target: bigint;
  readonly registeredWork: bigint;
};

/** `waiting`: accepted, no cut took it yet. `pending`: registered, its anchor is paid in `dueHeight`. */
export type BlockReward =
  | { readonly state: 'waiting' }
  | { readonly state: 'pending'; readonly fees: bigint }
  | {
      readonly state: 'paid';
      readonly height: number;
      readonly reward: Pick<WorkReward, 'subsidy' | 'fees' | 'amount' | 'outpoint'>;
    }
  | { readonly state: 'expired' };

export type BlockRecord = {
  readonly id: Bytes;
  readonly header: Bytes;
  readonly anchorHeight: number;
  /** Last cut that may register it; the cut that pays it. */
  readonly dueHeight: number;
  readonly acceptedMillis: number;
  readonly origin: Origin;
  readonly payout: Bytes;
  readonly extranonce: Bytes;
  readonly parents: readonly Bytes[];
  readonly transactionCount: number;
  readonly registeredHeight?: number;
  readonly reward: BlockReward;
};

/** `header`: of a cut that is being written, which cannot be read yet. */
export type CutRef = { readonly height: number; readonly cutId: Bytes; readonly header?: CutHeader };

export type TransactionStatus = {
  readonly id: Bytes;
  readonly lifecycle: 'processing' | 'receiving' | 'registered' | 'finalized' | 'failed';
  readonly observedBlock?: Bytes;
  readonly registeredCut?: CutRef;
  readonly finalizedCut?: CutRef;
  readonly failure?: FailureReason;
  /** Only `finalized`, and `failed` with `conflict` or `expired` in a finalized cut. */
  readonly final: boolean;
};

/** A page: those after an identifier, at most a number of them. */
export type PositionsPage = { readonly after?: Bytes | undefined; readonly limit: number };

export type PendingTransaction = {
  readonly id: Bytes;
  readonly wire: Bytes;
  readonly body: TransactionBody;
  readonly origin: Origin;
  readonly seenMillis: number;
  readonly fee: bigint;
  readonly mass: number;
  /** The outputs it spends, in the order of its inputs. */
  readonly spends: readonly UnspentOutput[];
};

export type UnspentOutput = {
  readonly outpoint: Outpoint;
  readonly address: Bytes;
  readonly amount: bigint;
  readonly source: OutputSource;
};

export type MempoolView = {
  readonly count: number;
  readonly bytes: number;
  readonly maxBytes: number;
  get(id: Bytes): PendingTransaction | undefined;
  /** Oldest first. */
  list(): Iterable<PendingTransaction>;
  /** The waiting transaction that spends this output. */
  spender(outpoint: Outpoint): PendingTransaction | undefined;
};

export type Supply = ValueFigures & { readonly height: number; readonly outputCount: number };

/** The staking records at the finalized head. */
export type Staking = StakingReads & {
  /** Height of the next cut. */
  readonly epoch: number;
  readonly intervalCuts: number;
  readonly stake: StakeState;
  delegationCount(validator: Bytes): number;
};

export type Emission = {
  readonly state: EmissionState;
  readonly subsidy: bigint;
  readonly intervalCuts: number;
  readonly nextReductionHeight: number;
};

export type Rates = {
  readonly height: number;
  /** Hashes per second over the last cuts, from registered work and cut times. */
  readonly hashesPerSecond: bigint;
  readonly cutMillis: number;
  readonly blocksPerCut: number;
  readonly target: bigint;
  readonly work: bigint;
  /** Cuts that these figures come from. */
  readonly cuts: number;
};

/** The chain's height according to peers. `bestPeerHeight`: the highest that one proved; null if none did. */
export type PeerSync = {
  readonly synced: boolean;
  readonly bestPeerHeight: number | null;
  readonly behindBy: number;
  readonly peers: number;
  /** A peer runs a newer release. */
  readonly updateAnnounced: boolean;
  /** The chain has cuts of a version that this release does not know. */
  readonly updateRequired: boolean;
};

/** A node that makes its own cuts is synced by definition; without peers their figures are absent, not zero. */
export type Sync = { readonly synced: boolean; readonly height: number; readonly peers?: PeerSync };

/** An inclusion proof of an output: its leaf's entries and the siblings up to the root (ledger rule 34). */
export type OutputProof = {
  readonly outpoint: Outpoint;
  readonly output?: UnspentOutput;
  /** The leaf that contains it, or would: entries of 110 bytes each. */
  readonly leaf: Bytes;
  /** From the root down: on which side the path goes, and the digest, sum and count of the other side. */
  readonly path: readonly {
    readonly right: boolean;
    readonly digest: Bytes;
    readonly sum: bigint;
    readonly count: number;
  }[];
  readonly root: { readonly digest: Bytes; readonly sum: bigint; readonly count: number };
};

export type Submission =
  | { readonly status: 'accepted' | 'known'; readonly id: Bytes }
  | { readonly status: 'refused'; readonly error: NodeError };

export type RemovalReason = 'finalized' | 'expired' | 'evicted' | 'conflict' | 'rejected';

export type NodeEvents = {
  /** After the batch of the cut is durable, in order of height. Listeners must not throw. */
  cut: (effects: CutEffects) => void;
  block: (block: BlockRecord) => void;
  mempoolAdded: (transaction: PendingTransaction) => void;
  mempoolRemoved: (transaction: PendingTransaction, reason: RemovalReason) => void;
  /** The node stopped because of a fault: disk full, or a broken ledger. */
  fault: (error: Error) => void;
};

export type TemplateRequest = {
  readonly payout: Bytes;
  readonly maxTransactions: number;
  readonly extranonce?: Bytes;
  /** Which of several draws of transactions; the same number within 5 s gives the same draw. */
  readonly draw?: number;
  /** How its anchor is chosen; default `newest`. */
  readonly anchors?: AnchorPolicy;
};

export type Template = {
  readonly anchor: Head;
  readonly header: Bytes;
  /** Encoded on first use: up to a mebibyte, and a caller that only forwards a template does not need it. */
  readonly body: Bytes;
  readonly payout: Bytes;
  readonly extranonce: Bytes;
  /** In ascending order. */
  readonly parents: readonly Bytes[];
  /** In wire form, in the order of the body. */
  readonly transactions: readonly Bytes[];
  readonly registrationWindowEnd: number;
  readonly target: bigint;
  readonly timestampMillis: number;
  readonly parentsRoot: Bytes;
  readonly transactionsRoot: Bytes;
  readonly rewardRoot: Bytes;
  readonly draw: number;
  readonly transactionCount: number;
  /** The block's part of the fees if all its transactions execute here first. */
  readonly fees: bigint;
  readonly pow: { readonly epoch: number; readonly seed: Bytes; readonly epochLength: number };
  /** How long the draw stays the same from now on. */
  readonly validMillis: number;
};

/** Reads of the chain up to its last final cut, and of transactions and blocks that wait for the next. */
export interface Chain {
  readonly network: Network;
  readonly chainId: Bytes;
  readonly genesis: Genesis;
  /** The index space of a CutIndexer. */
  reader(indexer: string): StoreReader;

  head(): Head;
  cut(height: number): CutRecord | undefined;
  certificate(height: number): Certificate | undefined;
  block(id: Bytes): BlockRecord | undefined;
  blockBody(id: Bytes): Bytes | undefined;
  readonly storage: StorageMode;
  /** The lowest cut from which on all blocks are here with their bodies. */
  bodiesFrom(): number;
  /**
   * The first cut that this node executed itself: 0, or the one after the snapshot that it began with. Of earlier cuts,
   * only header, blocks and target are known.
   */
  historyFrom(): number;
  /** Blocks that no cut has taken yet. */
  waitingBlocks(): Iterable<BlockRecord>;
  output(outpoint: Outpoint): UnspentOutput | undefined;
  outputProof(outpoint: Outpoint): OutputProof;
  /** The path to a record, or to its place if it is absent. */
  stakingProof(set: 'validators' | 'positions', id: Bytes): SetPath & { readonly root: SetSide };
  /** The bytes whose hash is the state root of the head; they contain the root of the output set. */
  stateBytes(): Bytes;
  publicKey(address: Bytes): Bytes | undefined;
  transactionStatus(id: Bytes): TransactionStatus | undefined;
  supply(): Supply;
  emission(): Emission;
  staking(): Staking;
  /** All validators that ever registered, by identifier. */
  validators(page: PositionsPage): Promise<readonly Validator[]>;
  /** Positions that an address owns, by identifier. */
  positionsOf(owner: Bytes, page?: PositionsPage): Promise<readonly Position[]>;
  rates(): Rates;
  sync(): Sync;
  /** Sets the source of `sync`. */
  followPeers(peers: () => PeerSync): void;
}

export interface FullNode {
  readonly chain: Chain;
  readonly mempool: MempoolView;
  /** Whether it holds keys of a quorum of the committee and makes cuts by itself. */
  readonly makesCuts: boolean;

  submitTransaction(wire: Bytes, origin?: Origin): Promise<Submission>;
  /** The body is not copied: the caller must not change it afterwards. */
  submitBlock(header: Bytes, body: Bytes, origin?: Origin): Promise<Submission>;
  template(request: TemplateRequest): Template;

  on<E extends keyof NodeEvents>(event: E, listener: NodeEvents[E]): () => void;
  /** Makes the next cut now, independent of the cut clock; for tests and simulations. */
  seal(): Promise<CutEffects>;
  /** Deletes the bodies of blocks that cuts up to `height` registered and whose windows are closed; headers, rewards and cuts stay. Returns how many. */
  pruneBodies(height: number): Promise<number>;
  close(): Promise<void>;
}
