/**
 * Cuts of the current height before their verdict (consensus rules 3 and 7): made for an own proposal, or executed as
 * proposed once their blocks are here. Missing blocks are requested until they arrive; a cut whose blocks never arrive
 * gets no verdict. Nothing is written before the decision.
 */
import { type Bytes, concat } from '../../../protocol/bytes.ts';
import { decodeProposedCut, type ProposedCut } from '../../../protocol/consensus/proposal.ts';
import type { CutHeader } from '../../../protocol/ledger/cut.ts';
import type { LedgerClock } from '../../../runtime/clock/clock.ts';
import type { CutLedger } from '../../chain/cut-ledger.ts';
import type { AppliedCut } from '../../ledger/apply-cut.ts';
import { nameOf } from '../../ledger/registration.ts';
import type { Peer, Proposal } from '../engine/effects.ts';
import { earliestMillis, tickMillis } from '../engine/pace.ts';
import { bitsOf, type CutName, type Proof, UNSIGNED } from '../engine/votes.ts';

/** Executed cuts of a height that are kept for the decision: more than the engine has values of (rule 14). */
const KEPT = 16;
/**
 * Bodies of cuts whose other blocks are still missing: as many as the largest cut has. The oldest are dropped and
 * requested again.
 */
const MAX_ARRIVED_BYTES = 72 * 1024 * 1024;

export type ArrivedBlock = { readonly id: Bytes; readonly header: Bytes; readonly body: Bytes; readonly from: Peer };

export type CutDeskDependencies = {
  readonly ledger: CutLedger;
  readonly cutMillis: number;
  verdict(height: number, cut: CutName, valid: boolean, reason?: string): void;
  /** Blocks of a proposed cut that are not here. */
  want(ids: readonly Bytes[], cut: CutName): void;
  /** The neighbour sent a body that does not belong to the block. */
  blame(peer: Peer): void;
  /** It could not be judged by an error of this node: that is no verdict, whoever proposed it. It is looked at again at the next tick. */
  lost(error: unknown): void;
  readonly onExecuted?: ((seconds: number) => void) | undefined;
};

type Waiting = {
  readonly cut: ProposedCut;
  readonly arrived: Map<string, ArrivedBlock>;
  isBusy: boolean;
  /** Blocks are looked at as they arrive, one after the other. */
  looked: Promise<void>;
};

/** Rule 3: the least timestamp of the next cut. */
export function nextEarliest(ledger: CutLedger, cutMillis: number): number {
  const { height, timestampMillis } = ledger.head();
  const number = (height + 1) % ledger.intervalCuts;
  const start = number === 0 ? 0 : (ledger.cut(height + 1 - number)?.header.timestampMillis ?? 0);
  return earliestMillis(timestampMillis, start, number, cutMillis);
}

export class CutDesk {
  readonly #with: CutDeskDependencies;
  readonly #applied = new Map<CutName, AppliedCut>();
  readonly #waiting = new Map<CutName, Waiting>();

  constructor(dependencies: CutDeskDependencies) {
    this.#with = dependencies;
  }

  /** A new height: cuts executed on the previous ledger state are dropped. */
  clear(): void {
    this.#applied.clear();
    this.#waiting.clear();
  }

  /**
   * A fresh proposal from the waiting blocks. `last` is the certificate of the previous cut with all signatures
   * received.
   */
  async build(height: number, round: number, last: Proof | undefined, now: LedgerClock): Promise<Proposal> {
    const { ledger, cutMillis } = this.#with;
    await ledger.settled(tickMillis(cutMillis));
    const timestampMillis = Math.max(nextEarliest(ledger, cutMillis), now());
    const signers = last === undefined ? 0n : bitsOf(last.votes);
    const applied = ledger.make({ timestampMillis, signers });
    const { headerBytes, cutId, registered } = applied.effects;
    const cut = nameOf(cutId);
    this.#keep(cut, applied);
    return {
      height,
      round,
      validRound: -1,
      cut,
      signers,
      lastRound: last?.round ?? 0,
      content: concat(headerBytes, ...registered.map(({ id }) => id)),
      signature: UNSIGNED,
    };
  }

  check({ height, cut, content }: Proposal): void {
    if (this.#applied.has(cut)) {
      this.#with.verdict(height, cut, true);
      return;
    }
    this.#waiting.set(cut, {
      cut: decodeProposedCut(content),
      arrived: new Map(),
      isBusy: false,
      looked: Promise.resolve(),
    });
    this.#advance(cut);
  }

  #misplaced({ previousId, timestampMillis }: CutHeader): string | undefined {
    const { ledger, cutMillis } = this.#with;
    if (nameOf(previousId) !== nameOf(ledger.head().cutId)) return 'another cut before it';
    return timestampMillis < nextEarliest(ledger, cutMillis) ? 'it is too early' : undefined;
  }

  /**
   * The execution result of the decided cut. If it is not kept, the cut is checked again, and a verdict will follow. The
   * others are dropped: a cut executed while another is written would take its place in the ledger's sets.
   */
  decided(proposal: Proposal): AppliedCut | undefined {
    this.#waiting.clear();
    const applied = this.#applied.get(proposal.cut);
    if (applied === undefined) this.check(proposal);
    return applied;
  }

  /**
   * The execution result of a cut that was proven elsewhere; a text says which rule it breaks, undefined that it cannot be
   * executed now. Before it is written the others are dropped, as above.
   */
  adopted(cut: ProposedCut): AppliedCut | string | undefined {
    const applied = this.#applied.get(nameOf(cut.cutId)) ?? this.#with.ledger.execute(cut);
    if (typeof applied === 'object') this.#waiting.clear();
    return applied;
  }

  /** Checks a cut once more, with bodies that come anew: those that are here may be the reason for the first verdict. */
  async doubt(proposal: Proposal): Promise<void> {
    // Their blocks may be among those that are dropped.
    this.#applied.clear();
    await this.#with.ledger.forget(decodeProposedCut(proposal.content).blockIds);
    this.check(proposal);
  }

  /** Whether a waiting cut contains the block. */
  names(id: Bytes): boolean {
    const name = nameOf(id);
    return [...this.#waiting.values()].some(({ cut }) => cut.blockIds.some((other) => nameOf(other) === name));
  }

  arrived(block: ArrivedBlock): void {
    const name = nameOf(block.id);
    for (const [cut, waiting] of this.#waiting)
      if (waiting.cut.blockIds.some((id) => nameOf(id) === name)) {
        waiting.arrived.set(name, block);
        if (this.#lacking(waiting).length === 0) this.#advance(cut);
        else waiting.looked = waiting.looked.then(() => this.#look(cut, waiting, block.id)).catch(this.#with.lost);
        this.#makeRoom();
      }
  }

  /** Before the others are here: one without work ends the wait for its cut, so that made-up bodies take no room of other cuts. */
  async #look(name: CutName, waiting: Waiting, id: Bytes): Promise<void> {
    const block = waiting.arrived.get(nameOf(id));
    if (waiting.isBusy || this.#waiting.get(name) !== waiting || block === undefined) return;
    // In the place of a wrong body another one is asked for at once.
    if ((await this.#admit(name, waiting, block)) && !waiting.arrived.has(nameOf(id))) this.#advance(name);
  }

  /** False where the cut is not waited for any more. */
  async #admit(name: CutName, waiting: Waiting, block: ArrivedBlock): Promise<boolean> {
    const { ledger, verdict, blame } = this.#with;
    const { cut, arrived } = waiting;
    const admitted = await ledger.admit(block.header, block.body, cut);
    if (this.#waiting.get(name) !== waiting) return false;
    if (typeof admitted === 'object') {
      this.#waiting.delete(name);
      verdict(cut.header.height, name, false, admitted.impossible);
      return false;
    }
    // The pool has it, or nobody should. One that a cut registered before is in no pool: this cut's verdict says so.
    if (admitted === 'wrong_body' || ledger.isHere(block.id)) arrived.delete(nameOf(block.id));
    if (admitted === 'wrong_body') blame(block.from);
    return true;
  }

  #makeRoom(): void {
    const bytesOf = ({ arrived }: Waiting) => [...arrived.values()].reduce((sum, { body }) => sum + body.length, 0);
    const all = [...this.#waiting.values()];
    let bytes = all.reduce((sum, waiting) => sum + bytesOf(waiting), 0);
    for (const oldest of all) {
      if (bytes <= MAX_ARRIVED_BYTES) return;
      if (oldest.isBusy) continue;
      bytes -= bytesOf(oldest);
      oldest.arrived.clear();
    }
  }

  /** Requests missing blocks again. */
  tick(): void {
    for (const cut of [...this.#waiting.keys()]) this.#advance(cut);
  }

  #keep(cut: CutName, applied: AppliedCut): void {
    this.#applied.set(cut, applied);
    for (const oldest of this.#applied.keys()) {
      if (this.#applied.size <= KEPT) break;
      this.#applied.delete(oldest);
    }
  }

  #lacking({ cut, arrived }: Waiting): Bytes[] {
    return cut.blockIds.filter((id) => !this.#with.ledger.isHere(id) && !arrived.has(nameOf(id)));
  }

  /** An error costs no other cut its turn. */
  #advance(name: CutName): void {
    try {
      this.#goOn(name);
    } catch (error) {
      this.#with.lost(error);
    }
  }

  #goOn(name: CutName): void {
    const waiting = this.#waiting.get(name);
    if (waiting === undefined || waiting.isBusy) return;
    const { header } = waiting.cut;
    if (header.height !== this.#with.ledger.head().height + 1) return;
    const misplaced = this.#misplaced(header);
    if (misplaced !== undefined) {
      this.#waiting.delete(name);
      this.#with.verdict(header.height, name, false, misplaced);
      return;
    }
    const lacking = this.#lacking(waiting);
    if (lacking.length > 0) {
      this.#with.want(lacking, name);
      return;
    }
    waiting.isBusy = true;
    this.#judge(name, waiting).catch((error) => {
      waiting.isBusy = false;
      this.#with.lost(error);
    });
  }

  /** Parents come before their children in a cut, and are added in this order. */
  async #judge(name: CutName, waiting: Waiting): Promise<void> {
    const { ledger, verdict } = this.#with;
    const { cut, arrived } = waiting;
    const { height } = cut.header;
    for (const id of cut.blockIds) {
      const block = arrived.get(nameOf(id));
      if (ledger.isHere(id) || block === undefined) continue;
      if (!(await this.#admit(name, waiting, block))) return;
    }
    await ledger.settled(tickMillis(this.#with.cutMillis), cut.blockIds);
    if (this.#waiting.get(name) !== waiting) return;
    waiting.isBusy = false;
    // In the place of a wrong body another one is asked for at once.
    if (this.#lacking(waiting).length > 0) return this.#advance(name);
    const began = performance.now();
    const applied = ledger.execute(cut);
    // A block that could not be checked now, or was dropped meanwhile: it is looked at again at the next tick.
    if (applied === undefined) return;
    this.#with.onExecuted?.((performance.now() - began) / 1000);
    this.#waiting.delete(name);
    if (typeof applied === 'string') verdict(height, name, false, applied);
    else {
      this.#keep(name, applied);
      verdict(height, name, true);
    }
  }
}
