/** The ledger as consensus sees it: what the next cut builds on, cuts made and executed without writing anything, and the one step that makes a cut final. */
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
  /** Who certifies the cut of this height: known up to the one after the head. */
  committee(height: number): Committee | undefined;
  cut(height: number): CutRecord | undefined;
  certificate(height: number): Certificate | undefined;
  block(id: Bytes): BlockRecord | undefined;
  blockBody(id: Bytes): Bytes | undefined;
  /** Until signatures of these blocks, or of all that wait, are checked that are being checked, at most so long: then making or executing a cut is quick. */
  settled(millis: number, ids?: readonly Bytes[]): Promise<void>;
  /** The next cut from the blocks that wait. */
  make(parts: CutParts): AppliedCut;
  /** Whether the block waits here, with its body. */
  isHere(id: Bytes): boolean;
  /** Takes in a block that a cut names: neither a full pool nor another block on the same body keeps it out, and its time is judged by the cut's. */
  admit(header: Bytes, body: Bytes, cutMillis: number): Promise<Admitted>;
  /** Why a block with this header cannot be taken in, as far as the header and its work tell. */
  examineHeader(header: Bytes): Promise<NodeError | undefined>;
  /** The proposed cut as this node executes it; a text says why it cannot be the next one. Its blocks are all here. */
  execute(cut: ProposedCut): AppliedCut | string;
  /** What this node has taken in is on the disk when this resolves: a machine that fails then has the blocks that wait now. */
  sync(): Promise<void>;
  /** Writes a cut that was made or executed at this height, not only the last one; it is final when this resolves. Nothing may be executed meanwhile. */
  commit(cut: AppliedCut, certificate: Certificate): Promise<void>;
  /** The node cannot go on. */
  fail(error: Error): void;
}

/** Refusals that say something about this node or the moment, and nothing about the block. */
const PASSING: ReadonlySet<NodeErrorCode> = new Set(['verifier_unavailable', 'node_stopped', 'block_queue_full']);

/** The identifier of a block covers its header alone, so a neighbour can send another body with it. */
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
  /** Whoever signed it and whichever way it came, a cut that contradicts one of these is not executed and not written. */
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
 * The sets of the ledger can take the update that was made last and no other: one that is committed although another was executed since is executed once more, from the blocks it had, which may
 * have left the pool.
 */
class Executions {
  readonly #from = new WeakMap<AppliedCut, () => AppliedCut>();
  #last: AppliedCut | undefined;

  run(from: readonly WaitingBlock[], execute: (blocks: readonly WaitingBlock[]) => AppliedCut): AppliedCut {
    // Also where it fails: a part of the sets may have got its update.
    this.#last = undefined;
    const cut = execute(from);
    // A block that could not be executed was left out.
    const taken = new Set(cut.effects.registered.map(({ id }) => nameOf(id)));
    const blocks = from.filter(({ id }) => taken.has(nameOf(id)));
    this.#from.set(cut, () => this.run(blocks, execute));
    this.#last = cut;
    return cut;
  }

  /** The cut as the sets can take it now. */
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
  // Identifier by identifier, figure by figure: the header that follows from execution is the one that was proposed.
  const { headerBytes } = cut.effects;
  return equalBytes(headerBytes, content.subarray(0, headerBytes.length)) ? cut : 'its execution gives another header';
}
