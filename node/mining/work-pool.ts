/**
 * Accepted blocks that no cut has taken yet. Bounded: when it is full the block with the highest hash value leaves,
 * which is the one a cut would take last (ledger rule 35). An evicted block is still on record and may return after a
 * restart, so its body stays reserved until its window closes: no two blocks on record ever share a body, and all
 * blocks loaded at a start may be registered.
 */

import { type Bytes, compareBytes } from '../../protocol/bytes.ts';
import { MAX_PARENTS } from '../../protocol/ledger/body.ts';
import { MAX_CUT_BLOCKS, MAX_CUT_SIGNATURES } from '../../protocol/ledger/cut.ts';
import type { Outpoint } from '../../protocol/transactions/transaction.ts';
import type { BlockRecord, UnspentOutput } from '../full-node.ts';
import { chooseBlocks, isWindowOpen, lookedUpOnce, nameOf } from '../ledger/registration.ts';
import type { ReadTransaction, WorkBlock } from '../ledger/work-block.ts';
import { LEAST_CUTS_LEFT } from './anchor-choice.ts';

export type WaitingBlock = WorkBlock & { readonly hash: Bytes; readonly record: BlockRecord };

/** Data kept about a block that is on record but not in the pool. */
type Outside = { readonly id: Bytes; readonly bodyId: Bytes; readonly anchorHeight: number };

type Carried = { readonly block: WaitingBlock; readonly copy: ReadTransaction };

/** The head's height, the time of the child, and what is registered at the head. */
export type ParentRules = {
  readonly height: number;
  readonly timestampMillis: number;
  isRegistered(id: Bytes): boolean;
};

export type WorkPoolOptions = { readonly maxBlocks: number; readonly maxBytes: number };

export class WorkPool {
  bytes = 0;
  /** Carried by the waiting blocks together (ledger rule 43). */
  signatures = 0;
  readonly #options: WorkPoolOptions;
  readonly #blocks = new Map<string, WaitingBlock>();
  readonly #outside = new Map<string, Outside>();
  /** The block that uses a body: it waits, is being written or was evicted. */
  readonly #bodies = new Map<string, string>();
  /** Bodies of which a second block with work was seen. A cut takes one of the two, and nobody knows which. */
  readonly #contested = new Set<string>();
  /** Transactions in waiting blocks, by identifier: copies of one transaction may differ in their witnesses. */
  readonly #carried = new Map<string, Carried[]>();

  constructor(options: WorkPoolOptions) {
    this.#options = options;
  }

  get count(): number {
    return this.#blocks.size;
  }

  get(id: Bytes): WaitingBlock | undefined {
    return this.#blocks.get(nameOf(id));
  }

  list(): Iterable<WaitingBlock> {
    return this.#blocks.values();
  }

  /** How many blocks wait on each anchor. */
  countByAnchor(): ReadonlyMap<number, number> {
    const counts = new Map<number, number>();
    for (const { header } of this.#blocks.values())
      counts.set(header.anchorHeight, (counts.get(header.anchorHeight) ?? 0) + 1);
    return counts;
  }

  /** Whether a block other than this one uses the body. */
  isBodyTaken(bodyId: Bytes, by: Bytes): boolean {
    const user = this.#bodies.get(nameOf(bodyId));
    return user !== undefined && user !== nameOf(by);
  }

  /** Another block with this body was seen. */
  contest(bodyId: Bytes): void {
    if (this.#bodies.has(nameOf(bodyId))) this.#contested.add(nameOf(bodyId));
  }

  /** The first block that carries a copy of the transaction of which `isGood` holds. */
  carrier(transactionId: Bytes, isGood: (copy: ReadTransaction) => boolean): WaitingBlock | undefined {
    return this.#carried.get(nameOf(transactionId))?.find(({ copy }) => isGood(copy))?.block;
  }

  /** The blocks that carry a copy of it. */
  carriers({ name }: Pick<ReadTransaction, 'name'>): WaitingBlock[] {
    return (this.#carried.get(name) ?? []).map(({ block }) => block);
  }

  /** An output that a waiting transaction would make: its identifier covers what it makes. */
  output(outpoint: Outpoint): UnspentOutput | undefined {
    const copy = this.#carried.get(nameOf(outpoint.transactionId))?.[0]?.copy;
    const output = copy?.body.outputs[outpoint.outputIndex];
    return output && { ...output, outpoint, source: 'regular' };
  }

  /** Blocks that must leave before this one fits; undefined when it would itself be the first to leave. */
  roomFor(hash: Bytes, bytes: number): WaitingBlock[] | undefined {
    const over = () => count + 1 > this.#options.maxBlocks || held + bytes > this.#options.maxBytes;
    let count = this.#blocks.size;
    let held = this.bytes;
    if (!over()) return [];
    const leaving: WaitingBlock[] = [];
    for (const block of [...this.#blocks.values()].sort((a, b) => compareBytes(b.hash, a.hash))) {
      if (!over()) break;
      if (compareBytes(block.hash, hash) <= 0) return undefined;
      leaving.push(block);
      count--;
      held -= block.bodyBytes.length;
    }
    return over() ? undefined : leaving;
  }

  /** Reserves its body, before it is written, so that of two concurrent blocks one is refused. */
  hold({ id, bodyId }: Pick<WorkBlock, 'id' | 'bodyId'>): void {
    this.#bodies.set(nameOf(bodyId), nameOf(id));
  }

  add(block: WaitingBlock): void {
    this.hold(block);
    this.#outside.delete(nameOf(block.id));
    this.#blocks.set(nameOf(block.id), block);
    for (const copy of block.transactions) {
      const carried = this.#carried.get(copy.name);
      if (carried === undefined) this.#carried.set(copy.name, [{ block, copy }]);
      else carried.push({ block, copy });
    }
    this.bytes += block.bodyBytes.length;
    this.signatures += block.signatures;
  }

  /** On record but not in the pool: its body stays reserved until a cut has decided about it. */
  leaveOut({ id, bodyId, header }: Pick<WorkBlock, 'id' | 'bodyId' | 'header'>): void {
    this.#take(id);
    this.hold({ id, bodyId });
    this.#outside.set(nameOf(id), { id, bodyId, anchorHeight: header.anchorHeight });
  }

  /** Whether it is on record, but not in the pool. */
  isOutside(id: Bytes): boolean {
    return this.#outside.has(nameOf(id));
  }

  /** A cut has decided about it. */
  forget(id: Bytes): WaitingBlock | undefined {
    const block = this.#take(id);
    const bodyId = block?.bodyId ?? this.#outside.get(nameOf(id))?.bodyId;
    if (bodyId !== undefined && this.#bodies.get(nameOf(bodyId)) === nameOf(id)) {
      this.#bodies.delete(nameOf(bodyId));
      this.#contested.delete(nameOf(bodyId));
    }
    this.#outside.delete(nameOf(id));
    return block;
  }

  #take(id: Bytes): WaitingBlock | undefined {
    const block = this.#blocks.get(nameOf(id));
    if (block === undefined) return undefined;
    this.#blocks.delete(nameOf(id));
    for (const { name } of block.transactions) {
      const left = (this.#carried.get(name) ?? []).filter((carried) => carried.block !== block);
      if (left.length === 0) this.#carried.delete(name);
      else this.#carried.set(name, left);
    }
    this.bytes -= block.bodyBytes.length;
    this.signatures -= block.signatures;
    return block;
  }

  /** Blocks on record that no cut above this height can register any more. */
  closedAt(height: number): { readonly id: Bytes; readonly anchorHeight: number }[] {
    const all = [
      ...[...this.#blocks.values()].map(({ id, header }) => ({ id, anchorHeight: header.anchorHeight })),
      ...this.#outside.values(),
    ];
    return all
      .filter(({ anchorHeight }) => !isWindowOpen(anchorHeight, height + 1))
      .map(({ id, anchorHeight }) => ({ id, anchorHeight }));
  }

  /**
   * Leaves out the blocks that no cut can register: a parent neither waits nor is registered, because its window closed
   * before a cut took it or it was evicted; or a cut took another block with the same body. Returns them.
   */
  leaveOutDead(isRegistered: (id: Bytes) => boolean, usedBodies: ReadonlySet<string>): WaitingBlock[] {
    const isKnown = lookedUpOnce(isRegistered);
    const children = new Map<string, WaitingBlock[]>();
    const dead = new Set<WaitingBlock>();
    for (const block of this.#blocks.values()) {
      if (usedBodies.has(nameOf(block.bodyId))) dead.add(block);
      for (const parent of block.body.parents) {
        const name = nameOf(parent);
        const siblings = children.get(name);
        if (siblings !== undefined) siblings.push(block);
        else if (this.#blocks.has(name)) children.set(name, [block]);
        else if (!isKnown(parent)) dead.add(block);
      }
    }
    // A set gives those that are added meanwhile as well.
    for (const block of dead) {
      this.leaveOut(block);
      for (const child of children.get(nameOf(block.id)) ?? []) dead.add(child);
    }
    return [...dead];
  }

  /**
   * Parents for a new block: of those that the next cuts certainly take with all their ancestors, the lowest hash
   * values, in the order of identifiers. A parent that no cut takes would cost its child the reward, one that has to
   * wait would delay it: so none whose window closes soon, none that is dated later than the child, and neither of two
   * with one body.
   */
  parents({ height, timestampMillis, isRegistered }: ParentRules): Bytes[] {
    const waiting = [...this.#blocks.values()];
    if (waiting.length > MAX_CUT_BLOCKS / 2 || this.signatures > MAX_CUT_SIGNATURES / 2) return [];
    const lasting = waiting.filter(
      ({ header, bodyId }) =>
        header.timestampMillis <= timestampMillis &&
        isWindowOpen(header.anchorHeight, height + LEAST_CUTS_LEFT) &&
        !this.#contested.has(nameOf(bodyId)),
    );
    return chooseBlocks(lasting, height + 1, isRegistered, new Set())
      .sort((a, b) => compareBytes(a.hash, b.hash))
      .slice(0, MAX_PARENTS)
      .map((block) => block.id)
      .sort(compareBytes);
  }
}
