/**
 * The committed sets of the ledger (ledger rule 34): a binary trie over fixed-size entries, ordered by their leading key bits.
 * A subtree of at most 16 entries is one leaf, a larger one is a node with two sides; each is summed and counted. The shape follows from
 * the contents alone, so equal sets have equal roots whatever their history, and an update touches about log2(n / 16)
 * nodes. Nodes live in the store by their place; updates are collected and written with the cut.
 */
import { ByteReader, type Bytes, ByteWriter, compareBytes } from '../../protocol/bytes.ts';
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

type Sides = { readonly left: TrieRoot; readonly right: TrieRoot };
export type ReadNode = (key: Bytes) => Uint8Array | undefined;

const REF_BYTES = ID_BYTES + 8 + 8;

function writeSides({ left, right }: Sides): Uint8Array<ArrayBuffer> {
  const writer = new ByteWriter(2 * REF_BYTES);
  for (const side of [left, right]) writer.raw(side.digest).u64(side.sum).height(side.count);
  return writer.done();
}

function readSides(bytes: Bytes): Sides {
  const reader = new ByteReader(bytes);
  const side = (): TrieRoot => ({ digest: reader.take(ID_BYTES), sum: reader.u64(), count: reader.height() });
  return { left: side(), right: side() };
}

const bitOf = (key: Bytes, depth: number): number => ((key[depth >> 3] as number) >> (7 - (depth & 7))) & 1;

function leafOf(layout: EntryLayout, entries: Bytes): TrieRoot {
  if (entries.length === 0) return EMPTY_TRIE;
  let sum = 0n;
  for (let at = 0; at < entries.length; at += layout.entryBytes)
    sum += layout.amount(entries.subarray(at, at + layout.entryBytes));
  return { digest: id(LABELS.stateLeaf, entries), sum, count: entries.length / layout.entryBytes };
}

/** The sides of the nodes near the root are read at every update; this many are kept decoded. */
const CACHED_NODES = 65_536;

export class Trie {
  readonly #layout: EntryLayout;
  readonly #read: ReadNode;
  readonly #sides = new Map<string, Sides>();

  constructor(layout: EntryLayout, read: ReadNode) {
    this.#layout = layout;
    this.#read = read;
  }

  /** `prefix | u16 depth | the first depth bits of the path`. */
  #place(key: Bytes, depth: number): Buffer {
    const bytes = (depth + 7) >> 3;
    const place = Buffer.alloc(3 + bytes);
    place[0] = this.#layout.prefix;
    place.writeUInt16BE(depth, 1);
    place.set(key.subarray(0, bytes), 3);
    if (depth & 7) place[2 + bytes] = (place[2 + bytes] as number) & (0xff << (8 - (depth & 7)));
    return place;
  }

  #load(place: Buffer): Uint8Array {
    const bytes = this.#read(place);
    if (bytes === undefined) throw new Error(`state node ${place.toString('hex')} is missing from the store`);
    return bytes;
  }

  #loadSides(place: Buffer): Sides {
    const name = nameOf(place);
    const known = this.#sides.get(name);
    if (known !== undefined) return known;
    const sides = readSides(this.#load(place));
    this.#remember(name, sides);
    return sides;
  }

  #remember(name: string, sides: Sides): void {
    if (this.#sides.size >= CACHED_NODES) {
      const oldest = this.#sides.keys().next().value;
      if (oldest !== undefined) this.#sides.delete(oldest);
    }
    this.#sides.set(name, sides);
  }

  /** The leaf that holds the key or would hold it, and the other sides on the way down. */
  path(root: TrieRoot, key: Bytes): { leaf: Uint8Array; siblings: { right: boolean; side: TrieRoot }[] } {
    const siblings: { right: boolean; side: TrieRoot }[] = [];
    let ref = root;
    let depth = 0;
    while (ref.count > LEAF_ENTRIES) {
      const { left, right } = this.#loadSides(this.#place(key, depth));
      const goesRight = bitOf(key, depth) === 1;
      siblings.push({ right: goesRight, side: goesRight ? left : right });
      ref = goesRight ? right : left;
      depth++;
    }
    return { leaf: ref.count === 0 ? new Uint8Array(0) : this.#load(this.#place(key, depth)), siblings };
  }

  /** The entry under a whole key (`keyBytes` long). */
  get(root: TrieRoot, key: Bytes): Uint8Array | undefined {
    let ref = root;
    let depth = 0;
    while (ref.count > LEAF_ENTRIES) {
      const { left, right } = this.#loadSides(this.#place(key, depth));
      ref = bitOf(key, depth) === 1 ? right : left;
      depth++;
    }
    if (ref.count === 0) return undefined;
    return findEntry(this.#layout, this.#load(this.#place(key, depth)), key);
  }

  /**
   * The root after the changes, and what must be written for it. Keys that are removed must be there, keys that are added must
   * not: anything else is a fault of the ledger above.
   */
  update(root: TrieRoot, changes: readonly TrieChange[]): TrieUpdate {
    const update = new TrieUpdate(this.#layout, {
      place: (key, depth) => this.#place(key, depth),
      entries: (place) => this.#load(place),
      sides: (place) => this.#loadSides(place),
    });
    const sorted = [...changes].sort((a, b) => compareBytes(a.key, b.key));
    update.run(root, sorted);
    return update;
  }

  /** Call when the update is in the store. */
  committed(update: TrieUpdate): void {
    for (const [name, sides] of update.sides)
      if (sides === undefined) this.#sides.delete(name);
      else {
        this.#sides.delete(name);
        this.#remember(name, sides);
      }
  }
}

export function findEntry(layout: EntryLayout, leaf: Uint8Array, key: Bytes): Uint8Array | undefined {
  for (let at = 0; at < leaf.length; at += layout.entryBytes)
    if (compareBytes(leaf.subarray(at, at + layout.keyBytes), key) === 0)
      return leaf.subarray(at, at + layout.entryBytes);
  return undefined;
}

type Source = {
  place(key: Bytes, depth: number): Buffer;
  entries(place: Buffer): Uint8Array;
  sides(place: Buffer): Sides;
};

/** A subtree while it is being changed: leaves keep their entries at hand, for a node that shrinks to a leaf. */
type Built = TrieRoot & { readonly entries?: Uint8Array };

export class TrieUpdate {
  root: TrieRoot = EMPTY_TRIE;
  readonly operations: BatchOp[] = [];
  /** Decoded nodes for the cache; undefined where one ceased to be a node. */
  readonly sides = new Map<string, Sides | undefined>();
  readonly #layout: EntryLayout;
  readonly #source: Source;

  constructor(layout: EntryLayout, source: Source) {
    this.#layout = layout;
    this.#source = source;
  }

  run(root: TrieRoot, changes: readonly TrieChange[]): void {
    const { digest, sum, count } = changes.length === 0 ? root : this.#change(root, 0, changes);
    this.root = { digest, sum, count };
  }

  #change(ref: TrieRoot, depth: number, changes: readonly TrieChange[]): Built {
    const place = this.#source.place((changes[0] as TrieChange).key, depth);
    if (ref.count <= LEAF_ENTRIES) {
      const before = ref.count === 0 ? new Uint8Array(0) : this.#source.entries(place);
      return this.#build(this.#merge(before, changes), depth, place, ref.count > 0);
    }
    const { left, right } = this.#source.sides(place);
    let split = 0;
    while (split < changes.length && bitOf((changes[split] as TrieChange).key, depth) === 0) split++;
    const newLeft: Built = split === 0 ? left : this.#change(left, depth + 1, changes.slice(0, split));
    const newRight: Built = split === changes.length ? right : this.#change(right, depth + 1, changes.slice(split));
    if (newLeft.count + newRight.count > LEAF_ENTRIES) return this.#node(place, newLeft, newRight);
    const leftPlace = this.#side(place, depth, 0);
    const rightPlace = this.#side(place, depth, 1);
    const entries = Buffer.concat([this.#collect(newLeft, leftPlace), this.#collect(newRight, rightPlace)]);
    for (const gone of [leftPlace, rightPlace]) this.operations.push({ type: 'del', key: gone });
    this.sides.set(nameOf(place), undefined);
    return this.#leaf(place, entries, true);
  }

  #side(place: Buffer, depth: number, bit: number): Buffer {
    const key = Buffer.alloc(ID_BYTES);
    key.set(place.subarray(3), 0);
    if (bit === 1) key[depth >> 3] = (key[depth >> 3] as number) | (0x80 >> (depth & 7));
    return this.#source.place(key, depth + 1);
  }

  #collect(built: Built, place: Buffer): Uint8Array {
    if (built.count === 0) return new Uint8Array(0);
    return built.entries ?? this.#source.entries(place);
  }

  /** Both are sorted by key. */
  #merge(before: Uint8Array, changes: readonly TrieChange[]): Uint8Array {
    const { entryBytes, keyBytes } = this.#layout;
    const parts: Uint8Array[] = [];
    let at = 0;
    for (const { key, entry } of changes) {
      let order = 1;
      while (at < before.length) {
        order = compareBytes(before.subarray(at, at + keyBytes), key);
        if (order >= 0) break;
        parts.push(before.subarray(at, at + entryBytes));
        at += entryBytes;
      }
      const present = at < before.length && order === 0;
      if (present === (entry !== undefined))
        throw new Error('a state entry is added twice or removed without being there');
      if (entry === undefined) at += entryBytes;
      else parts.push(entry);
    }
    parts.push(before.subarray(at));
    return Buffer.concat(parts);
  }

  #build(entries: Uint8Array, depth: number, place: Buffer, existed: boolean): Built {
    const { entryBytes } = this.#layout;
    if (entries.length <= LEAF_ENTRIES * entryBytes) return this.#leaf(place, entries, existed);
    if (depth >= MAX_DEPTH) throw new Error('more entries than a leaf holds share one key');
    let split = 0;
    while (split < entries.length && bitOf(entries.subarray(split), depth) === 0) split += entryBytes;
    const left = this.#build(entries.subarray(0, split), depth + 1, this.#side(place, depth, 0), false);
    const right = this.#build(entries.subarray(split), depth + 1, this.#side(place, depth, 1), false);
    return this.#node(place, left, right);
  }

  #leaf(place: Buffer, entries: Uint8Array, existed: boolean): Built {
    if (entries.length > 0) this.operations.push({ type: 'put', key: place, value: entries });
    else if (existed) this.operations.push({ type: 'del', key: place });
    return { ...leafOf(this.#layout, entries), entries };
  }

  #node(place: Buffer, left: Built, right: Built): Built {
    const sides = {
      left: { digest: left.digest, sum: left.sum, count: left.count },
      right: { digest: right.digest, sum: right.sum, count: right.count },
    };
    const value = writeSides(sides);
    this.operations.push({ type: 'put', key: place, value });
    this.sides.set(nameOf(place), sides);
    return { digest: id(LABELS.stateNode, value), sum: left.sum + right.sum, count: left.count + right.count };
  }
}
