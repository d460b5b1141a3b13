/**
 * The ledger's interface for consensus: the base of the next cut, making and executing cuts without writing, and the
 * step that makes a cut final.
 */

import { type Bytes, toHex } from '../../protocol/bytes.ts';
import type { ProposedCut } from '../../protocol/consensus/proposal.ts';
import { decodeBody } from '../../protocol/ledger/body.ts';
import type { Certificate, CutHeader } from '../../protocol/ledger/cut.ts';
import { blockId } from '../../protocol/ledger/header.ts';
import type { Logger } from '../../runtime/log/log.ts';
import type { CutRecord, Head } from '../full-node.ts';
import type { AppliedCut } from '../ledger/apply-cut.ts';
import { nameOf } from '../ledger/registration.ts';
import type { Committee } from '../ledger/staking/committee.ts';
import { DamagedRecordError, isOwnError } from '../ledger/unread-record.ts';
import type { ChecksAhead } from '../mempool/checks-ahead.ts';
import type { BlockDoor } from '../mining/block-door.ts';
import { BLOCK_FACTS, WRONG_BODY } from '../mining/candidate.ts';
import type { WaitingBlock, WorkPool } from '../mining/work-pool.ts';
import type { NodeEnd } from '../node-end.ts';
import type { NodeError, NodeErrorCode } from '../node-error.ts';
import type { LedgerStore } from '../store/ledger-store.ts';
import { type Checkpoint, contradictionOf } from './checkpoints.ts';
import type { CutMaker, CutParts } from './cut-maker.ts';
import type { FinalCuts } from './final-cuts.ts';
import type { FinalizedChain } from './finalized-chain.ts';
import { type RefutedCut, writeRefutedCut } from './refuted-cut.ts';

/**
 * `wrong_body`: the body is not the header's, which says nothing about the block. `later`: this node cannot check it now. Otherwise why no cut of
 * this height may name the block: a fact that follows from the header, its body and the chain, whoever sent it.
 */
export type Admitted = 'here' | 'wrong_body' | 'later' | { readonly impossible: string };

export interface CutLedger {
  readonly chainId: Bytes;
  readonly intervalCuts: number;
  head(): Head;
  /** The committee that certifies the cut of this height: known up to the one after the head. */
  committee(height: number): Committee | undefined;
  cut(height: number): CutRecord | undefined;
  certificate(height: number): Certificate | undefined;
  /**
   * Waits for pending signature checks of these blocks, or of all waiting ones, up to a time limit: then making or
   * executing a cut is quick.
   */
  settled(millis: number, ids?: readonly Bytes[]): Promise<void>;
  /** Makes the next cut from the waiting blocks. */
  make(parts: CutParts): AppliedCut;
  /** Whether the block waits here, with its body. */
  isHere(id: Bytes): boolean;
  /**
   * Accepts a block that the next cut names, even if the pool is full or another block has the same body; its time is
   * checked against the cut's.
   */
  admit(header: Bytes, body: Bytes, cut: ProposedCut): Promise<Admitted>;
  /** Drops waiting blocks with everything that is known of them, so that they can come anew. */
  forget(ids: readonly Bytes[]): Promise<void>;
  /** Why a block with this header cannot be accepted, judged by the header and its work only. */
  examineHeader(header: Bytes): Promise<NodeError | undefined>;
  /**
   * The proposed cut as this node executes it; a text says which rule it breaks. Undefined where this node cannot tell:
   * another height is next, a block is not here, a signature could not be checked, or the store not be read.
   */
  execute(cut: ProposedCut): AppliedCut | string | undefined;
  /** When this resolves, the waiting blocks are on disk and survive a power failure. */
  sync(): Promise<void>;
  /** Writes a cut that was made or executed at this height, not only the last one; it is final when this resolves. Nothing may be executed meanwhile. */
  commit(cut: AppliedCut, certificate: Certificate): Promise<void>;
  /** The node must stop. */
  fail(error: Error): void;
  /** The committee stands for a cut that breaks a rule here: what shows it is written to a file, and the node stops. */
  refute(cut: RefutedCut): Promise<void>;
}

/** Facts of a block for the next cut, by that cut's time. Any other refusal concerns this node, the moment or the sent body. */
const IMPOSSIBLE: ReadonlySet<NodeErrorCode> = new Set([
  ...BLOCK_FACTS,
  'anchor_unknown',
  'block_too_late',
  'timestamp_too_late',
  'body_used',
]);

export type CutLedgerParts = {
  readonly store: Pick<LedgerStore, 'sync'>;
  readonly chain: FinalizedChain;
  readonly cuts: CutMaker;
  readonly pool: WorkPool;
  readonly door: BlockDoor;
  readonly ahead: ChecksAhead;
  readonly final: FinalCuts;
  readonly end: NodeEnd;
  readonly log: Logger;
  /** A cut that contradicts one of these is neither executed nor written, whatever its signatures and source. */
  readonly checkpoints: readonly Checkpoint[];
  /** Where a cut that breaks a rule is written to. */
  readonly directory: string;
};

/**
 * The ledger's sets can apply only the last update: a cut that is committed after another was executed is executed once
 * more, from its blocks, which may have left the pool.
 */
class Executions {
  readonly #from = new WeakMap<AppliedCut, () => AppliedCut>();
  #last: AppliedCut | undefined;

  run(from: readonly WaitingBlock[], execute: (blocks: readonly WaitingBlock[]) => AppliedCut): AppliedCut {
    // Also after a failure: some of the sets may have been updated.
    this.#last = undefined;
    const cut = execute(from);
    // A block that could not be executed was left out.
    const taken = new Set(cut.effects.registered.map(({ id }) => nameOf(id)));
    const blocks = from.filter(({ id }) => taken.has(nameOf(id)));
    this.#from.set(cut, () => this.run(blocks, execute));
    this.#last = cut;
    return cut;
  }

  /** The cut, executed again if necessary, so that the sets can apply it. */
  newest(cut: AppliedCut): AppliedCut {
    return cut === this.#last ? cut : (this.#from.get(cut)?.() ?? cut);
  }
}

export const cutLedgerOf = (parts: CutLedgerParts): CutLedger => {
  const { store, chain, door, ahead, final, end, log } = parts;
  const executions = new Executions();
  /** Of which the log says so: it is tried again and again. */
  let unjudged: string | undefined;
  const fail = (error: Error) => end.fail(error, chain.head().height);
  return {
    chainId: chain.chainId,
    intervalCuts: chain.genesis.intervalCuts,
    head: () => chain.head(),
    committee: (height) => chain.committeeOf(height),
    cut: (height) => chain.cut(height),
    certificate: (height) => chain.certificate(height),
    settled: (millis, ids) => ahead.settled(millis, ids),
    make: (cut) => {
      const chosen = parts.cuts.choose(cut.timestampMillis);
      return executions.run(chosen, (blocks) => parts.cuts.make(blocks, cut));
    },
    isHere: (id) => parts.pool.get(id) !== undefined,
    admit: (header, body, cut) => admit(header, body, cut, parts),
    // What is read of them while a cut that takes them is written says that no cut did.
    forget: (ids) => final.between(() => door.forget(ids)),
    examineHeader: (header) => door.examineHeader(header),
    execute: (cut) => {
      try {
        return execute(cut, parts, executions);
      } catch (error) {
        if (!isOwnError(error)) throw error;
        // A store that is damaged stays so: it is the reason to stop, and not anybody's cut.
        if (error instanceof DamagedRecordError) fail(error);
        const name = nameOf(cut.cutId);
        if (name !== unjudged) log.error('a cut cannot be judged now', { height: cut.header.height, error });
        unjudged = name;
        return undefined;
      }
    },
    sync: () => store.sync(),
    commit: async (cut, certificate) => {
      const wrong = contradictionOf(parts.checkpoints, { height: cut.state.height, cutId: cut.effects.cutId });
      if (wrong !== undefined) throw new Error(wrong);
      await final.oneCut(() => final.finish(executions.newest(cut), certificate));
    },
    fail,
    refute: async (refuted) => {
      const { cut, reason } = refuted;
      const head = chain.head();
      const blocks = cut.blockIds.map((id) => ({ id, header: chain.block(id)?.header, body: chain.blockBody(id) }));
      const written = await writeRefutedCut(parts.directory, { ...refuted, chainId: chain.chainId, head, blocks });
      fail(
        new Error(
          `the committee stands for cut ${cut.header.height}, which breaks a rule here: ${reason}. ${written}. Update this node; if it is up to date, send the file to the developers, and sync into a new data directory`,
        ),
      );
    },
  };
};

/** The verdict holds for the cut after the head: nothing else is judged. */
async function admit(header: Bytes, body: Bytes, cut: ProposedCut, parts: CutLedgerParts): Promise<Admitted> {
  const isNext = () => parts.chain.head().height + 1 === cut.header.height;
  if (!isNext()) return 'later';
  const outcome = await parts.door.submit(header, body, 'relayed', cut.header.timestampMillis);
  if (outcome.status !== 'refused') return 'here';
  const { code, message, fields } = outcome.error;
  if (WRONG_BODY.has(code)) return 'wrong_body';
  if (!isNext() || !(code === 'parent_unknown' ? isOrphan(body, cut, parts) : IMPOSSIBLE.has(code))) return 'later';
  const values = Object.entries(fields).map(([name, value]) => `, ${name} ${value}`);
  return { impossible: `${code}: ${message}${values.join('')}, block ${toHex(blockId(header))}` };
}

/** Whether a parent of the block is neither in the cut nor registered. One that is in the cut may only have left the pool. */
function isOrphan(body: Bytes, { blockIds }: ProposedCut, { chain }: CutLedgerParts): boolean {
  const named = new Set(blockIds.map(nameOf));
  const { isRegistered } = chain.view();
  return decodeBody(body).parents.some((parent) => !named.has(nameOf(parent)) && !isRegistered(parent));
}

function execute(
  { header, cutId, blockIds }: ProposedCut,
  { chain, cuts, pool, checkpoints }: CutLedgerParts,
  executions: Executions,
): AppliedCut | string | undefined {
  const wrong = contradictionOf(checkpoints, { height: header.height, cutId });
  if (wrong !== undefined) return wrong;
  if (chain.head().height + 1 !== header.height) return undefined;
  const blocks = blockIds.flatMap((id) => pool.get(id) ?? []);
  if (blocks.length !== blockIds.length) {
    const again = blockIds.find((id) => chain.block(id)?.registeredHeight !== undefined);
    return again && `block ${toHex(again)} was registered by cut ${chain.block(again)?.registeredHeight} already`;
  }
  const undated = blocks.find((block) => !cuts.isDated(block, header.timestampMillis));
  if (undated !== undefined)
    return `the time of block ${toHex(undated.id)}, ${undated.header.timestampMillis}, does not fit a cut of ${header.timestampMillis}`;
  let cut: AppliedCut;
  try {
    cut = executions.run(blocks, (from) => cuts.execute(from, header));
  } catch (error) {
    if (isOwnError(error)) throw error;
    return (error as Error).message;
  }
  return otherHeader(cut.effects.header, header) ?? cut;
}

/** The header that follows from execution must equal the proposed one: the first field that does not. */
function otherHeader(here: CutHeader, there: CutHeader): string | undefined {
  const shown = (value: CutHeader[keyof CutHeader]) => (value instanceof Uint8Array ? toHex(value) : String(value));
  for (const field of Object.keys(here) as (keyof CutHeader)[])
    if (shown(here[field]) !== shown(there[field]))
      return `its execution gives another ${field}: ${shown(here[field])} here, ${shown(there[field])} in the cut`;
  return undefined;
}
