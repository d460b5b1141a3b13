/**
 * Cuts before they are final: made from waiting blocks, or executed as proposed. Nothing is written here; an executed
 * cut becomes final by a certificate (final-cuts.ts).
 */
import type { Bytes } from '../../protocol/bytes.ts';
import { timestampFault } from '../../protocol/ledger/timestamp.ts';
import { REGISTRATION_WINDOW } from '../../protocol/network.ts';
import { BoundedMap } from '../../runtime/bounded-map.ts';
import type { Logger } from '../../runtime/log/log.ts';
import type { CutRecord } from '../full-node.ts';
import { type AppliedCut, applyCut, type LedgerView } from '../ledger/apply-cut.ts';
import type { CutEffects } from '../ledger/effects.ts';
import type { CheckWitnesses } from '../ledger/execution.ts';
import { chooseBlocks, nameOf } from '../ledger/registration.ts';
import { applySound } from '../ledger/sound-blocks.ts';
import type { Mempool } from '../mempool/mempool.ts';
import type { WaitingBlock, WorkPool } from '../mining/work-pool.ts';

export type CutMakerDependencies = {
  readonly pool: WorkPool;
  readonly mempool: Mempool;
  readonly check: CheckWitnesses;
  view(): LedgerView;
  cut(height: number): CutRecord | undefined;
  readonly log: Logger;
  readonly onLeftOut: () => void;
};

/** The inputs of a cut besides the previous ledger. */
export type CutParts = { readonly timestampMillis: number; readonly signers: bigint };

/** Those of the blocks in open windows. */
const usedBodies = ({ windows }: LedgerView['state']): ReadonlySet<string> =>
  new Set(windows.flatMap(({ blocks }) => blocks.map(({ bodyId }) => nameOf(bodyId))));

export class CutMaker {
  readonly #with: CutMakerDependencies;
  /** Times of final cuts. */
  readonly #millis = new BoundedMap<number, number>(2 * REGISTRATION_WINDOW);

  constructor(dependencies: CutMakerDependencies) {
    this.#with = dependencies;
  }

  /**
   * The waiting blocks that the next cut takes. `dated`: only those that a cut of this time may name (consensus rule
   * 7).
   */
  choose(dated?: number): WaitingBlock[] {
    const { pool, view } = this.#with;
    const { state, isRegistered } = view();
    const waiting = dated === undefined ? pool.list() : [...pool.list()].filter((block) => this.isDated(block, dated));
    return chooseBlocks(waiting, state.height + 1, isRegistered, usedBodies(state));
  }

  /** Blocks that no cut can take hold neither room nor transactions. */
  leaveOutDead(): void {
    const { pool, view, mempool } = this.#with;
    const { state, isRegistered } = view();
    for (const { id, transactions } of pool.leaveOutDead(isRegistered, usedBodies(state)))
      mempool.released(nameOf(id), transactions);
  }

  /** A block that cannot be executed is left out. */
  make(chosen: readonly WaitingBlock[], parts: CutParts): AppliedCut {
    const { result, broken } = applySound(chosen, (blocks) => this.execute(blocks, parts));
    for (const { block, error } of broken) this.#leaveOut(block, error);
    return result;
  }

  /** Throws when the blocks cannot be those of the next cut. */
  execute(blocks: readonly WaitingBlock[], parts: CutParts): AppliedCut {
    const { mempool, view, check } = this.#with;
    const ledger = view();
    const input = {
      ...parts,
      blocks,
      expired: this.#expired(blocks, ledger.state.height + 1),
      lost: (spent: CutEffects['spent'], at: number) => mempool.lost(spent, at),
    };
    return applyCut(ledger, input, check);
  }

  /**
   * The same cut with its effects on the currently waiting blocks and transactions: others may have arrived since it
   * was executed.
   */
  upToDate(cut: AppliedCut): AppliedCut {
    const { effects, state } = cut;
    const expired = this.#expired(effects.registered, state.height);
    const lost = this.#with.mempool.lost(effects.spent, state.height);
    return { ...cut, effects: { ...effects, expired, lost } };
  }

  /** Whether a cut of this time may name the block (ledger rule 41): by the cut's time, not by a clock. */
  isDated({ header }: Pick<WaitingBlock, 'header'>, nowMillis: number): boolean {
    const anchorMillis = this.#anchorMillis(header.anchorHeight);
    return (
      anchorMillis !== undefined && timestampFault(header.timestampMillis, { anchorMillis, nowMillis }) === undefined
    );
  }

  /** Thousands of blocks may wait on few anchors, and a cut is long to read. */
  #anchorMillis(height: number): number | undefined {
    const known = this.#millis.get(height) ?? this.#with.cut(height)?.header.timestampMillis;
    if (known !== undefined) this.#millis.set(height, known);
    return known;
  }

  #expired(taken: readonly { readonly id: Bytes }[], height: number) {
    const names = new Set(taken.map(({ id }) => nameOf(id)));
    return this.#with.pool.closedAt(height).filter(({ id }) => !names.has(nameOf(id)));
  }

  #leaveOut(block: WaitingBlock, error: unknown): void {
    const { log, pool, mempool, onLeftOut } = this.#with;
    log.error('a block that cannot be executed is left out', { block: block.id, error });
    onLeftOut();
    pool.leaveOut(block);
    mempool.released(nameOf(block.id), block.transactions);
  }
}
