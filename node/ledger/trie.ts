/**
 * The committed sets of the ledger (ledger rule 34): a binary trie over fixed-size entries, ordered by their leading key bits.
 * A subtree of at most 16 entries is one leaf, a larger one is a node with two sides; each is summed and counted. The shape follows from
 * the contents alone, so equal sets have equal roots whatever their history, and an update touches about log2(n / 16)
 * nodes. Nodes live in the store by their place; updates are collected and written with the cut. A node is kept as the bytes that are stored and hashed:
 * `digest 48 | u64 sum | u64 count` of its left side, then of its right.
 */
import { type Bytes, compareBytes } from '../../protocol/bytes.ts';
import { ID_BYTES, id, LABELS } from '../../protocol/identifier.ts';
import type { BatchOp } from '../store/cut-indexer.ts';
import { nameOf } from './registration.ts';

export const LEAF_ENTRIES = 16;
const MAX_DEPTH = 8 * ID_BYTES;

/** What a side of the tree commits to. */
export type TrieRoot = { readonly digest: Bytes; readonly sum: bigint; readonly count: number };

export const EMPTY_TRIE: TrieRoot = { digest: new Uint8Array(ID_BYTES), sum: 0n, count: 0 };

/** How entries of a set look. `keyBytes` order them; their first 48 bytes are a hash, whose bits make the path. */
export type EntryLayout = {
  readonly prefix: number;
  readonly entryBytes: number;
  readonly keyBytes: number;
  amount(entry: Bytes): bigint;
};

export type TrieChange = { readonly key: Bytes; readonly entry?: Bytes };

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

function writeNode(left: TrieRoot, right: TrieRoot): Uint8Array<ArrayBuffer> {
  const node = new Uint8Array(2 * SIDE_BYTES);
  writeSide(node, 0, left);
  writeSide(node, SIDE_BYTES, right);
  return node;
}

function sideOf(node: Uint8Array, side: number): TrieRoot {
  const at = side * SIDE_BYTES;
  return {
    digest: node.subarray(at, at + ID_BYTES),
    sum: readFigure(node, at + SUM_AT),
    count: countOf(node, side),
  };
}

const u32At = (bytes: Uint8Array, at: number): number =>
  ((bytes[at] as number) |
    ((bytes[at + 1] as number) << 8) |
    ((bytes[at + 2] as number) << 16) |
    ((bytes[at + 3] as number) << 24)) >>>
  0;

/** Lookups need no more of a node than this. */
function countOf(node: Uint8Array, side: number): number {
  const at = side * SIDE_BYTES + COUNT_AT;
  return u32At(node, at) + u32At(node, at + 4) * 0x1_0000_0000;
}

function leafOf(layout: EntryLayout, entries: Bytes): TrieRoot {
  if (entries.length === 0) return EMPTY_TRIE;
  let sum = 0n;
  for (let at = 0; at < entries.length; at += layout.entryBytes)
    sum += layout.amount(entries.subarray(at, at + layout.entryBytes));
  return { digest: id(LABELS.stateLeaf, entries), sum, count: entries.length / layout.entryBytes };
}

/** A place in the tree as a key of maps: a number as deep as sets grow, because making text of every step down costs more than the step. */
type Name = number | string;

function nameOfPlace(key: Bytes, depth: number): Name {
  if (depth === 0) return 0;
  if (depth > 32) return nameOf(placeOf(0, key, depth));
  let bits = 0;
  for (let i = 0; i < 4; i++) bits = (bits << 8) | (key[i] as number);
  return depth * 0x1_0000_0000 + (bits >>> (32 - depth));
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

/** Values by place; the one that was put first leaves first. */
class PlaceCache {
  readonly #limit: number;
  readonly #values = new Map<Name, Uint8Array>();

  constructor(limit: number) {
    this.#limit = limit;
  }

  get(name: Name): Uint8Array | undefined {
    return this.#values.get(name);
  }

  set(name: Name, value: Uint8Array): void {
    this.#values.delete(name);
    if (this.#values.size >= this.#limit) this.#values.delete(this.#values.keys().next().value as Name);
    this.#values.set(name, value);
  }

  delete(name: Name): void {
    this.#values.delete(name);
  }
}

/** All nodes of a set of two million entries, about 400 bytes each in memory: a read from the store takes longer than everything else about a node. */
const CACHED_NODES = 262_144;
/** A leaf that is read at a door is read again when the cut executes, and again when the cut changes it. */
const CACHED_LEAVES = 16_384;

export class Trie {
  readonly #layout: EntryLayout;
  readonly #read: ReadNode;
  readonly #nodes = new PlaceCache(CACHED_NODES);
  readonly #leaves = new PlaceCache(CACHED_LEAVES);
  /** The update on its way into the store: what it changes is answered as it was, whichever the store shows already. */
  #committing: TrieUpdate | undefined;

  constructor(layout: EntryLayout, read: ReadNode) {
    this.#layout = layout;
    this.#read = read;
  }

  #load(cache: PlaceCache, key: Bytes, depth: number): Uint8Array {
    const name = nameOfPlace(key, depth);
    const known = this.#committing?.before.get(name) ?? cache.get(name);
    if (known !== undefined) return known;
    const place = placeOf(this.#layout.prefix, key, depth);
    const bytes = this.#read(place);
    if (bytes === undefined) throw new Error(`state node ${place.toString('hex')} is missing from the store`);
    cache.set(name, bytes);
    return bytes;
  }

  readonly #node = (key: Bytes, depth: number): Uint8Array => this.#load(this.#nodes, key, depth);
  readonly #leaf = (key: Bytes, depth: number): Uint8Array => this.#load(this.#leaves, key, depth);

  /** The leaf that holds the key or would hold it, and the other sides on the way down. */
  path(root: TrieRoot, key: Bytes): { leaf: Uint8Array; siblings: { right: boolean; side: TrieRoot }[] } {
    const siblings: { right: boolean; side: TrieRoot }[] = [];
    let { count } = root;
    let depth = 0;
    while (count > LEAF_ENTRIES) {
      const node = this.#node(key, depth);
      const bit = bitOf(key, depth);
      siblings.push({ right: bit === 1, side: sideOf(node, 1 - bit) });
      count = countOf(node, bit);
      depth++;
    }
    return { leaf: count === 0 ? new Uint8Array(0) : this.#leaf(key, depth), siblings };
  }

  /** The entry under a whole key (`keyBytes` long). */
  get(root: TrieRoot, key: Bytes): Uint8Array | undefined {
    let { count } = root;
    let depth = 0;
    while (count > LEAF_ENTRIES) {
      count = countOf(this.#node(key, depth), bitOf(key, depth));
      depth++;
    }
    return count === 0 ? undefined : findEntry(this.#layout, this.#leaf(key, depth), key);
  }

  /**
   * The root after the changes, and what must be written for it. Keys that are removed must be there, keys that are added must
   * not: anything else is a fault of the ledger above.
   */
  update(root: TrieRoot, changes: readonly TrieChange[]): TrieUpdate {
    const update = new TrieUpdate(this.#layout, { node: this.#node, leaf: this.#leaf });
    const sorted = [...changes].sort((a, b) => compareBytes(a.key, b.key));
    update.run(root, sorted);
    return update;
  }

  /** Call before the update is written. */
  committing(update: TrieUpdate): void {
    this.#committing = update;
  }

  /** Call when the update is in the store. */
  committed(update: TrieUpdate): void {
    this.#committing = undefined;
    for (const [name, { node, leaf }] of update.after) {
      if (node === undefined) this.#nodes.delete(name);
      else this.#nodes.set(name, node);
      if (leaf === undefined) this.#leaves.delete(name);
      else this.#leaves.set(name, leaf);
    }
  }
}

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
  node(key: Bytes, depth: number): Uint8Array;
  leaf(key: Bytes, depth: number): Uint8Array;
};

/** A subtree while it is being changed: leaves keep their entries at hand, for a node that shrinks to a leaf. */
type Built = TrieRoot & { readonly entries?: Uint8Array };

/** What stands at a place: a node, a leaf, or nothing. */
type Standing = { readonly node?: Uint8Array; readonly leaf?: Uint8Array };

export class TrieUpdate {
  root: TrieRoot = EMPTY_TRIE;
  readonly operations: BatchOp[] = [];
  /** Everything that the update read, so everything that it changes. */
  readonly before = new Map<Name, Uint8Array>();
  readonly after = new Map<Name, Standing>();
  readonly #layout: EntryLayout;
  readonly #source: Source;

  constructor(layout: EntryLayout, source: Source) {
    this.#layout = layout;
    this.#source = source;
  }

  run(root: TrieRoot, changes: readonly TrieChange[]): void {
    const { digest, sum, count } = changes.length === 0 ? root : this.#change(root, 0, changes, 0, changes.length);
    this.root = { digest, sum, count };
  }

  #readNode(key: Bytes, depth: number): Uint8Array {
    const node = this.#source.node(key, depth);
    this.before.set(nameOfPlace(key, depth), node);
    return node;
  }

  #readLeaf(key: Bytes, depth: number): Uint8Array {
    const leaf = this.#source.leaf(key, depth);
    this.before.set(nameOfPlace(key, depth), leaf);
    return leaf;
  }

  #put(key: Bytes, depth: number, standing: Standing): void {
    const place = placeOf(this.#layout.prefix, key, depth);
    const value = standing.node ?? standing.leaf;
    this.operations.push(value === undefined ? { type: 'del', key: place } : { type: 'put', key: place, value });
    this.after.set(nameOfPlace(key, depth), standing);
  }

  /** The changes `from` to before `to` all lie under the place of their keys at this depth. */
  #change(ref: TrieRoot, depth: number, changes: readonly TrieChange[], from: number, to: number): Built {
    const { key } = changes[from] as TrieChange;
    if (ref.count <= LEAF_ENTRIES) {
      const before = ref.count === 0 ? new Uint8Array(0) : this.#readLeaf(key, depth);
      return this.#build(this.#merge(before, changes, from, to), depth, key, ref.count > 0);
    }
    const node = this.#readNode(key, depth);
    const left = sideOf(node, 0);
    const right = sideOf(node, 1);
    let split = from;
    while (split < to && bitOf((changes[split] as TrieChange).key, depth) === 0) split++;
    const newLeft: Built = split === from ? left : this.#change(left, depth + 1, changes, from, split);
    const newRight: Built = split === to ? right : this.#change(right, depth + 1, changes, split, to);
    if (newLeft.count + newRight.count > LEAF_ENTRIES) return this.#node(key, depth, newLeft, newRight);
    const sides = [newLeft, newRight].map((built, bit) => ({ built, place: sidePlace(key, depth, bit) }));
    const entries = Buffer.concat(sides.map(({ built, place }) => this.#collect(built, place, depth + 1)));
    for (const { place } of sides) this.#put(place, depth + 1, {});
    return this.#leaf(key, depth, entries, true);
  }

  #collect(built: Built, key: Bytes, depth: number): Uint8Array {
    if (built.count === 0) return new Uint8Array(0);
    return built.entries ?? this.#readLeaf(key, depth);
  }

  /** Both are sorted by key. */
  #merge(before: Uint8Array, changes: readonly TrieChange[], from: number, to: number): Uint8Array {
    const { entryBytes, keyBytes } = this.#layout;
    const parts: Uint8Array[] = [];
    let at = 0;
    let copied = 0;
    for (let i = from; i < to; i++) {
      const { key, entry } = changes[i] as TrieChange;
      let order = 1;
      while (at < before.length) {
        order = compareBytes(before.subarray(at, at + keyBytes), key);
        if (order >= 0) break;
        at += entryBytes;
      }
      const present = at < before.length && order === 0;
      if (present === (entry !== undefined))
        throw new Error('a state entry is added twice or removed without being there');
      if (copied < at) parts.push(before.subarray(copied, at));
      if (entry === undefined) at += entryBytes;
      else parts.push(entry);
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
    const left = this.#build(entries.subarray(0, split), depth + 1, sidePlace(key, depth, 0), false);
    const right = this.#build(entries.subarray(split), depth + 1, sidePlace(key, depth, 1), false);
    return this.#node(key, depth, left, right);
  }

  #leaf(key: Bytes, depth: number, entries: Uint8Array, existed: boolean): Built {
    if (entries.length > 0) this.#put(key, depth, { leaf: entries });
    else if (existed) this.#put(key, depth, {});
    return { ...leafOf(this.#layout, entries), entries };
  }

  #node(key: Bytes, depth: number, left: Built, right: Built): Built {
    const node = writeNode(left, right);
    this.#put(key, depth, { node });
    return { digest: id(LABELS.stateNode, node), sum: left.sum + right.sum, count: left.count + right.count };
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
