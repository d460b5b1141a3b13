/**
 * The ledger's interface for consensus: the base of the next cut, making and executing cuts without writing, and the
 * step that makes a cut final.
 */
import { type Bytes, equalBytes } from '../protocol/bytes.ts';
import type { Certificate } from '../protocol/cut.ts';
import type { ProposedCut } from '../protocol/proposal.ts';
import { type Checkpoint, contradictionOf } from './checkpoints.ts';
import type { CutMaker, CutParts } from './cut-maker.ts';
import type { BlockRecord, Chain, CutRecord, Head, Submission } from './full-node.ts';
import type { AppliedCut } from './ledger/apply-cut.ts';
import { nameOf } from './ledger/registration.ts';
import type { Committee } from './ledger/staking/committee.ts';
import type { WaitingBlock, WorkPool } from './mining/work-pool.ts';
import type { NodeError, NodeErrorCode } from './node-error.ts';

/**
 * `wrong_body`: the body is not the header's, which says nothing about the block. `impossible`: no cut of this height may name the block. `later`: this node cannot
 * check it now.
 */
export type Admitted = 'here' | 'wrong_body' | 'impossible' | 'later';

export interface CutLedger {
  readonly chainId: Bytes;
  readonly networkId: number;
  readonly intervalCuts: number;
  head(): Head;
  /** The committee that certifies the cut of this height: known up to the one after the head. */
  committee(height: number): Committee | undefined;
  cut(height: number): CutRecord | undefined;
  certificate(height: number): Certificate | undefined;
  block(id: Bytes): BlockRecord | undefined;
  blockBody(id: Bytes): Bytes | undefined;
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
   * Accepts a block that a cut names, even if the pool is full or another block has the same body; its time is checked
   * against the cut's.
   */
  admit(header: Bytes, body: Bytes, cutMillis: number): Promise<Admitted>;
  /** Why a block with this header cannot be accepted, judged by the header and its work only. */
  examineHeader(header: Bytes): Promise<NodeError | undefined>;
  /** The proposed cut as this node executes it; a text says why it cannot be the next one. Its blocks are all here. */
  execute(cut: ProposedCut): AppliedCut | string;
  /** When this resolves, the waiting blocks are on disk and survive a power failure. */
  sync(): Promise<void>;
  /** Writes a cut that was made or executed at this height, not only the last one; it is final when this resolves. Nothing may be executed meanwhile. */
  commit(cut: AppliedCut, certificate: Certificate): Promise<void>;
  /** The node must stop. */
  fail(error: Error): void;
}

/** Refusals that concern this node or the moment, not the block. */
const PASSING: ReadonlySet<NodeErrorCode> = new Set(['verifier_unavailable', 'node_stopped', 'block_queue_full']);

/** The identifier of a block covers only its header, so a neighbour can send a wrong body with it. */
const WRONG_BODY: ReadonlySet<NodeErrorCode> = new Set([
  'body_malformed',
  'parents_root_mismatch',
  'reward_root_mismatch',
  'transactions_root_mismatch',
]);

export type CutLedgerParts = {
  readonly chain: Pick<
    Chain,
    'chainId' | 'network' | 'genesis' | 'head' | 'cut' | 'certificate' | 'block' | 'blockBody'
  >;
  readonly cuts: CutMaker;
  readonly pool: WorkPool;
  /** A cut that contradicts one of these is neither executed nor written, whatever its signatures and source. */
  readonly checkpoints: readonly Checkpoint[];
  readonly committee: CutLedger['committee'];
  submit(header: Bytes, body: Bytes, cutMillis: number): Promise<Submission>;
  readonly settled: CutLedger['settled'];
  readonly examineHeader: CutLedger['examineHeader'];
  readonly sync: CutLedger['sync'];
  readonly finish: CutLedger['commit'];
  readonly fail: CutLedger['fail'];
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
  const { chain } = parts;
  const executions = new Executions();
  return {
    chainId: chain.chainId,
    networkId: chain.network.id,
    intervalCuts: chain.genesis.intervalCuts,
    head: () => chain.head(),
    committee: parts.committee,
    cut: (height) => chain.cut(height),
    certificate: (height) => chain.certificate(height),
    block: (id) => chain.block(id),
    blockBody: (id) => chain.blockBody(id),
    settled: parts.settled,
    make: (cut) => {
      const chosen = parts.cuts.choose(cut.timestampMillis);
      return executions.run(chosen, (blocks) => parts.cuts.make(blocks, cut));
    },
    isHere: (id) => parts.pool.get(id) !== undefined,
    admit: async (header, body, cutMillis) => {
      const outcome = await parts.submit(header, body, cutMillis);
      if (outcome.status !== 'refused') return 'here';
      if (PASSING.has(outcome.error.code)) return 'later';
      return WRONG_BODY.has(outcome.error.code) ? 'wrong_body' : 'impossible';
    },
    examineHeader: parts.examineHeader,
    execute: (cut) => execute(cut, parts, executions),
    sync: parts.sync,
    commit: async (cut, certificate) => {
      const wrong = contradictionOf(parts.checkpoints, { height: cut.state.height, cutId: cut.effects.cutId });
      if (wrong !== undefined) throw new Error(wrong);
      await parts.finish(executions.newest(cut), certificate);
    },
    fail: parts.fail,
  };
};

function execute(
  { header, cutId, blockIds, content }: ProposedCut,
  { cuts, pool, checkpoints }: CutLedgerParts,
  executions: Executions,
): AppliedCut | string {
  const wrong = contradictionOf(checkpoints, { height: header.height, cutId });
  if (wrong !== undefined) return wrong;
  const blocks = blockIds.flatMap((id) => pool.get(id) ?? []);
  if (blocks.length !== blockIds.length) return 'a block is not here';
  if (!blocks.every((block) => cuts.isDated(block, header.timestampMillis))) return 'the time of a block does not fit';
  let cut: AppliedCut;
  try {
    cut = executions.run(blocks, (again) => cuts.execute(again, header));
  } catch (error) {
    return (error as Error).message;
  }
  // The header that follows from execution must equal the proposed one.
  const { headerBytes } = cut.effects;
  return equalBytes(headerBytes, content.subarray(0, headerBytes.length)) ? cut : 'its execution gives another header';
}
