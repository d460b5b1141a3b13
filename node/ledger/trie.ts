/**
 * The committed sets of the ledger (ledger rule 34): a binary trie over fixed-size entries, ordered by their leading key bits.
 * A subtree of at most 16 entries is one leaf, a larger one is a node with two sides; each is summed and counted. The shape follows from
 * the contents alone, so equal sets have equal roots whatever their history, and an update touches about log2(n / 16)
 * nodes. Nodes live in the store by their place, four levels in one record (trie-record.ts); updates are collected and written with the cut (trie-update.ts).
 */
import { type Bytes, compareBytes } from '../../protocol/bytes.ts';
import { ROOT_PLACE, TrieMemory } from './trie-memory.ts';
import { bitOf, countAt, hasDigest, LEAF_ENTRIES, SIDE_BYTES, sideAt, type TrieRoot } from './trie-node.ts';
import { FIRST, placeOf, startsRecord, type UnpackedRecord, unpackRecord } from './trie-record.ts';
import { type EntryLayout, NOTHING, type TrieChange, type TrieSource, TrieUpdate } from './trie-update.ts';
import { DamagedRecordError } from './unread-record.ts';

export { LEAF_ENTRIES, type TrieRoot } from './trie-node.ts';
export { EMPTY_TRIE, type EntryLayout, type TrieChange, TrieUpdate } from './trie-update.ts';

export type ReadNode = (key: Bytes) => Uint8Array | undefined;
/** Several at once, beside the thread. */
export type ReadMany = (keys: Buffer[]) => Promise<readonly (Uint8Array | undefined)[]>;

/** All nodes of a set of five million entries, 128 bytes each: a read from the store takes longer than everything else about a node. */
const CACHED_NODES = 524_288;
/** A leaf that is read at admission is read again when the cut executes, and again when the cut changes it. */
const CACHED_LEAVES = 16_384;

export type TrieLimits = { readonly nodes: number; readonly leaves: number };

export class Trie {
  readonly #layout: EntryLayout;
  readonly #read: ReadNode;
  readonly #limits: TrieLimits;
  readonly #memory: TrieMemory;
  /** The last update, not in the store yet. The places it changes stay loaded, so readers see the previous state. */
  #open: TrieUpdate | undefined;
  /** Incremented when the store was written and when memory was cleared: results read before are then outdated. */
  #age = 0;
  readonly #source: TrieSource;

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
      slot: (place, key, depth, digest, at) => this.#slot(place, key, depth, digest, at),
      leaf: (place, key, depth) => this.#leaf(place, key, depth),
    };
  }

  #stored(key: Bytes, depth: number): Uint8Array {
    const place = placeOf(this.#layout.prefix, key, depth);
    const bytes = this.#read(place);
    if (bytes === undefined)
      throw new DamagedRecordError(`state record ${place.toString('hex')} is missing from the store`);
    return bytes;
  }

  /** The slot of the node at a place, which key and depth lead to; its digest is at `at` of `digest`. Loads the whole record that begins there. */
  #slot(place: number, key: Bytes, depth: number, digest: Uint8Array, at: number): number {
    const loaded = this.#memory.slotAt(place);
    if (loaded !== 0) return loaded;
    if (!startsRecord(depth)) throw new Error('a state node is in memory without the rest of its record');
    const record = unpackRecord(this.#stored(key, depth));
    if (record === undefined || !hasDigest(record.bytes, 0, digest.subarray(at)))
      throw new DamagedRecordError(
        `state record ${placeOf(this.#layout.prefix, key, depth).toString('hex')} is damaged`,
      );
    return this.#keep(record, FIRST, place);
  }

  #keep(record: UnpackedRecord, node: number, place: number): number {
    const slot = this.#memory.putNode(place, record.bytes, record.offset(node));
    for (const bit of [0, 1]) if (record.has(2 * node + bit)) this.#keep(record, 2 * node + bit, 2 * slot + bit);
    return slot;
  }

  #leaf(place: number, key: Bytes, depth: number): Uint8Array {
    const known = this.#memory.leafAt(place) ?? this.#open?.before.get(place);
    if (known !== undefined) return known;
    const entries = this.#stored(key, depth);
    this.#memory.cacheLeaf(place, entries);
    return entries;
  }

  /** Drops all of it at once: tracking which nodes were used last would cost more than reading them again. */
  #bound(): void {
    if (this.#memory.nodes <= this.#limits.nodes || this.#open !== undefined) return;
    this.#memory.clear();
    this.#age++;
  }

  /** Descends to the leaf that contains the key, or would. */
  #descend(root: TrieRoot, key: Bytes, passing?: (piece: Uint8Array, node: number, bit: number) => void): Uint8Array {
    this.#bound();
    const { count, place, depth } = this.#find(root, key, passing);
    return count === 0 ? NOTHING : this.#leaf(place, key, depth);
  }

  #find(root: TrieRoot, key: Bytes, passing?: (piece: Uint8Array, node: number, bit: number) => void) {
    let { count } = root;
    let place = ROOT_PLACE;
    let depth = 0;
    let digest = root.digest;
    let at = 0;
    while (count > LEAF_ENTRIES) {
      const slot = this.#slot(place, key, depth, digest, at);
      const piece = this.#memory.piece(slot);
      const node = this.#memory.offset(slot);
      const bit = bitOf(key, depth);
      passing?.(piece, node, bit);
      digest = piece;
      at = node + bit * SIDE_BYTES;
      count = countAt(piece, at);
      place = 2 * slot + bit;
      depth++;
    }
    return { count, place, depth };
  }

  /**
   * Preloads the leaves of these keys for a cut that will change them: an asynchronous read costs this thread hardly
   * anything. Leaves not loaded in time are read when needed.
   */
  async readAhead(root: TrieRoot, keys: readonly Bytes[], read: ReadMany): Promise<void> {
    this.#bound();
    const age = this.#age;
    const wanted = new Map<number, Buffer>();
    for (const key of keys) {
      const { count, place, depth } = this.#find(root, key);
      if (count > 0 && this.#memory.leafAt(place) === undefined)
        wanted.set(place, placeOf(this.#layout.prefix, key, depth));
    }
    if (wanted.size === 0) return;
    const leaves = await read([...wanted.values()]);
    // An open update may have been written meanwhile, completely or in part.
    if (this.#age !== age || this.#open !== undefined) return;
    let i = 0;
    for (const place of wanted.keys()) {
      const leaf = leaves[i++];
      if (leaf !== undefined && this.#memory.leafAt(place) === undefined) this.#memory.cacheLeaf(place, leaf);
    }
  }

  /** The leaf that contains the key, or would, and the other sides on the path. */
  path(root: TrieRoot, key: Bytes): { leaf: Uint8Array; siblings: { right: boolean; side: TrieRoot }[] } {
    const siblings: { right: boolean; side: TrieRoot }[] = [];
    const leaf = this.#descend(root, key, (piece, node, bit) =>
      siblings.push({ right: bit === 1, side: sideAt(piece, node + (1 - bit) * SIDE_BYTES) }),
    );
    return { leaf, siblings };
  }

  /** The entry under a whole key (`keyBytes` long). */
  get(root: TrieRoot, key: Bytes): Uint8Array | undefined {
    return findEntry(this.#layout, this.#descend(root, key), key);
  }

  /**
   * The root after the changes, and what must be written for it. Removed keys must be present, added keys must not:
   * anything else is a bug in the ledger. An update must be in the store before the next one is made, or be dropped.
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
    this.#age++;
    update.settle();
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
