/**
 * The part of a trie that is in memory. A node is 128 bytes in large pieces outside the heap, and its loaded children are numbers beside it: a step
 * down is two array reads, and the garbage collector does not trace the nodes. A place in the tree is named by
 * its parent and side, `2 * slot of the parent + side`; the root is side 0 of slot 0, which holds nothing else.
 */
import { BoundedMap } from '../../runtime/bounded-map.ts';
import { NODE_BYTES } from './trie-node.ts';

/** The place of the root. */
export const ROOT_PLACE = 0;

/** Nodes of one piece. */
const PIECE_BITS = 12;
const PIECE_NODES = 1 << PIECE_BITS;

export class TrieMemory {
  #pieces: Uint8Array<ArrayBuffer>[] = [];
  /** By place: the slot of its node, 0 when it is not loaded or there is no node. */
  #children = new Int32Array(2 * PIECE_NODES);
  #free: number[] = [];
  /** The first slot that was never used. */
  #unused = 1;
  /** By place; evicted in the order of insertion. */
  readonly #leaves: BoundedMap<number, Uint8Array>;

  constructor(maxLeaves: number) {
    this.#leaves = new BoundedMap(maxLeaves);
  }

  get nodes(): number {
    return this.#unused - 1 - this.#free.length;
  }

  /** 0 when it is not loaded. */
  slotAt(place: number): number {
    return this.#children[place] as number;
  }

  /** Location of a slot's bytes: in `piece` from `offset` on. */
  piece(slot: number): Uint8Array<ArrayBuffer> {
    return this.#pieces[slot >> PIECE_BITS] as Uint8Array<ArrayBuffer>;
  }

  offset(slot: number): number {
    return (slot & (PIECE_NODES - 1)) * NODE_BYTES;
  }

  /** Puts the node at `at` of `bytes` at a place, replacing any that is there. */
  putNode(place: number, bytes: Uint8Array, at: number): number {
    let slot = this.#children[place] as number;
    if (slot === 0) {
      slot = this.#take();
      this.#children[place] = slot;
      this.#leaves.delete(place);
    }
    this.piece(slot).set(bytes.subarray(at, at + NODE_BYTES), this.offset(slot));
    return slot;
  }

  #take(): number {
    const again = this.#free.pop();
    if (again !== undefined) return again;
    const slot = this.#unused++;
    if (slot >> PIECE_BITS >= this.#pieces.length) this.#pieces.push(new Uint8Array(PIECE_NODES * NODE_BYTES));
    if (2 * slot + 1 >= this.#children.length) {
      const longer = new Int32Array(2 * this.#children.length);
      longer.set(this.#children);
      this.#children = longer;
    }
    return slot;
  }

  leafAt(place: number): Uint8Array | undefined {
    return this.#leaves.get(place);
  }

  cacheLeaf(place: number, entries: Uint8Array): void {
    this.#leaves.delete(place);
    this.#leaves.set(place, ownBytes(entries));
  }

  /** Removes the node at a place and everything below it. */
  remove(place: number): void {
    this.#leaves.delete(place);
    const slot = this.#children[place] as number;
    if (slot === 0) return;
    this.#children[place] = 0;
    this.remove(2 * slot);
    this.remove(2 * slot + 1);
    this.#free.push(slot);
  }

  clear(): void {
    this.#pieces = [];
    this.#children = new Int32Array(2 * PIECE_NODES);
    this.#free = [];
    this.#unused = 1;
    this.#leaves.clear();
  }
}

/** Copied: a small buffer is part of a larger shared one (64 KiB in Node.js), which a leaf would retain. */
const ownBytes = (entries: Uint8Array): Uint8Array =>
  entries.buffer.byteLength > 2 * entries.byteLength ? new Uint8Array(entries) : entries;
