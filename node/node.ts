/**
 * The embedded full node: createNode opens or starts a chain and gives back a FullNode (full-node.ts). This file only puts the parts together: the
 * doors (mempool/admission.ts, mining/candidate.ts), the ledger (ledger/apply-cut.ts), the store, and the order in which a cut becomes
 * final: apply, certify, write, then tell.
 */
import type { Verifier } from '../kernels/verifier.ts';
import type { Bytes } from '../protocol/bytes.ts';
import { type Certificate, signersOf } from '../protocol/cut.ts';
import type { Logger } from '../runtime/log.ts';
import { useNativeSha384 } from '../runtime/native-sha384.ts';
import type { Certify } from './certificate.ts';
import { ChainReads } from './chain-reads.ts';
import { CutClock } from './cut-clock.ts';
import type { BlockRecord, FullNode, NodeEvents, Origin, Submission, Template, TemplateRequest } from './full-node.ts';
import { type AppliedCut, applyCut } from './ledger/apply-cut.ts';
import type { CutEffects } from './ledger/effects.ts';
import { chooseBlocks, nameOf } from './ledger/registration.ts';
import { readWorkBlock } from './ledger/work-block.ts';
import { Admission } from './mempool/admission.ts';
import { Mempool } from './mempool/mempool.ts';
import { SignatureWorkers } from './mempool/signature-workers.ts';
import { VerifiedTransactions } from './mempool/witness-check.ts';
import { type CandidateContext, checkCandidate, meetsBlockTarget, recheckCandidate } from './mining/candidate.ts';
import { TemplateMaker } from './mining/template.ts';
import { type WaitingBlock, WorkPool } from './mining/work-pool.ts';
import { nodeError } from './node-error.ts';
import { type OpenedChain, type OpenOptions, openChain } from './open-chain.ts';
import type { CutIndexer } from './store/cut-indexer.ts';
import { LedgerStore } from './store/ledger-store.ts';

useNativeSha384();

const MEBIBYTE = 1024 * 1024;

export const NODE_DEFAULTS = {
  cutMillis: 2_500,
  mempoolBytes: 256 * MEBIBYTE,
  workPoolBlocks: 4_096,
  workPoolBytes: 256 * MEBIBYTE,
  signatureThreads: 2,
  maxPendingTransactions: 4_096,
} as const;

export type NodeOptions = OpenOptions & {
  /** Directory of the store; made when missing. */
  readonly storeDirectory: string;
  /** Pace of the embedded cut maker; 0 makes cuts only by seal(). */
  readonly cutMillis?: number;
  readonly mempoolBytes?: number;
  readonly workPoolBlocks?: number;
  readonly workPoolBytes?: number;
  readonly signatureThreads?: number;
};

export type NodeDependencies = {
  readonly verifier: Pick<Verifier, 'hash' | 'prepare'>;
  readonly certify: Certify;
  readonly now: () => number;
  /** An integer from 0 to below `limit`. */
  readonly random: (limit: number) => number;
  readonly log: Logger;
  readonly indexers?: readonly CutIndexer[];
  /** How long the steps of a cut took, for metrics. */
  readonly onCutStep?: (step: CutStep, seconds: number) => void;
  /** What became of everything that came to the doors: a status or the code of a refusal. */
  readonly onSubmission?: (kind: 'block' | 'transaction', result: string) => void;
};

export const CUT_STEPS = ['choose', 'apply', 'certify', 'commit', 'settle'] as const;
export type CutStep = (typeof CUT_STEPS)[number];

export async function createNode(options: NodeOptions, dependencies: NodeDependencies): Promise<FullNode> {
  const store = await LedgerStore.open(options.storeDirectory);
  try {
    const chain = await openChain(store, options, dependencies);
    const node = new EmbeddedNode(store, chain, options, dependencies);
    await node.start();
    return node;
  } catch (error) {
    await store.close();
    throw error;
  }
}

class EmbeddedNode extends ChainReads implements FullNode {
  readonly mempool: Mempool;
  readonly #dependencies: NodeDependencies;
  protected readonly pool: WorkPool;
  readonly #workers: SignatureWorkers;
  readonly #verified = new VerifiedTransactions();
  readonly #admission: Admission;
  readonly #templates: TemplateMaker;
  readonly #clock: CutClock | undefined;
  readonly #listeners: { [E in keyof NodeEvents]: Set<NodeEvents[E]> } = {
    cut: new Set(),
    block: new Set(),
    mempoolAdded: new Set(),
    mempoolRemoved: new Set(),
    fault: new Set(),
  };
  /** Blocks on their way through the door, so that the same one is not hashed twice. */
  readonly #arriving = new Map<string, Promise<Submission>>();
  #signers: bigint;
  #sealing: Promise<CutEffects> | undefined;
  #fault: Error | undefined;
  #closed = false;

  constructor(store: LedgerStore, chain: OpenedChain, options: NodeOptions, dependencies: NodeDependencies) {
    super(store, chain);
    const settings = { ...NODE_DEFAULTS, ...options };
    const { certificate, genesis } = chain;
    this.#dependencies = dependencies;
    this.#signers = signersOf(certificate);
    this.pool = new WorkPool({ maxBlocks: settings.workPoolBlocks, maxBytes: settings.workPoolBytes });
    this.mempool = new Mempool(
      {
        maxBytes: settings.mempoolBytes,
        cutMillis: settings.cutMillis === 0 ? NODE_DEFAULTS.cutMillis : settings.cutMillis,
      },
      {
        now: dependencies.now,
        onAdded: (entry) => {
          this.dropped.delete(entry.name);
          this.#emit('mempoolAdded', entry);
        },
        onRemoved: (entry, reason) => {
          if (reason === 'evicted') this.#remember(entry.name, 'dropped');
          if (reason === 'rejected') this.#remember(entry.name, 'invalid');
          this.#emit('mempoolRemoved', entry, reason);
        },
      },
    );
    this.#workers = new SignatureWorkers(settings.signatureThreads);
    this.#admission = new Admission(
      { chainId: this.chainId, maxPending: settings.maxPendingTransactions },
      {
        mempool: this.mempool,
        workers: this.#workers,
        verified: this.#verified,
        ledger: () => this.view(),
        sealing: () => this.#sealing,
      },
    );
    this.#templates = new TemplateMaker({
      network: this.network,
      powEpochLength: genesis.powEpochLength,
      mempool: this.mempool,
      pool: this.pool,
      now: dependencies.now,
      random: dependencies.random,
    });
    this.#clock =
      settings.cutMillis === 0 ? undefined : new CutClock(settings.cutMillis, async () => void (await this.seal()));
  }

  async start(): Promise<void> {
    let waiting = 0;
    for (const { hash, record, body } of await this.store.waitingBlocks()) {
      const block = readWorkBlock(record.header, body, (wire) => this.read(wire));
      this.pool.add({ ...block, hash, record });
      waiting++;
    }
    await this.#dependencies.verifier.prepare(this.epoch(this.state.height));
    this.#dependencies.log.info('chain open', { height: this.state.height, cut: this.headNow.cutId, waiting });
    this.#clock?.start();
  }

  async submitTransaction(wire: Bytes, origin: Origin = 'own'): Promise<Submission> {
    if (this.stopped) return STOPPED;
    try {
      return this.#noted('transaction', await this.#admission.submit(wire, origin));
    } catch (error) {
      if (this.stopped) return STOPPED;
      throw error;
    }
  }

  async submitBlock(header: Bytes, body: Bytes, origin: Origin = 'own'): Promise<Submission> {
    if (this.stopped) return STOPPED;
    const name = nameOf(header);
    const arriving = this.#arriving.get(name);
    if (arriving !== undefined) {
      const outcome = await arriving;
      return this.#noted('block', outcome.status === 'accepted' ? { ...outcome, status: 'known' } : outcome);
    }
    const arrival = this.#accept(new Uint8Array(header), body, origin);
    this.#arriving.set(name, arrival);
    try {
      return this.#noted('block', await arrival);
    } finally {
      this.#arriving.delete(name);
    }
  }

  #noted(kind: 'block' | 'transaction', outcome: Submission): Submission {
    this.#dependencies.onSubmission?.(kind, outcome.status === 'refused' ? outcome.error.code : outcome.status);
    return outcome;
  }

  #candidateContext(): CandidateContext {
    return {
      network: this.network,
      headHeight: this.state.height,
      nowMillis: this.#dependencies.now(),
      cut: (height) => (height === this.state.height ? this.record : this.store.cut(height)),
      isKnownBlock: (id) => this.pool.get(id) !== undefined || this.isRegistered(id),
      isBodyUsed: (bodyId) => this.isBodyUsed(bodyId),
      templateTransactions: (root) => this.#templates.transactionsOf(root),
      read: (wire) => this.read(wire),
    };
  }

  async #accept(header: Bytes, body: Bytes, origin: Origin): Promise<Submission> {
    const checked = checkCandidate(header, body, this.#candidateContext());
    if ('known' in checked) return { status: 'known', id: checked.known };
    if ('error' in checked) return { status: 'refused', error: checked.error };
    const { block } = checked;
    let hash: Bytes;
    try {
      hash = await this.#hash(this.epoch(block.header.anchorHeight), header);
    } catch (error) {
      this.#dependencies.log.error('a block could not be hashed', { block: block.id, error });
      return {
        status: 'refused',
        error: nodeError('verifier_unavailable', 'the hash could not be computed: try again'),
      };
    }
    if (!meetsBlockTarget(hash, block.header))
      return { status: 'refused', error: nodeError('pow_above_target', 'the hash is above the target') };
    // A cut may have come while the hash was computed.
    const again = recheckCandidate(block, this.#candidateContext());
    if ('known' in again) return { status: 'known', id: again.known };
    if ('error' in again) return { status: 'refused', error: again.error };
    return await this.#takeIn(block, hash, origin);
  }

  /** An epoch that begins just now may not be prepared yet. */
  async #hash(epoch: number, header: Bytes): Promise<Bytes> {
    await this.#dependencies.verifier.prepare(epoch);
    return await this.#dependencies.verifier.hash(epoch, header);
  }

  async #takeIn(block: Omit<WaitingBlock, 'hash' | 'record'>, hash: Bytes, origin: Origin): Promise<Submission> {
    const leaving = this.pool.roomFor(hash, block.bodyBytes.length);
    if (leaving === undefined)
      return { status: 'refused', error: nodeError('block_queue_full', 'too many blocks with lower hashes wait') };
    for (const { id } of leaving) this.#release(id);
    const record: BlockRecord = {
      id: block.id,
      header: block.headerBytes,
      anchorHeight: block.header.anchorHeight,
      dueHeight: block.header.anchorHeight + 96,
      acceptedMillis: this.#dependencies.now(),
      origin,
      payout: block.body.payout,
      extranonce: block.body.extranonce,
      parents: block.body.parents,
      transactionCount: block.transactions.length,
      reward: { state: 'waiting' },
    };
    const waiting = { ...block, hash, record };
    // In the pool only once it is in the store: a cut must find the record of every block it registers.
    try {
      await this.store.addWaiting(record, block.bodyBytes, hash);
    } catch (error) {
      this.#stop(error as Error);
      return STOPPED;
    }
    const final = recheckCandidate(block, this.#candidateContext());
    if ('known' in final) return { status: 'known', id: final.known };
    if ('error' in final) return { status: 'refused', error: final.error };
    this.pool.add(waiting);
    this.mempool.carried(nameOf(block.id), block.transactions);
    this.#verifyAhead(waiting);
    this.#dependencies.log.debug('block accepted', { block: block.id, anchor: record.anchorHeight, origin });
    this.#emit('block', record);
    return { status: 'accepted', id: block.id };
  }

  /** Signatures that this node has not seen are checked in the workers now, so that the cut need not wait for them. */
  #verifyAhead({ transactions }: WaitingBlock): void {
    for (const transaction of transactions) {
      if (this.#verified.has(transaction)) continue;
      const spends = transaction.body.inputs.map((outpoint) => this.output(outpoint));
      if (spends.some((output) => output === undefined)) continue;
      void this.#admission.verifyAhead(transaction, spends as NonNullable<(typeof spends)[number]>[]);
    }
  }

  #release(id: Bytes): void {
    const block = this.pool.remove(id);
    if (block !== undefined) this.mempool.released(nameOf(id), block.transactions);
  }

  template(request: TemplateRequest): Template {
    return this.#templates.make(this.headNow, request);
  }

  async seal(): Promise<CutEffects> {
    while (this.#sealing !== undefined) await this.#sealing.catch(() => undefined);
    if (this.stopped) throw this.#fault ?? new Error('the node is closed');
    this.#sealing = this.#makeCut();
    try {
      return await this.#sealing;
    } catch (error) {
      this.#stop(error as Error);
      throw error;
    } finally {
      this.#sealing = undefined;
    }
  }

  async #makeCut(): Promise<CutEffects> {
    const { certify, now, indexers, onCutStep } = this.#dependencies;
    let began = performance.now();
    const step = (name: CutStep) => {
      const ended = performance.now();
      onCutStep?.(name, (ended - began) / 1000);
      began = ended;
    };
    const height = this.state.height + 1;
    const blocks = chooseBlocks(this.pool.list(), height, (id) => this.isRegistered(id));
    const chosen = new Set(blocks.map((block) => block.id));
    const closed = this.pool.closedAt(height).filter((block) => !chosen.has(block.id));
    step('choose');
    const cut = applyCut(
      this.view(),
      {
        // A clock that is set back does not stop the chain.
        timestampMillis: Math.max(now(), this.state.timestampMillis + 1),
        signers: this.#signers,
        blocks,
        expired: closed.map(({ id, header }) => ({ id, anchorHeight: header.anchorHeight })),
        lost: (spent, at) => this.mempool.lost(spent, at),
      },
      this.#verified.check,
    );
    step('apply');
    const certificate = await certify(this.chainId, cut.effects.cutId);
    step('certify');
    await this.store.commit(cut, certificate, indexers ?? []);
    step('commit');
    this.#settle(cut, certificate);
    step('settle');
    return cut.effects;
  }

  #settle(cut: AppliedCut, certificate: Certificate): void {
    const { effects } = cut;
    this.advance(cut.state);
    this.#signers = signersOf(certificate);
    for (const { id } of effects.registered) this.#release(id);
    for (const { id } of effects.expired) this.#release(id);
    this.mempool.settle(effects);
    const epoch = this.epoch(this.state.height);
    if (this.epoch(this.state.height - 1) !== epoch)
      void this.#dependencies.verifier
        .prepare(epoch)
        .catch((error) => this.#dependencies.log.error('the next epoch could not be prepared', { epoch, error }));
    this.#emit('cut', effects);
  }

  protected get stopped(): boolean {
    return this.#closed || this.#fault !== undefined;
  }

  on<E extends keyof NodeEvents>(event: E, listener: NodeEvents[E]): () => void {
    this.#listeners[event].add(listener);
    return () => void this.#listeners[event].delete(listener);
  }

  /** A listener's fault is its own: the chain goes on. */
  #emit<E extends keyof NodeEvents>(event: E, ...values: Parameters<NodeEvents[E]>): void {
    for (const listener of this.#listeners[event])
      try {
        (listener as (...values: Parameters<NodeEvents[E]>) => void)(...values);
      } catch (error) {
        this.#dependencies.log.error('a listener failed', { event, error });
      }
  }

  #remember(name: string, reason: 'dropped' | 'invalid'): void {
    if (this.dropped.size >= 16_384) this.dropped.delete(this.dropped.keys().next().value as string);
    this.dropped.set(name, reason);
  }

  /** A store that cannot write or a ledger that does not add up: nothing more is accepted, what is written stays. */
  #stop(error: Error): void {
    if (this.stopped) return;
    this.#fault = error;
    this.#clock?.stop();
    this.#dependencies.log.error('the node stopped', { height: this.state.height, error });
    this.#emit('fault', error);
  }

  async pruneBodies(height: number): Promise<number> {
    return await this.store.pruneBodies(Math.min(height, this.state.height - 96));
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    this.#clock?.stop();
    await this.#sealing?.catch(() => undefined);
    await this.#workers.close();
    await this.store.close();
  }
}

const STOPPED: Submission = { status: 'refused', error: nodeError('node_stopped', 'the node is stopping') };
