/**
 * The end of a cut's way, made here or elsewhere: one at a time, written to the store, and then true for everybody: the
 * chain, the waiting blocks and transactions, the listeners. A cut that fails here stops the node.
 */
import type { Verifier } from '../../kernels/verifier.ts';
import type { Bytes } from '../../protocol/bytes.ts';
import { type Certificate, signersOf } from '../../protocol/ledger/cut.ts';
import type { Logger } from '../../runtime/log/log.ts';
import type { AppliedCut } from '../ledger/apply-cut.ts';
import type { CutEffects } from '../ledger/effects.ts';
import { nameOf } from '../ledger/registration.ts';
import type { Admission } from '../mempool/admission.ts';
import { operationsToRecheck } from '../mempool/impossible-operations.ts';
import type { Mempool } from '../mempool/mempool.ts';
import type { WorkPool } from '../mining/work-pool.ts';
import type { NodeEnd } from '../node-end.ts';
import type { NodeListeners } from '../node-listeners.ts';
import type { CutIndexer } from '../store/cut-indexer.ts';
import type { LedgerStore } from '../store/ledger-store.ts';
import { stepTimer } from './cut-clock.ts';
import type { CutInProgress } from './cut-in-progress.ts';
import type { CutMaker } from './cut-maker.ts';
import type { FinalizedChain } from './finalized-chain.ts';

export type FinalCutsParts = {
  readonly store: LedgerStore;
  readonly chain: FinalizedChain;
  readonly cuts: CutMaker;
  readonly pool: WorkPool;
  readonly mempool: Mempool;
  readonly admission: Admission;
  readonly progress: CutInProgress;
  readonly end: NodeEnd;
  readonly listeners: NodeListeners;
  readonly indexers: readonly CutIndexer[];
  readonly verifier: Pick<Verifier, 'prepare'>;
  readonly log: Logger;
};

export class FinalCuts {
  readonly #with: FinalCutsParts;
  #signers: bigint;

  constructor(parts: FinalCutsParts, certificate: Certificate) {
    this.#with = parts;
    this.#signers = signersOf(certificate);
  }

  /** Who signed the last cut. */
  get signers(): bigint {
    return this.#signers;
  }

  /** Not while a cut is written. */
  async between<T>(run: () => Promise<T>): Promise<T> {
    const { progress } = this.#with;
    while (progress.sealing !== undefined) await progress.sealing.catch(() => undefined);
    return await run();
  }

  /** One cut at a time, from making to its end. */
  async oneCut(make: () => Promise<CutEffects>): Promise<CutEffects> {
    return await this.between(() => this.#seal(make));
  }

  async #seal(make: () => Promise<CutEffects>): Promise<CutEffects> {
    const { progress, end, chain } = this.#with;
    if (end.isStopped) throw end.reason;
    const sealing = make();
    progress.begin(sealing);
    try {
      return await sealing;
    } catch (error) {
      end.fail(error as Error, chain.state.height);
      throw error;
    } finally {
      progress.end();
    }
  }

  /** Writes the cut: when this resolves, it is final. */
  async finish(executed: AppliedCut, certificate: Certificate, step = stepTimer(undefined)): Promise<CutEffects> {
    const { cuts, progress, store, indexers } = this.#with;
    const cut = cuts.upToDate(executed);
    progress.executed(cut);
    progress.certified(cut);
    await store.commit(cut, certificate, indexers);
    step('commit');
    this.#signers = signersOf(certificate);
    this.#settle(cut);
    step('settle');
    return cut.effects;
  }

  #settle({ state, effects }: AppliedCut): void {
    const { chain, cuts, mempool, verifier, log, listeners } = this.#with;
    chain.advance(state);
    for (const { id } of [...effects.registered, ...effects.expired]) this.#release(id);
    cuts.leaveOutDead();
    mempool.settle(effects);
    this.#dropImpossible(effects);
    const epoch = chain.epoch(state.height);
    if (chain.epoch(state.height - 1) !== epoch)
      void verifier
        .prepare(epoch)
        .catch((error) => log.error('the next epoch could not be prepared', { epoch, error }));
    listeners.emit('cut', effects);
  }

  #release(id: Bytes): void {
    const block = this.#with.pool.forget(id);
    if (block !== undefined) this.#with.mempool.released(nameOf(id), block.transactions);
  }

  /** Operations that the cut made impossible leave the mempool. */
  #dropImpossible(effects: CutEffects): void {
    const { mempool, admission, store, chain } = this.#with;
    const validator = (id: Bytes) => store.staking.validator(id);
    for (const entry of operationsToRecheck(effects, mempool, validator, chain.state.intervalCuts)) {
      const refusal = admission.operationRefusal(entry.read, entry.spends);
      if (refusal !== undefined) mempool.drop(entry, refusal.reason === 'invalid' ? 'rejected' : 'evicted');
    }
  }
}
