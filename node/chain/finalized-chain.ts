/**
 * The chain up to the last final cut: all reads of its state and of the store and, for waiting transactions and blocks,
 * of the mempool and the work pool. final-cuts.ts moves it to the next state when a cut is final.
 */

import { type Bytes, equalBytes } from '../../protocol/bytes.ts';
import type { Certificate } from '../../protocol/ledger/cut.ts';
import { subsidyOfCut } from '../../protocol/ledger/emission.ts';
import type { Genesis } from '../../protocol/ledger/genesis.ts';
import { workOfTarget } from '../../protocol/ledger/target.ts';
import { NETWORKS, type Network, powEpoch, REGISTRATION_WINDOW } from '../../protocol/network.ts';
import { epochOf } from '../../protocol/staking/limits.ts';
import type { Outpoint } from '../../protocol/transactions/transaction.ts';
import { BoundedMap } from '../../runtime/bounded-map.ts';
import type {
  BlockRecord,
  Chain,
  CutRecord,
  CutRef,
  Emission,
  Head,
  PeerSync,
  PositionsPage,
  Rates,
  Staking,
  Supply,
  Sync,
  TransactionStatus,
} from '../full-node.ts';
import { figuresOf, type LedgerView } from '../ledger/apply-cut.ts';
import { findOutput, proveOutput } from '../ledger/output-set.ts';
import { isWindowOpen, nameOf } from '../ledger/registration.ts';
import type { Committee } from '../ledger/staking/committee.ts';
import type { Position } from '../ledger/staking/position.ts';
import type { Validator } from '../ledger/staking/validator.ts';
import { encodeState, type LedgerState, targetOfState } from '../ledger/state.ts';
import { type ReadTransaction, readTransaction } from '../ledger/work-block.ts';
import type { Mempool } from '../mempool/mempool.ts';
import type { WorkPool } from '../mining/work-pool.ts';
import type { NodeEnd } from '../node-end.ts';
import type { LedgerStore } from '../store/ledger-store.ts';
import type { StorageMode } from '../store/storage-mode.ts';
import type { CutInProgress } from './cut-in-progress.ts';
import type { OpenedChain } from './open-chain.ts';

const RATE_CUTS = 96;
const KEPT_REFS = 8_192;

/** Blocks and transactions that are not final yet; statuses include them. */
type Waiting = {
  readonly mempool: Pick<Mempool, 'get'>;
  readonly pool: Pick<WorkPool, 'list' | 'carrier' | 'isBodyTaken'>;
  /** Whether its witnesses, exactly these bytes, were checked and are valid. */
  isVerified(transaction: ReadTransaction): boolean;
  /** Why a transaction left the mempool without being decided by a cut. */
  dropped(name: string): 'dropped' | 'invalid' | undefined;
  readonly progress: CutInProgress;
  readonly end: NodeEnd;
};

export class FinalizedChain implements Chain {
  readonly network: Network;
  readonly chainId: Bytes;
  readonly genesis: Genesis;
  state: LedgerState;
  record: CutRecord;
  readonly #store: LedgerStore;
  readonly #waiting: Waiting;
  #head: Head;
  readonly #refs = new BoundedMap<number, CutRef>(KEPT_REFS);
  readonly #anchors = new BoundedMap<number, Head>(REGISTRATION_WINDOW);
  readonly #recent: { timestampMillis: number; work: bigint; blocks: number }[] = [];
  #bodiesFrom: number;
  #peers: (() => PeerSync) | undefined;

  constructor(store: LedgerStore, { genesis, state, record }: OpenedChain, waiting: Waiting) {
    this.#store = store;
    this.#waiting = waiting;
    this.genesis = genesis;
    this.network = NETWORKS[genesis.network];
    this.chainId = state.chainId;
    this.state = state;
    this.record = record;
    this.#head = headOf(state, record);
    this.#bodiesFrom = store.prunedThrough() + 1;
    for (let height = Math.max(0, state.height - RATE_CUTS); height <= state.height; height++) {
      const cut = store.cut(height);
      if (cut !== undefined) this.#noteRate(cut);
    }
  }

  /** The cut is final: later answers use it. */
  advance(state: LedgerState): void {
    this.state = state;
    this.record = this.#store.cut(state.height) as CutRecord;
    this.#head = headOf(state, this.record);
    this.#noteRate(this.record);
  }

  head(): Head {
    return this.#head;
  }

  /** The anchors whose windows are open, oldest first, and how many blocks are registered for each. */
  openAnchors(): { readonly anchor: Head; readonly registered: number }[] {
    const open = this.state.windows.filter(({ anchorHeight }) => isWindowOpen(anchorHeight, this.state.height + 1));
    return open.map(({ anchorHeight, blocks }) => ({
      anchor: this.anchor(anchorHeight) as Head,
      registered: blocks.length,
    }));
  }

  /** Of an open window: only those are kept. */
  anchor(height: number): Head | undefined {
    if (height === this.#head.height) return this.#head;
    const known = this.#anchors.get(height);
    if (known !== undefined) return known;
    const record = this.cut(height);
    if (record === undefined) return undefined;
    const { cutId, header, target } = record;
    const { stateRoot, validatorSetId, timestampMillis } = header;
    const anchor = { height, cutId, stateRoot, validatorSetId, timestampMillis, target };
    this.#anchors.set(height, anchor);
    return anchor;
  }

  cut(height: number): CutRecord | undefined {
    return height > this.state.height ? undefined : this.#store.cut(height);
  }

  /** Missing for a cut that was proved by the certificate of a later one, before it was executed here. */
  certificate(height: number): Certificate | undefined {
    const found = height > this.state.height ? undefined : this.#store.certificate(height);
    return height > 0 && found?.signatures.length === 0 ? undefined : found;
  }

  block(id: Bytes): BlockRecord | undefined {
    const record = this.#store.block(id);
    return record && blockAt(record, this.state.height);
  }

  blockBody(id: Bytes): Bytes | undefined {
    return this.#store.body(id);
  }

  get storage(): StorageMode {
    return this.#store.mode;
  }

  bodiesFrom(): number {
    return this.#bodiesFrom;
  }

  /** Bodies about to be deleted are no longer offered to peers. */
  async pruneBodies(height: number): Promise<number> {
    const last = Math.min(height, this.state.height - REGISTRATION_WINDOW);
    this.#bodiesFrom = Math.max(this.#bodiesFrom, last + 1);
    return await this.#store.pruneBodies(last);
  }

  historyFrom(): number {
    return this.#store.beganAt() + 1;
  }

  /** Unknown to a node that began with a snapshot: a parent that a proven cut relies on was registered before that (decision 9). */
  isBeforeHistory(id: Bytes): boolean {
    return this.historyFrom() > 0 && this.#store.block(id) === undefined;
  }

  *waitingBlocks(): Iterable<BlockRecord> {
    for (const block of this.#waiting.pool.list()) yield block.record;
  }

  output(outpoint: Outpoint) {
    return findOutput(this.#store.outputTrie, this.state.outputs, outpoint);
  }

  outputProof(outpoint: Outpoint) {
    return proveOutput(this.#store.outputTrie, this.state.outputs, outpoint);
  }

  stakingProof(set: 'validators' | 'positions', id: Bytes) {
    const root = this.state[set];
    const { leaf, siblings } = this.#store.staking.tries[set].path(root, id);
    return { root, leaf, path: siblings.map(({ side }) => side) };
  }

  stateBytes(): Bytes {
    return encodeState(this.state);
  }

  publicKey(address: Bytes): Bytes | undefined {
    return this.#store.publicKey(address);
  }

  reader(indexer: string) {
    return this.#store.reader(indexer);
  }

  transactionStatus(id: Bytes): TransactionStatus | undefined {
    const stored = this.#store.transaction(id);
    // A batch can be read shortly before its cut is the head: until then it is ignored.
    const record = stored !== undefined && stored.height <= this.state.height ? stored : undefined;
    if (record?.outcome === 'executed') {
      const cut = this.#ref(record.height);
      const observed = record.carriedBy === undefined ? {} : { observedBlock: record.carriedBy.blockId };
      return { id, lifecycle: 'finalized', ...observed, registeredCut: cut, finalizedCut: cut, final: true };
    }
    const waiting = this.#waiting.mempool.get(id);
    const isGood = (copy: ReadTransaction) =>
      copy.leafName === waiting?.read.leafName || this.#waiting.isVerified(copy);
    const carrier = this.#waiting.pool.carrier(id, isGood);
    if (carrier !== undefined) {
      const cut = this.#waiting.progress.cutOf(carrier.id);
      const registered = cut === undefined ? undefined : { registeredCut: cut };
      return {
        id,
        lifecycle: cut ? 'registered' : 'receiving',
        observedBlock: carrier.id,
        ...registered,
        final: false,
      };
    }
    if (waiting !== undefined) return { id, lifecycle: 'processing', final: false };
    if (record !== undefined) {
      const cut = this.#ref(record.height);
      const observed =
        record.carriedBy === undefined ? {} : { observedBlock: record.carriedBy.blockId, registeredCut: cut };
      const final = record.outcome === 'conflict' || record.outcome === 'expired';
      const finalized = final ? { finalizedCut: cut } : {};
      return { id, lifecycle: 'failed', failure: record.outcome, ...observed, ...finalized, final };
    }
    const dropped = this.#waiting.dropped(nameOf(id));
    return dropped === undefined ? undefined : { id, lifecycle: 'failed', failure: dropped, final: false };
  }

  /** Statuses are asked for by the thousand, and share a few cuts. */
  #ref(height: number): CutRef {
    let ref = this.#refs.get(height);
    if (ref === undefined) {
      ref = { height, cutId: this.#store.cut(height)?.cutId ?? new Uint8Array(0) };
      this.#refs.set(height, ref);
    }
    return ref;
  }

  supply(): Supply {
    return { ...figuresOf(this.state), height: this.state.height, outputCount: this.state.outputs.count };
  }

  emission(): Emission {
    const { emission, height } = this.state;
    const { intervalCuts } = this.state;
    const subsidy = subsidyOfCut(emission.amount, height % intervalCuts, intervalCuts);
    return { state: emission, subsidy, intervalCuts, nextReductionHeight: (emission.interval + 1) * intervalCuts };
  }

  staking(): Staking {
    const { staking } = this.#store;
    const { stake, intervalCuts } = this.state;
    const reads = staking.reads(this.state);
    return {
      epoch: stake.committee.epoch,
      intervalCuts,
      stake,
      ...reads,
      delegationCount: (validator) => staking.delegationCount(validator),
    };
  }

  validators(page: PositionsPage): Promise<readonly Validator[]> {
    return this.#told(() => this.#store.validators(page));
  }

  async positionsOf(owner: Bytes, page?: PositionsPage): Promise<readonly Position[]> {
    const ids = await this.#told(() => this.#store.ownedPositions(owner, page));
    const { position } = this.#store.staking.reads(this.state);
    return ids.map((id) => position(id)).filter((found) => found !== undefined);
  }

  /**
   * The result of `take`, read from the store as of the head: `take` takes its view before its first await, and a cut
   * that is written but not yet the head is not visible.
   */
  async #told<T>(take: () => Promise<T>): Promise<T> {
    for (;;) {
      const taken = take();
      const isAhead = this.#store.cut(this.state.height + 1) !== undefined;
      const value = await taken;
      if (!isAhead) return value;
    }
  }

  rates(): Rates {
    const { target, height } = this.#head;
    const [first, ...counted] = this.#recent;
    let work = 0n;
    let blocks = 0;
    for (const cut of counted) {
      work += cut.work;
      blocks += cut.blocks;
    }
    const millis = first === undefined ? 0 : this.#head.timestampMillis - first.timestampMillis;
    return {
      height,
      hashesPerSecond: millis > 0 ? (work * 1000n) / BigInt(millis) : 0n,
      cutMillis: counted.length > 0 ? Math.round(millis / counted.length) : 0,
      blocksPerCut: counted.length > 0 ? blocks / counted.length : 0,
      target,
      work: workOfTarget(target),
      cuts: counted.length,
    };
  }

  sync(): Sync {
    const peers = this.#peers?.();
    const synced = !this.#waiting.end.isStopped && (peers?.synced ?? true);
    return { synced, height: this.state.height, ...(peers && { peers }) };
  }

  followPeers(peers: () => PeerSync): void {
    this.#peers = peers;
  }

  #noteRate(record: CutRecord): void {
    this.#recent.push({
      timestampMillis: record.header.timestampMillis,
      work: record.registeredWork,
      blocks: record.blockIds.length,
    });
    if (this.#recent.length > RATE_CUTS + 1) this.#recent.shift();
  }

  view(): LedgerView {
    const store = this.#store;
    const state = this.state;
    return {
      state,
      cutId: this.#head.cutId,
      networkId: this.network.id,
      ...store.sets(state),
      output: (outpoint) => findOutput(store.outputTrie, state.outputs, outpoint),
      spender: (outpoint) => store.spender(outpoint),
      isExecuted: (id) => store.transaction(id)?.outcome === 'executed',
      historyFrom: this.historyFrom(),
      publicKey: (address) => store.publicKey(address),
      isRegistered: (id) => this.isRegistered(id) || this.isBeforeHistory(id),
    };
  }

  isRegistered(id: Bytes): boolean {
    return this.#store.block(id)?.registeredHeight !== undefined;
  }

  isBodyUsed(bodyId: Bytes, by: Bytes): boolean {
    return this.#waiting.pool.isBodyTaken(bodyId, by) || this.isBodyRegistered(bodyId);
  }

  /** The committee that certifies the cut of a height, up to the next one. */
  committeeOf(height: number): Committee | undefined {
    const { stake, intervalCuts } = this.state;
    return height === this.state.height + 1 ? stake.committee : this.#store.committee(epochOf(height, intervalCuts));
  }

  isBodyRegistered(bodyId: Bytes): boolean {
    return this.state.windows.some((window) => window.blocks.some((block) => equalBytes(block.bodyId, bodyId)));
  }

  read(wire: Bytes, leaf: Bytes): ReadTransaction {
    return readTransaction(wire, this.chainId, leaf);
  }

  epoch(anchorHeight: number): number {
    return powEpoch(anchorHeight, this.genesis.powEpochLength);
  }
}

/** The record as of a height: the store may already hold the next cut's version. */
function blockAt(record: BlockRecord, height: number): BlockRecord {
  const { registeredHeight, reward, ...rest } = record;
  if ((registeredHeight ?? 0) > height || (reward.state === 'expired' && record.dueHeight > height))
    return { ...rest, reward: { state: 'waiting' } };
  if (reward.state !== 'paid' || reward.height <= height) return record;
  return { ...record, reward: { state: 'pending', fees: reward.reward.fees } };
}

const headOf = (state: LedgerState, record: CutRecord): Head => ({
  height: state.height,
  cutId: record.cutId,
  stateRoot: record.header.stateRoot,
  validatorSetId: record.header.validatorSetId,
  timestampMillis: state.timestampMillis,
  target: targetOfState(state),
});
