/**
 * Walks a committed set in the store from a place downward: nodes in pre-order, and subtrees of limited size in the
 * order of their keys. Reads records and changes nothing; the store must not change meanwhile.
 */
import type { Bytes } from '../../protocol/bytes.ts';
import { ID_BYTES } from '../../protocol/crypto/identifier.ts';
import type { ReadNode } from './trie.ts';
import { hasDigest, LEAF_ENTRIES, SIDE_BYTES, sideAt, type TrieRoot } from './trie-node.ts';
import { FIRST, placeOf, startsRecord, type UnpackedRecord, unpackRecord } from './trie-record.ts';
import type { EntryLayout } from './trie-update.ts';
import { DamagedRecordError } from './unread-record.ts';

/** A subtree: its hash and its place. */
export type Subtree = {
  readonly side: TrieRoot;
  readonly depth: number;
  readonly path: Bytes;
  /** The record that its first node is in, unless it begins one. */
  readonly record: UnpackedRecord | undefined;
  readonly place: number;
};

export const wholeSet = (root: TrieRoot): Subtree => ({
  side: root,
  depth: 0,
  path: new Uint8Array(ID_BYTES),
  record: undefined,
  place: FIRST,
});

export class SetWalk {
  readonly #layout: EntryLayout;
  readonly #read: ReadNode;

  constructor(layout: EntryLayout, read: ReadNode) {
    this.#layout = layout;
    this.#read = read;
  }

  /** 'node' for each node above the subtrees of at most `limit` entries, then those. An empty side is a subtree of none. */
  *subtrees(from: Subtree, limit: number): Generator<'node' | Subtree> {
    if (from.side.count <= limit) {
      yield from;
      return;
    }
    yield 'node';
    for (const bit of [0, 1]) yield* this.subtrees(this.#below(from, bit), limit);
  }

  /** All entries of a subtree in order. */
  entries(from: Subtree): Uint8Array {
    const leaves: Uint8Array[] = [];
    for (const step of this.subtrees(from, LEAF_ENTRIES))
      if (step !== 'node' && step.side.count > 0) leaves.push(this.#stored(step));
    return Buffer.concat(leaves);
  }

  #stored({ path, depth }: Subtree): Uint8Array {
    const key = placeOf(this.#layout.prefix, path, depth);
    const bytes = this.#read(key);
    if (bytes === undefined)
      throw new DamagedRecordError(`state record ${key.toString('hex')} is missing from the store`);
    return bytes;
  }

  #below(from: Subtree, bit: number): Subtree {
    const [record, place] = startsRecord(from.depth)
      ? [this.#load(from), FIRST]
      : [from.record as UnpackedRecord, from.place];
    const path = Uint8Array.from(from.path);
    if (bit === 1) path[from.depth >> 3] = (path[from.depth >> 3] as number) | (0x80 >> (from.depth & 7));
    const side = sideAt(record.bytes, record.offset(place) + bit * SIDE_BYTES);
    return { side, depth: from.depth + 1, path, record, place: 2 * place + bit };
  }

  #load(from: Subtree): UnpackedRecord {
    const record = unpackRecord(this.#stored(from));
    if (record === undefined || !hasDigest(record.bytes, 0, from.side.digest))
      throw new DamagedRecordError(
        `state record ${placeOf(this.#layout.prefix, from.path, from.depth).toString('hex')} is damaged`,
      );
    return record;
  }
}
