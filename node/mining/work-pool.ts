/**
 * Accepted blocks that no cut has taken yet. Bounded: when it is full the block with the highest hash value leaves, which is the one a cut would
 * take last (ledger rule 35).
 */

import { MAX_PARENTS } from '../../protocol/body.ts';
import { type Bytes, compareBytes } from '../../protocol/bytes.ts';
import { MAX_CUT_BLOCKS } from '../../protocol/cut.ts';
import type { BlockRecord } from '../full-node.ts';
import { isWindowOpen, nameOf } from '../ledger/registration.ts';
import type { WorkBlock } from '../ledger/work-block.ts';

export type WaitingBlock = WorkBlock & { readonly hash: Bytes; readonly record: BlockRecord };

export type WorkPoolOptions = { readonly maxBlocks: number; readonly maxBytes: number };

export class WorkPool {
  bytes = 0;
  readonly #options: WorkPoolOptions;
  readonly #blocks = new Map<string, WaitingBlock>();
  readonly #bodies = new Set<string>();
  /** Which waiting block was the first to carry a transaction. */
  readonly #carriers = new Map<string, WaitingBlock>();

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

  hasBody(bodyId: Bytes): boolean {
    return this.#bodies.has(nameOf(bodyId));
  }

  carrier(transactionId: Bytes): WaitingBlock | undefined {
    return this.#carriers.get(nameOf(transactionId));
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

  add(block: WaitingBlock): void {
    this.#blocks.set(nameOf(block.id), block);
    this.#bodies.add(nameOf(block.bodyId));
    for (const { name } of block.transactions) if (!this.#carriers.has(name)) this.#carriers.set(name, block);
    this.bytes += block.bodyBytes.length;
  }

  remove(id: Bytes): WaitingBlock | undefined {
    const block = this.#blocks.get(nameOf(id));
    if (block === undefined) return undefined;
    this.#blocks.delete(nameOf(id));
    this.#bodies.delete(nameOf(block.bodyId));
    for (const { name } of block.transactions) if (this.#carriers.get(name) === block) this.#carriers.delete(name);
    this.bytes -= block.bodyBytes.length;
    return block;
  }

  /** Blocks that no cut above this height can register any more. */
  closedAt(height: number): WaitingBlock[] {
    return [...this.#blocks.values()].filter((block) => !isWindowOpen(block.header.anchorHeight, height + 1));
  }

  /**
   * Parents for a new block: of those that the next cut takes for sure, the lowest hash values, in the order of identifiers. A
   * parent that no cut takes would hold back its child.
   */
  parents(): Bytes[] {
    if (this.#blocks.size > MAX_CUT_BLOCKS / 2) return [];
    return [...this.#blocks.values()]
      .sort((a, b) => compareBytes(a.hash, b.hash))
      .slice(0, MAX_PARENTS)
      .map((block) => block.id)
      .sort(compareBytes);
  }
}
