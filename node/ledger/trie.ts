/**
 * The committed sets of the ledger (ledger rule 34): a binary trie over fixed-size entries, ordered by their leading key bits.
 * A subtree of at most 16 entries is one leaf, a larger one is a node with two sides; each is summed and counted. The shape follows from
 * the contents alone, so equal sets have equal roots whatever their history, and an update touches about log2(n / 16)
 * nodes. Nodes live in the store by their place; updates are collected and written with the cut. A node is kept as the bytes that are stored and hashed:
 * `digest 48 | u64 sum | u64 count` of its left side, then of its right.
 */
import { type Bytes, compareBytes } from '../../protocol/bytes.ts';
import { ID_BYTES, id, LABELS } from '../../protocol/identifier.ts';
import type { BatchOp } from '../store/batch.ts';
import { NODE_BYTES, ROOT_PLACE, TrieMemory } from './trie-memory.ts';

export const LEAF_ENTRIES = 16;
const MAX_DEPTH = 8 * ID_BYTES;

export type TrieRoot = { readonly digest: Bytes; readonly sum: bigint; readonly count: number };

export const EMPTY_TRIE: TrieRoot = { digest: new Uint8Array(ID_BYTES), sum: 0n, count: 0 };

/** How entries of a set look. `keyBytes` order them; their first 48 bytes are a hash, whose bits make the path. */
export type EntryLayout = {
  readonly prefix: number;
  readonly entryBytes: number;
  readonly keyBytes: number;
  amount(entry: Bytes): bigint;
};

/** Without an entry the key is removed; `replaces` when another entry stands under it. */
export type TrieChange = { readonly key: Bytes; readonly entry?: Bytes; readonly replaces?: boolean };

export type ReadNode = (key: Bytes) => Uint8Array | undefined;

const SIDE_BYTES = ID_BYTES + 8 + 8;
const SUM_AT = ID_BYTES;
const COUNT_AT = ID_BYTES + 8;

/** Left is 0, right is 1. */
const bitOf = (key: Bytes, depth: number): number => ((key[depth >> 3] as number) >> (7 - (depth & 7))) & 1;

/** One view for all 64-bit figures: making a view of every node costs more than copying eight bytes. */
const figure = new Uint8Array(8);
const figureView = new DataView(figure.buffer);

function readFigure(node: Uint8Array, at: number): bigint {
  for (let i = 0; i < 8; i++) figure[i] = node[at + i] as number;
  return figureView.getBigUint64(0, true);
}

function writeSide(node: Uint8Array, at: number, { digest, sum, count }: TrieRoot): void {
  node.set(digest, at);
  figureView.setBigUint64(0, sum, true);
  node.set(figure, at + SUM_AT);
  figureView.setBigUint64(0, BigInt(count), true);
  node.set(figure, at + COUNT_AT);
}

const u32At = (bytes: Uint8Array, at: number): number =>
  ((bytes[at] as number) |
    ((bytes[at + 1] as number) << 8) |
    ((bytes[at + 2] as number) << 16) |
    ((bytes[at + 3] as number) << 24)) >>>
  0;

const countAt = (bytes: Uint8Array, side: number): number =>
  u32At(bytes, side + COUNT_AT) + u32At(bytes, side + COUNT_AT + 4) * 0x1_0000_0000;

const sumAt = (bytes: Uint8Array, side: number): bigint => readFigure(bytes, side + SUM_AT);

function leafOf(layout: EntryLayout, entries: Bytes): TrieRoot {
  if (entries.length === 0) return EMPTY_TRIE;
  let sum = 0n;
  for (let at = 0; at < entries.length; at += layout.entryBytes)
    sum += layout.amount(entries.subarray(at, at + layout.entryBytes));
  return { digest: id(LABELS.stateLeaf, entries), sum, count: entries.length / layout.entryBytes };
}

/** `prefix | u16 depth | the first depth bits of the path`: the key in the store. */
function placeOf(prefix: number, key: Bytes, depth: number): Buffer {
  const bytes = (depth + 7) >> 3;
  const place = Buffer.allocUnsafe(3 + bytes);
  place[0] = prefix;
  place.writeUInt16BE(depth, 1);
  for (let i = 0; i < bytes; i++) place[3 + i] = key[i] as number;
  if (depth & 7) place[2 + bytes] = (place[2 + bytes] as number) & (0xff << (8 - (depth & 7)));
  return place;
}

/** All nodes of a set of five million entries, 128 bytes each: a read from the store takes longer than everything else about a node. */
const CACHED_NODES = 524_288;
/** A leaf that is read at a door is read again when the cut executes, and again when the cut changes it. */
const CACHED_LEAVES = 16_384;

export type TrieLimits = { readonly nodes: number; readonly leaves: number };

export class Trie {
  readonly #layout: EntryLayout;
  readonly #read: ReadNode;
  readonly #limits: TrieLimits;
  readonly #memory: TrieMemory;
  /** The update that was made last and is not in the store yet. What it changes was loaded for it and stays loaded, so readers see it as it was. */
  #open: TrieUpdate | undefined;
  readonly #source: Source;

  constructor(
    layout: EntryLayout,
    read: ReadNode,
    limits: TrieLimits = { nodes: CACHED_NODES, leaves: CACHED_LEAVES },
  ) {
    this.#layout = layout;
    this.#read = read;
    this.#limits = limits;
    this.#memory = new TrieMemory(limits.leaves);
    this.#source = {
      memory: this.#memory,
      slot: (place, key, depth) => this.#slot(place, key, depth),
      leaf: (place, key, depth) => this.#leaf(place, key, depth),
    };
  }

  #stored(key: Bytes, depth: number): Uint8Array {
    const place = placeOf(this.#layout.prefix, key, depth);
    const bytes = this.#read(place);
    if (bytes === undefined) throw new Error(`state node ${place.toString('hex')} is missing from the store`);
    return bytes;
  }

  /** The slot of the node at a place, which key and depth lead to. */
  #slot(place: number, key: Bytes, depth: number): number {
    const loaded = this.#memory.slotAt(place);
    if (loaded !== 0) return loaded;
    const bytes = this.#stored(key, depth);
    if (bytes.length !== NODE_BYTES) throw new Error(`a state node of ${bytes.length} bytes stands in the store`);
    return this.#memory.putNode(place, bytes);
  }

  #leaf(place: number, key: Bytes, depth: number): Uint8Array {
    const known = this.#memory.leafAt(place) ?? this.#open?.before.get(place);
    if (known !== undefined) return known;
    const entries = this.#stored(key, depth);
    this.#memory.cacheLeaf(place, entries);
    return entries;
  }

  /** Everything is forgotten at once: which nodes were used last would cost more to know than reading them again. */
  #bound(): void {
    if (this.#memory.nodes > this.#limits.nodes && this.#open === undefined) this.#memory.clear();
  }

  /** Goes down to the leaf that holds the key or would hold it. */
  #descend(root: TrieRoot, key: Bytes, passing?: (piece: Uint8Array, node: number, bit: number) => void): Uint8Array {
    this.#bound();
    let { count } = root;
    let place = ROOT_PLACE;
    let depth = 0;
    while (count > LEAF_ENTRIES) {
      const slot = this.#slot(place, key, depth);
      const piece = this.#memory.piece(slot);
      const node = this.#memory.offset(slot);
      const bit = bitOf(key, depth);
      passing?.(piece, node, bit);
      count = countAt(piece, node + bit * SIDE_BYTES);
      place = 2 * slot + bit;
      depth++;
    }
    return count === 0 ? NOTHING : this.#leaf(place, key, depth);
  }

  /** The leaf that holds the key or would hold it, and the other sides on the way down. */
  path(root: TrieRoot, key: Bytes): { leaf: Uint8Array; siblings: { right: boolean; side: TrieRoot }[] } {
    const siblings: { right: boolean; side: TrieRoot }[] = [];
    const leaf = this.#descend(root, key, (piece, node, bit) => {
      const at = node + (1 - bit) * SIDE_BYTES;
      const side = { digest: piece.slice(at, at + ID_BYTES), sum: sumAt(piece, at), count: countAt(piece, at) };
      siblings.push({ right: bit === 1, side });
    });
    return { leaf, siblings };
  }

  /** The entry under a whole key (`keyBytes` long). */
  get(root: TrieRoot, key: Bytes): Uint8Array | undefined {
    return findEntry(this.#layout, this.#descend(root, key), key);
  }

  /**
   * The root after the changes, and what must be written for it. Keys that are removed must be there, keys that are added must
   * not: anything else is a fault of the ledger above. An update must be in the store before the next one is made, or be dropped.
   */
  update(root: TrieRoot, changes: readonly TrieChange[]): TrieUpdate {
    this.#open = undefined;
    this.#bound();
    const update = new TrieUpdate(this.#layout, this.#source);
    const sorted = [...changes].sort((a, b) => compareBytes(a.key, b.key));
    update.run(root, sorted);
    this.#open = update;
    return update;
  }

  /** Call when the update is in the store. */
  committed(update: TrieUpdate): void {
    if (update !== this.#open) throw new Error('an update is committed that is not the last one made');
    this.#open = undefined;
    update.settle();
  }
}

const NOTHING = new Uint8Array(0);

export function findEntry(layout: EntryLayout, leaf: Uint8Array, key: Bytes): Uint8Array | undefined {
  const { entryBytes, keyBytes } = layout;
  for (let at = 0; at < leaf.length; at += entryBytes) {
    let same = 0;
    while (same < keyBytes && leaf[at + same] === key[same]) same++;
    if (same === keyBytes) return leaf.subarray(at, at + entryBytes);
  }
  return undefined;
}

type Source = {
  readonly memory: TrieMemory;
  slot(place: number, key: Bytes, depth: number): number;
  leaf(place: number, key: Bytes, depth: number): Uint8Array;
};

/** A subtree that the update changed: a node with what it changed of its sides, or the entries of a leaf. */
type Built = TrieRoot & ({ readonly node: Uint8Array; readonly sides: readonly (Built | undefined)[] } | Leaf);
type Leaf = { readonly entries: Uint8Array };

/** Nodes of an update lie in pieces of this many: memory for each by itself would take longer than hashing it. */
const PIECE_NODES = 256;

export class TrieUpdate {
  root: TrieRoot = EMPTY_TRIE;
  readonly operations: BatchOp[] = [];
  /** The leaves that the update read, so all that it changes, by place. */
  readonly before = new Map<number, Uint8Array>();
  readonly #layout: EntryLayout;
  readonly #source: Source;
  #built: Built | undefined;
  #piece = new Uint8Array(0);
  #used = 0;

  constructor(layout: EntryLayout, source: Source) {
    this.#layout = layout;
    this.#source = source;
  }

  run(root: TrieRoot, changes: readonly TrieChange[]): void {
    this.root = root;
    if (changes.length === 0) return;
    this.#built = this.#change(root.count, ROOT_PLACE, 0, changes, 0, changes.length);
    const { digest, sum, count } = this.#built;
    this.root = { digest, sum, count };
  }

  /** Makes memory what the store is. */
  settle(): void {
    if (this.#built !== undefined) this.#settle(ROOT_PLACE, this.#built);
  }

  #settle(place: number, built: Built): void {
    const { memory } = this.#source;
    if ('entries' in built) {
      memory.remove(place);
      if (built.count > 0) memory.cacheLeaf(place, built.entries);
      return;
    }
    const slot = memory.putNode(place, built.node);
    built.sides.forEach((side, bit) => {
      if (side !== undefined) this.#settle(2 * slot + bit, side);
    });
  }

  #readLeaf(place: number, key: Bytes, depth: number): Uint8Array {
    const leaf = this.#source.leaf(place, key, depth);
    this.before.set(place, leaf);
    return leaf;
  }

  #put(key: Bytes, depth: number, value: Uint8Array | undefined): void {
    const place = placeOf(this.#layout.prefix, key, depth);
    this.operations.push(value === undefined ? { type: 'del', key: place } : { type: 'put', key: place, value });
  }

  #newNode(): Uint8Array {
    if (this.#used === this.#piece.length) {
      this.#piece = new Uint8Array(PIECE_NODES * NODE_BYTES);
      this.#used = 0;
    }
    this.#used += NODE_BYTES;
    return this.#piece.subarray(this.#used - NODE_BYTES, this.#used);
  }

  /** The changes `from` to before `to` all lie under the place of their keys at this depth, where `count` entries are. */
  #change(
    count: number,
    place: number,
    depth: number,
    changes: readonly TrieChange[],
    from: number,
    to: number,
  ): Built {
    const { key } = changes[from] as TrieChange;
    if (count <= LEAF_ENTRIES) {
      const before = count === 0 ? NOTHING : this.#readLeaf(place, key, depth);
      return this.#build(this.#merge(before, changes, from, to), depth, key, count > 0);
    }
    const slot = this.#source.slot(place, key, depth);
    const node = this.#newNode();
    const old = this.#source.memory.offset(slot);
    node.set(this.#source.memory.piece(slot).subarray(old, old + NODE_BYTES));
    let split = from;
    while (split < to && bitOf((changes[split] as TrieChange).key, depth) === 0) split++;
    const side = (bit: number, first: number, end: number): Built | undefined =>
      first === end
        ? undefined
        : this.#change(countAt(node, bit * SIDE_BYTES), 2 * slot + bit, depth + 1, changes, first, end);
    const sides = [side(0, from, split), side(1, split, to)];
    sides.forEach((built, bit) => {
      if (built !== undefined) writeSide(node, bit * SIDE_BYTES, built);
    });
    if (countAt(node, 0) + countAt(node, SIDE_BYTES) > LEAF_ENTRIES) return this.#node(key, depth, node, sides);
    const entries = sides.map((built, bit) => {
      const sideKey = sidePlace(key, depth, bit);
      if (countAt(node, bit * SIDE_BYTES) === 0) return NOTHING;
      // So few entries are a leaf.
      return built === undefined ? this.#readLeaf(2 * slot + bit, sideKey, depth + 1) : (built as Built & Leaf).entries;
    });
    for (const bit of [0, 1]) this.#put(sidePlace(key, depth, bit), depth + 1, undefined);
    return this.#leaf(key, depth, Buffer.concat(entries), true);
  }

  /** Both are sorted by key. */
  #merge(before: Uint8Array, changes: readonly TrieChange[], from: number, to: number): Uint8Array {
    const { entryBytes, keyBytes } = this.#layout;
    const parts: Uint8Array[] = [];
    let at = 0;
    let copied = 0;
    for (let i = from; i < to; i++) {
      const { key, entry, replaces = false } = changes[i] as TrieChange;
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

  #build(entries: Uint8Array, depth: number, key: Bytes, existed: boolean): Built {
    const { entryBytes } = this.#layout;
    if (entries.length <= LEAF_ENTRIES * entryBytes) return this.#leaf(key, depth, entries, existed);
    if (depth >= MAX_DEPTH) throw new Error('more entries than a leaf holds share one key');
    let split = 0;
    while (split < entries.length && bitOf(entries.subarray(split), depth) === 0) split += entryBytes;
    const sides = [
      this.#build(entries.subarray(0, split), depth + 1, sidePlace(key, depth, 0), false),
      this.#build(entries.subarray(split), depth + 1, sidePlace(key, depth, 1), false),
    ];
    const node = this.#newNode();
    sides.forEach((side, bit) => {
      writeSide(node, bit * SIDE_BYTES, side);
    });
    return this.#node(key, depth, node, sides);
  }

  #leaf(key: Bytes, depth: number, entries: Uint8Array, existed: boolean): Built {
    if (entries.length > 0) this.#put(key, depth, entries);
    else if (existed) this.#put(key, depth, undefined);
    return { ...leafOf(this.#layout, entries), entries };
  }

  #node(key: Bytes, depth: number, node: Uint8Array, sides: readonly (Built | undefined)[]): Built {
    this.#put(key, depth, node);
    return {
      digest: id(LABELS.stateNode, node),
      sum: sumAt(node, 0) + sumAt(node, SIDE_BYTES),
      count: countAt(node, 0) + countAt(node, SIDE_BYTES),
      node,
      sides,
    };
  }
}

/** A key that leads to one side of a place. */
function sidePlace(key: Bytes, depth: number, bit: number): Uint8Array {
  const side = new Uint8Array(ID_BYTES);
  side.set(key.subarray(0, ID_BYTES));
  const mask = 0x80 >> (depth & 7);
  side[depth >> 3] = bit === 1 ? (side[depth >> 3] as number) | mask : (side[depth >> 3] as number) & ~mask;
  return side;
}
