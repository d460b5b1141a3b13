/**
 * One cut's changes of a trie: the new nodes and leaves, separate from those in memory, and the records to be written
 * for them. Nothing in memory changes before the records are in the store (`settle`).
 */
import { type Bytes, compareBytes } from '../../protocol/bytes.ts';
import { ID_BYTES, id, LABELS } from '../../protocol/crypto/identifier.ts';
import type { BatchOp } from '../store/batch.ts';
import { ROOT_PLACE, type TrieMemory } from './trie-memory.ts';
import {
  bitOf,
  countAt,
  LEAF_ENTRIES,
  MAX_DEPTH,
  NODE_BYTES,
  SIDE_BYTES,
  sideAt,
  type TrieRoot,
  writeNodeAsSide,
  writeSide,
} from './trie-node.ts';
import { packRecord, placeOf, startsRecord } from './trie-record.ts';

const FIRST_NODES = 64;

export const EMPTY_TRIE: TrieRoot = { digest: new Uint8Array(ID_BYTES), sum: 0n, count: 0 };

/** How entries of a set look. `keyBytes` order them; their first 48 bytes are a hash, whose bits make the path. */
export type EntryLayout = {
  readonly prefix: number;
  readonly entryBytes: number;
  readonly keyBytes: number;
  amount(entry: Bytes): bigint;
};

/** Without an entry the key is removed; `replaces` when the key has another entry. */
export type TrieChange = { readonly key: Bytes; readonly entry?: Bytes; readonly replaces?: boolean };

/** Reads a place from memory or the store. `digest` at `at` is the expected hash of the node there. */
export type TrieSource = {
  readonly memory: TrieMemory;
  slot(place: number, key: Bytes, depth: number, digest: Uint8Array, at: number): number;
  leaf(place: number, key: Bytes, depth: number): Uint8Array;
};

/** A result of the update: a node by its number, from 1 on; a leaf by a negative number; 0 if unchanged. */
type Made = number;
const UNCHANGED: Made = 0;

export const NOTHING = new Uint8Array(0);

/** The hash of at most 16 entries in order. */
export function leafSide(layout: EntryLayout, entries: Bytes): TrieRoot {
  if (entries.length === 0) return EMPTY_TRIE;
  let sum = 0n;
  for (let at = 0; at < entries.length; at += layout.entryBytes)
    sum += layout.amount(entries.subarray(at, at + layout.entryBytes));
  return { digest: id(LABELS.stateLeaf, entries), sum, count: entries.length / layout.entryBytes };
}

export class TrieUpdate {
  root: TrieRoot = EMPTY_TRIE;
  readonly operations: BatchOp[] = [];
  /** The leaves that the update read, which include all that it changes, by place. */
  readonly before = new Map<number, Uint8Array>();
  readonly #layout: EntryLayout;
  readonly #source: TrieSource;
  #changes: readonly TrieChange[] = [];
  #made: Made = UNCHANGED;
  /** Node n at `n * NODE_BYTES`; at 0 the root as a side. Allocating each one would take longer than hashing it. */
  #nodes = new Uint8Array(FIRST_NODES * NODE_BYTES);
  /** By node: the slot of its previous version, 0 for none; and the results for its sides. */
  readonly #slots: number[] = [0];
  readonly #sides: Made[] = [UNCHANGED, UNCHANGED];
  readonly #leaves: Uint8Array[] = [];

  constructor(layout: EntryLayout, source: TrieSource) {
    this.#layout = layout;
    this.#source = source;
  }

  /** The changes are sorted by key. */
  run(root: TrieRoot, changes: readonly TrieChange[]): void {
    this.root = root;
    if (changes.length === 0) return;
    this.#changes = changes;
    writeSide(this.#nodes, 0, root);
    this.#made = this.#change(0, ROOT_PLACE, 0, 0, changes.length);
    this.root = sideAt(this.#nodes, 0);
  }

  /** Brings memory in line with the store. */
  settle(): void {
    this.#settle(ROOT_PLACE, this.#made);
  }

  #settle(place: number, made: Made): void {
    const { memory } = this.#source;
    if (made === UNCHANGED) return;
    if (made < 0) {
      const entries = this.#entries(made);
      memory.remove(place);
      if (entries.length > 0) memory.cacheLeaf(place, entries);
      return;
    }
    const slot = memory.putNode(place, this.#nodes, made * NODE_BYTES);
    this.#settle(2 * slot, this.#sides[2 * made] as Made);
    this.#settle(2 * slot + 1, this.#sides[2 * made + 1] as Made);
  }

  #entries(leaf: Made): Uint8Array {
    return this.#leaves[-leaf - 1] as Uint8Array;
  }

  #readLeaf(place: number, key: Bytes, depth: number): Uint8Array {
    const leaf = this.#source.leaf(place, key, depth);
    this.before.set(place, leaf);
    return leaf;
  }

  #put(key: Bytes, depth: number, value: Uint8Array): void {
    this.operations.push({ type: 'put', key: placeOf(this.#layout.prefix, key, depth), value });
  }

  #delete(key: Bytes, depth: number): void {
    this.operations.push({ type: 'del', key: placeOf(this.#layout.prefix, key, depth) });
  }

  #newNode(slot: number): Made {
    const made = this.#slots.length;
    this.#slots.push(slot);
    this.#sides.push(UNCHANGED, UNCHANGED);
    if ((made + 1) * NODE_BYTES > this.#nodes.length) {
      const longer = new Uint8Array(2 * this.#nodes.length);
      longer.set(this.#nodes);
      this.#nodes = longer;
    }
    return made;
  }

  /**
   * The changes from `from` to before `to` are all below one place at this depth. Its current side is at `at`, which is
   * replaced by the result.
   */
  #change(at: number, place: number, depth: number, from: number, to: number): Made {
    const { key } = this.#changes[from] as TrieChange;
    const count = countAt(this.#nodes, at);
    if (count <= LEAF_ENTRIES) {
      const before = count === 0 ? NOTHING : this.#readLeaf(place, key, depth);
      return this.#build(at, this.#merge(before, from, to), depth, key, count > 0);
    }
    const { memory, slot: slotOf } = this.#source;
    const slot = slotOf(place, key, depth, this.#nodes, at);
    const node = this.#newNode(slot);
    const old = memory.offset(slot);
    const start = node * NODE_BYTES;
    this.#nodes.set(memory.piece(slot).subarray(old, old + NODE_BYTES), start);
    let split = from;
    while (split < to && bitOf((this.#changes[split] as TrieChange).key, depth) === 0) split++;
    if (from < split) this.#sides[2 * node] = this.#change(start, 2 * slot, depth + 1, from, split);
    if (split < to) this.#sides[2 * node + 1] = this.#change(start + SIDE_BYTES, 2 * slot + 1, depth + 1, split, to);
    if (countAt(this.#nodes, start) + countAt(this.#nodes, start + SIDE_BYTES) > LEAF_ENTRIES)
      return this.#node(at, node, depth, key);
    return this.#leaf(at, this.#collapse(node, depth, key), depth, key, true);
  }

  /** The entries of a node that has become small enough for a leaf; then its sides are leaves too. */
  #collapse(node: Made, depth: number, key: Bytes): Uint8Array {
    const entries = [0, 1].map((bit) => {
      const made = this.#sides[2 * node + bit] as Made;
      const sideKey = keyOfSide(key, depth, bit);
      const isThere = countAt(this.#nodes, node * NODE_BYTES + bit * SIDE_BYTES) > 0;
      const place = 2 * (this.#slots[node] as number) + bit;
      // The old entries are read before they are deleted: readers of the set as it was need it until the cut is in the store.
      const leaf =
        made !== UNCHANGED ? this.#entries(made) : isThere ? this.#readLeaf(place, sideKey, depth + 1) : NOTHING;
      this.#delete(sideKey, depth + 1);
      return leaf;
    });
    return Buffer.concat(entries);
  }

  /** Both are sorted by key. */
  #merge(before: Uint8Array, from: number, to: number): Uint8Array {
    const { entryBytes, keyBytes } = this.#layout;
    const parts: Uint8Array[] = [];
    let at = 0;
    let copied = 0;
    for (let i = from; i < to; i++) {
      const { key, entry, replaces = false } = this.#changes[i] as TrieChange;
      let order = 1;
      while (at < before.length) {
        order = compareBytes(before.subarray(at, at + keyBytes), key);
        if (order >= 0) break;
        at += entryBytes;
      }
      const present = at < before.length && order === 0;
      if (present !== (entry === undefined || replaces))
        throw new Error('a state entry is added twice or removed without being there');
      if (copied < at) parts.push(before.subarray(copied, at));
      if (present) at += entryBytes;
      if (entry !== undefined) parts.push(entry);
      copied = at;
    }
    parts.push(before.subarray(copied));
    return Buffer.concat(parts);
  }

  /** `isStored`: the store has a leaf there. */
  #build(at: number, entries: Uint8Array, depth: number, key: Bytes, isStored: boolean): Made {
    const { entryBytes } = this.#layout;
    if (entries.length <= LEAF_ENTRIES * entryBytes) return this.#leaf(at, entries, depth, key, isStored);
    if (depth >= MAX_DEPTH) throw new Error('more entries than a leaf holds share one key');
    // Where a record begins it takes the place of the leaf; elsewhere nothing does.
    if (isStored && !startsRecord(depth)) this.#delete(key, depth);
    let split = 0;
    while (split < entries.length && bitOf(entries.subarray(split), depth) === 0) split += entryBytes;
    const node = this.#newNode(0);
    const start = node * NODE_BYTES;
    const left = this.#build(start, entries.subarray(0, split), depth + 1, keyOfSide(key, depth, 0), false);
    const right = this.#build(start + SIDE_BYTES, entries.subarray(split), depth + 1, keyOfSide(key, depth, 1), false);
    this.#sides[2 * node] = left;
    this.#sides[2 * node + 1] = right;
    return this.#node(at, node, depth, key);
  }

  #leaf(at: number, entries: Uint8Array, depth: number, key: Bytes, isStored: boolean): Made {
    if (entries.length > 0) this.#put(key, depth, entries);
    else if (isStored) this.#delete(key, depth);
    writeSide(this.#nodes, at, leafSide(this.#layout, entries));
    return -this.#leaves.push(entries);
  }

  #node(at: number, node: Made, depth: number, key: Bytes): Made {
    writeNodeAsSide(this.#nodes, at, this.#nodes, node * NODE_BYTES);
    if (startsRecord(depth)) this.#put(key, depth, packRecord(node, this.#walk));
    return node;
  }

  /** Walks the updated nodes: new ones by their numbers, unchanged ones by their negated slots. */
  readonly #walk = {
    bytes: (node: number): Uint8Array => (node > 0 ? this.#nodes : this.#source.memory.piece(-node)),
    offset: (node: number): number => (node > 0 ? node * NODE_BYTES : this.#source.memory.offset(-node)),
    below: (node: number, bit: number): number | undefined => {
      const made = node > 0 ? (this.#sides[2 * node + bit] as Made) : UNCHANGED;
      if (made !== UNCHANGED) return made > 0 ? made : undefined;
      // An unchanged leaf has no slot: of one record, either all nodes are in memory or none.
      const slot = node > 0 ? (this.#slots[node] as number) : -node;
      const below = this.#source.memory.slotAt(2 * slot + bit);
      return below === 0 ? undefined : -below;
    },
  };
}

/** A key that leads to one side of a place. */
function keyOfSide(key: Bytes, depth: number, bit: number): Uint8Array {
  const side = new Uint8Array(ID_BYTES);
  side.set(key.subarray(0, ID_BYTES));
  const mask = 0x80 >> (depth & 7);
  side[depth >> 3] = bit === 1 ? (side[depth >> 3] as number) | mask : (side[depth >> 3] as number) & ~mask;
  return side;
}
