/**
 * The embedded full node: createNode opens or starts a chain and returns a FullNode (full-node.ts). This file only
 * connects the parts: admission (mempool/admission.ts, mining/candidate.ts), the ledger (ledger/apply-cut.ts), the
 * store, and the end of a cut's way (chain/final-cuts.ts).
 */
import { dirname } from 'node:path';
import type { Verifier } from '../kernels/verifier.ts';
import type { Bytes } from '../protocol/bytes.ts';
import { BoundedMap } from '../runtime/bounded-map.ts';
import type { LedgerClock, SteadyClock } from '../runtime/clock/clock.ts';
import type { Logger } from '../runtime/log/log.ts';
import { useNativeSha384 } from '../runtime/native/native-sha384.ts';
import { type Certify, holdsQuorum, isQuorum } from './chain/certificate.ts';
import { CutClock, type CutStep, nextCutMillis, stepTimer } from './chain/cut-clock.ts';
import { CutInProgress } from './chain/cut-in-progress.ts';
import { type CutLedger, cutLedgerOf } from './chain/cut-ledger.ts';
import { CutMaker } from './chain/cut-maker.ts';
import { FinalCuts } from './chain/final-cuts.ts';
import { FinalizedChain } from './chain/finalized-chain.ts';
import { certifiable, type OpenedChain, type OpenOptions, openChain } from './chain/open-chain.ts';
import type { FullNode, NodeEvents, Origin, Submission, Template, TemplateRequest } from './full-node.ts';
import type { CutEffects } from './ledger/effects.ts';
import { nameOf } from './ledger/registration.ts';
import type { ReadTransaction } from './ledger/work-block.ts';
import { Admission } from './mempool/admission.ts';
import { ChecksAhead } from './mempool/checks-ahead.ts';
import { Mempool } from './mempool/mempool.ts';
import { SignatureWorkers } from './mempool/signature-workers.ts';
import { VerifiedTransactions } from './mempool/witness-check.ts';
import { BlockDoor } from './mining/block-door.ts';
import type { CandidateContext } from './mining/candidate.ts';
import { TemplateMaker } from './mining/template.ts';
import { type WaitingBlock, WorkPool } from './mining/work-pool.ts';
import { NODE_DEFAULTS } from './node-defaults.ts';
import { NodeEnd } from './node-end.ts';
import { nodeError } from './node-error.ts';
import { NodeListeners } from './node-listeners.ts';
import type { CutIndexer } from './store/cut-indexer.ts';
import type { FrozenStore } from './store/database.ts';
import { LedgerStore, type StoreOptions } from './store/ledger-store.ts';

useNativeSha384();

const KEPT_DROPPED = 16_384;
/** A block that is dated further ahead than a cut lasts has to wait for it: clocks differ by less. */
const CARRIES_AHEAD_MILLIS = NODE_DEFAULTS.cutMillis;

export type NodeOptions = OpenOptions & {
  /** Directory of the store; made when missing. Beside it a cut is written that the node stops over. */
  readonly storeDirectory: string;
  readonly storage?: StoreOptions['mode'];
  /** Pace of the embedded cut maker; 0 makes cuts only by seal(). */
  readonly cutMillis?: number;
  readonly mempoolBytes?: number;
  readonly workPoolBlocks?: number;
  readonly workPoolBytes?: number;
  readonly signatureThreads?: number;
  /** False where consensus makes the cuts, with keys that may be elsewhere. */
  readonly makesCuts?: boolean;
};

export type NodeDependencies = {
  readonly verifier: Pick<Verifier, 'hash' | 'prepare'>;
  readonly certify: Certify;
  /** Whether the key of a member is here. A node that holds too few makes no cuts; without this it holds all. */
  readonly isSigner?: (publicKey: Bytes) => boolean;
  /** Milliseconds since 1970: the time of cuts, templates and blocks. */
  readonly now: LedgerClock;
  /** The same by a monotonic clock, for durations: how long a draw is kept, what waits longest. Default `now`. */
  readonly steady?: SteadyClock;
  /** An integer from 0 to below `limit`. */
  readonly random: (limit: number) => number;
  readonly log: Logger;
  readonly indexers?: readonly CutIndexer[];
  /** How long the steps of a cut took, for metrics. */
  readonly onCutStep?: (step: CutStep, seconds: number) => void;
  /** The result of every submission: a status or the code of a refusal. */
  readonly onSubmission?: (kind: 'block' | 'transaction', result: string) => void;
};

/** A node whose cuts can be made by consensus. `warmUp`: peers may send transactions soon, so the threads that check them are started. */
export type ConsensusNode = FullNode & { readonly ledger: CutLedger; frozen(): FrozenStore; warmUp(): void };

export async function createNode(options: NodeOptions, dependencies: NodeDependencies): Promise<ConsensusNode> {
  const store = await LedgerStore.open(options.storeDirectory, { mode: options.storage ?? 'full' });
  try {
    const chain = await openChain(store, options, dependencies);
    const node = new EmbeddedNode(store, chain, options, dependencies);
    await node.start(options.makesCuts ?? true);
    return node;
  } catch (error) {
    await store.close();
    throw error;
  }
}

class EmbeddedNode implements ConsensusNode {
  makesCuts = false;
  readonly warmUp = (): void => this.#workers.warm();
  readonly chain: FinalizedChain;
  readonly mempool: Mempool;
  /** For consensus, which makes cuts in the place of the clock. */
  readonly ledger: CutLedger;
  readonly #dependencies: NodeDependencies;
  readonly #store: LedgerStore;
  readonly #pool: WorkPool;
  readonly #workers: SignatureWorkers;
  readonly #verified = new VerifiedTransactions();
  readonly #admission: Admission;
  readonly #ahead: ChecksAhead;
  readonly #templates: TemplateMaker;
  readonly #clock: CutClock | undefined;
  readonly #cutMillis: number;
  readonly #listeners: NodeListeners;
  readonly #door: BlockDoor;
  readonly #cuts: CutMaker;
  /** Why transactions left the mempool without a cut; the oldest entries are dropped. */
  readonly #dropped = new BoundedMap<string, 'dropped' | 'invalid'>(KEPT_DROPPED);
  readonly #progress = new CutInProgress();
  readonly #end: NodeEnd;
  readonly #final: FinalCuts;

  constructor(store: LedgerStore, chain: OpenedChain, options: NodeOptions, dependencies: NodeDependencies) {
    this.#store = store;
    const settings = { ...NODE_DEFAULTS, ...options };
    const { certificate, genesis } = chain;
    this.#dependencies = dependencies;
    this.#listeners = new NodeListeners(dependencies.log);
    this.#end = new NodeEnd(dependencies.log, this.#listeners);
    this.#cutMillis = settings.cutMillis;
    const steady = dependencies.steady ?? ((): number => dependencies.now());
    this.#pool = new WorkPool({ maxBlocks: settings.workPoolBlocks, maxBytes: settings.workPoolBytes });
    this.mempool = new Mempool(
      {
        maxBytes: settings.mempoolBytes,
        cutMillis: settings.cutMillis === 0 ? NODE_DEFAULTS.cutMillis : settings.cutMillis,
      },
      {
        now: steady,
        onAdded: (entry) => {
          this.#dropped.delete(entry.name);
          for (const block of this.#pool.carriers(entry.read)) this.#carry(block, [entry.read]);
          this.#listeners.emit('mempoolAdded', entry);
        },
        onRemoved: (entry, reason) => {
          if (reason === 'evicted') this.#dropped.set(entry.name, 'dropped');
          if (reason === 'rejected') this.#dropped.set(entry.name, 'invalid');
          this.#listeners.emit('mempoolRemoved', entry, reason);
        },
      },
    );
    this.chain = new FinalizedChain(store, chain, {
      mempool: this.mempool,
      pool: this.#pool,
      isVerified: (transaction) => this.#verified.has(transaction),
      dropped: (name) => this.#dropped.get(name),
      progress: this.#progress,
      end: this.#end,
    });
    this.#workers = new SignatureWorkers(settings.signatureThreads);
    this.#admission = new Admission(
      { chainId: this.chain.chainId, maxPending: settings.maxPendingTransactions },
      {
        mempool: this.mempool,
        workers: this.#workers,
        verified: this.#verified,
        ledger: () => this.chain.view(),
        progress: this.#progress,
      },
    );
    this.#ahead = new ChecksAhead({
      isVerified: (transaction) => this.#verified.has(transaction),
      output: (outpoint) => this.chain.output(outpoint) ?? this.#pool.output(outpoint),
      verify: (transaction, spends) => this.#admission.verifyAhead(transaction, spends),
      read: (made) => store.readAhead(this.chain.view().state, made),
      log: dependencies.log,
    });
    this.#templates = new TemplateMaker({
      network: this.chain.network,
      powEpochLength: genesis.powEpochLength,
      mempool: this.mempool,
      pool: this.#pool,
      isRegistered: (id) => this.chain.view().isRegistered(id),
      openAnchors: () => this.chain.openAnchors(),
      now: dependencies.now,
      steady,
      random: dependencies.random,
    });
    this.#door = new BlockDoor({
      store,
      pool: this.#pool,
      verifier: dependencies.verifier,
      log: dependencies.log,
      now: dependencies.now,
      epoch: (anchorHeight) => this.chain.epoch(anchorHeight),
      context: () => this.#candidateContext(),
      isBeforeHistory: (id) => this.chain.isBeforeHistory(id),
      onAccepted: (block) => this.#onAccepted(block),
      onLeft: ({ id, transactions }) => this.mempool.released(nameOf(id), transactions),
      onFault: (error) => this.#end.fail(error, this.chain.state.height),
    });
    this.#cuts = new CutMaker({
      pool: this.#pool,
      mempool: this.mempool,
      check: this.#verified.check,
      view: () => this.chain.view(),
      cut: (height) => this.chain.cut(height),
      log: dependencies.log,
      onLeftOut: () => dependencies.onSubmission?.('block', 'left_out'),
    });
    this.#final = new FinalCuts(
      {
        store,
        chain: this.chain,
        cuts: this.#cuts,
        pool: this.#pool,
        mempool: this.mempool,
        admission: this.#admission,
        progress: this.#progress,
        end: this.#end,
        listeners: this.#listeners,
        indexers: dependencies.indexers ?? [],
        verifier: dependencies.verifier,
        log: dependencies.log,
      },
      certificate,
    );
    this.ledger = cutLedgerOf({
      store,
      chain: this.chain,
      cuts: this.#cuts,
      pool: this.#pool,
      door: this.#door,
      ahead: this.#ahead,
      final: this.#final,
      end: this.#end,
      log: dependencies.log,
      checkpoints: options.checkpoints ?? [],
      directory: dirname(options.storeDirectory),
    });
    this.#clock =
      settings.cutMillis === 0 ? undefined : new CutClock(settings.cutMillis, async () => void (await this.seal()));
  }

  async start(makesCuts: boolean): Promise<void> {
    const found = await this.#door.reload();
    await this.#dependencies.verifier.prepare(this.chain.epoch(this.chain.state.height));
    this.#dependencies.log.info('chain open', {
      height: this.chain.state.height,
      cut: this.chain.head().cutId,
      ...found,
    });
    // A node that began with a snapshot accepts more parents as registered than the rules allow: so it only follows.
    if (!makesCuts || this.chain.historyFrom() > 0) return;
    this.makesCuts = holdsQuorum(this.chain.state.stake.committee.members, this.#dependencies.isSigner);
    if (this.makesCuts) this.#clock?.start();
    else this.#dependencies.log.warn('no cuts are made: the keys of the committee are elsewhere');
  }

  submitTransaction(wire: Bytes, origin: Origin = 'own'): Promise<Submission> {
    return this.#submit('transaction', () => this.#admission.submit(wire, origin));
  }

  submitBlock(header: Bytes, body: Bytes, origin: Origin = 'own'): Promise<Submission> {
    return this.#submit('block', () => this.#door.submit(header, body, origin));
  }

  async #submit(kind: 'block' | 'transaction', submit: () => Promise<Submission>): Promise<Submission> {
    if (this.#end.isStopped) return STOPPED;
    try {
      const outcome = await submit();
      this.#dependencies.onSubmission?.(kind, outcome.status === 'refused' ? outcome.error.code : outcome.status);
      return outcome;
    } catch (error) {
      if (this.#end.isStopped) return STOPPED;
      throw error;
    }
  }

  #candidateContext(): CandidateContext {
    return {
      network: this.chain.network,
      headHeight: this.chain.state.height,
      nowMillis: this.#dependencies.now(),
      anchor: (height) => this.chain.anchor(height),
      isKnownBlock: (id) =>
        this.#pool.get(id) !== undefined || this.#progress.isRegistering(id) || this.chain.isRegistered(id),
      isBodyUsed: (bodyId, by) => this.chain.isBodyUsed(bodyId, by),
      isBodyRegistered: (bodyId) => this.chain.isBodyRegistered(bodyId),
      templateTransactions: (root) => this.#templates.transactionsOf(root),
      read: (wire, leaf) => this.chain.read(wire, leaf),
    };
  }

  /** A block that no cut takes yet must not hold payments back. */
  #carry({ id, header }: WaitingBlock, copies: readonly ReadTransaction[]): void {
    if (header.timestampMillis <= this.#dependencies.now() + CARRIES_AHEAD_MILLIS)
      this.mempool.carried(nameOf(id), copies);
  }

  #onAccepted(block: WaitingBlock): void {
    const { record } = block;
    this.#carry(block, block.transactions);
    this.#ahead.begin(block);
    const { anchorHeight: anchor, origin } = record;
    this.#dependencies.log.debug('block accepted', { block: block.id, anchor, origin });
    this.#listeners.emit('block', record);
  }

  template(request: TemplateRequest): Template {
    return this.#templates.make(this.chain.head(), request);
  }

  seal(): Promise<CutEffects> {
    return this.#final.oneCut(() => this.#makeCut());
  }

  async #makeCut(): Promise<CutEffects> {
    const { certify, now, onCutStep } = this.#dependencies;
    const step = stepTimer(onCutStep);
    const height = this.chain.state.height + 1;
    const chosen = this.#cuts.choose();
    step('choose');
    const timestampMillis = nextCutMillis(now(), this.chain.state.timestampMillis, this.#cutMillis);
    const cut = this.#cuts.make(chosen, { timestampMillis, signers: this.#final.signers });
    this.#progress.executed(cut);
    step('apply');
    const certificate = await certify(certifiable(cut.state, this.chain.state.stake.committee, cut.effects.cutId));
    if (!isQuorum(certificate, this.chain.state.stake.committee.members))
      throw new Error(`cut ${height} is signed by too little of the stake: the keys of the committee are elsewhere`);
    step('certify');
    return await this.#final.finish(cut, certificate, step);
  }

  on<E extends keyof NodeEvents>(event: E, listener: NodeEvents[E]): () => void {
    return this.#listeners.on(event, listener);
  }

  /** Inside a listener of `cut` it shows the head. */
  frozen(): FrozenStore {
    return this.#store.frozen();
  }

  async pruneBodies(height: number): Promise<number> {
    return await this.chain.pruneBodies(height);
  }

  async close(): Promise<void> {
    if (!this.#end.close()) return;
    this.#clock?.stop();
    await this.#progress.sealing?.catch(() => undefined);
    await this.#door.idle();
    await this.#workers.close();
    await this.#store.close();
  }
}

const STOPPED: Submission = { status: 'refused', error: nodeError('node_stopped', 'the node is stopping') };
