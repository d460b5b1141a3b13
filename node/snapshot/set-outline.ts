/**
 * A committed set in pieces that can be verified separately (ledger rule 34). A subtree up to a maximum number of
 * entries is a piece; a larger one is divided at its node. The outline is the tree above the pieces in pre-order, `u8
 * 0` for a node, `u8 1 | digest 48 | u64 sum | u64 count` for a piece: hashed up, it must give the root. A piece is its
 * entries in order; what it hashes to follows from them alone.
 */
import { ByteReader, type Bytes, equalBytes } from '../../protocol/bytes.ts';
import {
  bitOf,
  LEAF_ENTRIES,
  MAX_DEPTH,
  NODE_BYTES,
  SIDE_BYTES,
  sideAt,
  type TrieRoot,
  writeNodeAsSide,
  writeSide,
} from '../ledger/trie-node.ts';
import { EMPTY_TRIE, type EntryLayout, leafSide } from '../ledger/trie-update.ts';
import type { Subtree } from '../ledger/trie-walk.ts';
import { falsePart } from './snapshot-error.ts';

export const MAX_PIECES = 65_536;
const NODE = 0;
const PIECE = 1;
/** Each piece, and no more nodes than pieces. */
export const MAX_OUTLINE_BYTES = MAX_PIECES * (1 + SIDE_BYTES + 1);

export type Piece = { readonly side: TrieRoot; readonly depth: number };

export function encodeOutline(steps: Iterable<'node' | Pick<Subtree, 'side'>>): Buffer {
  const parts: Uint8Array[] = [];
  for (const step of steps) {
    const part = new Uint8Array(step === 'node' ? 1 : 1 + SIDE_BYTES);
    if (step !== 'node') {
      part[0] = PIECE;
      writeSide(part, 1, step.side);
    }
    parts.push(part);
  }
  return Buffer.concat(parts);
}

const isSame = (a: TrieRoot, b: TrieRoot): boolean =>
  a.sum === b.sum && a.count === b.count && equalBytes(a.digest, b.digest);

/** The non-empty pieces of the set with this root. Throws if the outline does not match the root. */
export function readOutline(bytes: Bytes, root: TrieRoot, limit: number): readonly Piece[] {
  const reader = new ByteReader(bytes);
  const pieces: Piece[] = [];
  let sides = 0;
  const visit = (depth: number): TrieRoot => {
    const kind = reader.u8();
    if (kind === PIECE) {
      if (++sides > MAX_PIECES) throw falsePart(`a set has more than ${MAX_PIECES} pieces`);
      const side = sideAt(reader.view(SIDE_BYTES), 0);
      if (side.count > limit) throw falsePart('a piece is too large');
      if (side.count > 0) pieces.push({ side, depth });
      else if (!isSame(side, EMPTY_TRIE)) throw falsePart('a piece without entries is not empty');
      return side;
    }
    if (kind !== NODE || depth >= MAX_DEPTH) throw falsePart('an outline is no tree');
    const node = nodeOf(visit(depth + 1), visit(depth + 1));
    if (node.count <= limit) throw falsePart('a piece is divided that is small enough');
    return node;
  };
  const found = visit(0);
  reader.end();
  if (!isSame(found, root)) throw falsePart('the outline of a set does not lead to its root');
  return pieces;
}

function nodeOf(left: TrieRoot, right: TrieRoot): TrieRoot {
  const bytes = new Uint8Array(NODE_BYTES + SIDE_BYTES);
  writeSide(bytes, 0, left);
  writeSide(bytes, SIDE_BYTES, right);
  writeNodeAsSide(bytes, NODE_BYTES, bytes, 0);
  return sideAt(bytes, NODE_BYTES);
}

/** The hash of sorted entries as a subtree of this depth. */
export function sideOfEntries(layout: EntryLayout, entries: Bytes, depth: number): TrieRoot {
  const { entryBytes } = layout;
  const count = entries.length / entryBytes;
  if (count <= LEAF_ENTRIES) return leafSide(layout, entries);
  if (depth >= MAX_DEPTH) throw falsePart('too many entries have the same key');
  let low = 0;
  let high = count;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (bitOf(entries.subarray(middle * entryBytes), depth) === 0) low = middle + 1;
    else high = middle;
  }
  const cut = low * entryBytes;
  return nodeOf(
    sideOfEntries(layout, entries.subarray(0, cut), depth + 1),
    sideOfEntries(layout, entries.subarray(cut), depth + 1),
  );
}

/** Whether these are the entries of the piece. */
export const isPiece = (layout: EntryLayout, { side, depth }: Piece, entries: Bytes): boolean =>
  entries.length === side.count * layout.entryBytes && isSame(sideOfEntries(layout, entries, depth), side);
