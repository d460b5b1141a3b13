/**
 * Storage format of a trie: a leaf is a record, and so are four levels of nodes together. A change of a large set
 * touches a path of nodes that no other change touches, and a record for each of them would cost more than its hash. Of
 * the nodes only the sides at their lower edge are stored: `u16 shape | sides from left to right, each digest 48 | u64
 * sum | u64 count`. Bit p of the shape says that place p of the record is a node: the first is 1, below p are 2p and 2p
 * + 1. The nodes are hashed again when a record is read, so damage is detected.
 */
import type { Bytes } from '../../protocol/bytes.ts';
import { NODE_BYTES, SIDE_BYTES, writeNodeAsSide } from './trie-node.ts';

const LEVELS = 4;
const PLACES = 2 ** LEVELS;
const SHAPE_BYTES = 2;
export const FIRST = 1;

/** Whether a node of this depth begins a record. */
export const startsRecord = (depth: number): boolean => depth % LEVELS === 0;

/** Whether this place of a record is below its last level: a side is stored there, and another record begins. */
const isBelow = (place: number): boolean => place >= PLACES;

/** `prefix | u16 depth | the first depth bits of the path`: the key in the store. */
export function placeOf(prefix: number, key: Bytes, depth: number): Buffer {
  const bytes = (depth + 7) >> 3;
  const place = Buffer.allocUnsafe(3 + bytes);
  place[0] = prefix;
  place.writeUInt16BE(depth, 1);
  for (let i = 0; i < bytes; i++) place[3 + i] = key[i] as number;
  if (depth & 7) place[2 + bytes] = (place[2 + bytes] as number) & (0xff << (8 - (depth & 7)));
  return place;
}

/** Gives `packRecord` its nodes: the node on a side of a node, undefined for a leaf or an empty side. */
export interface NodeWalk<T> {
  bytes(node: T): Uint8Array;
  offset(node: T): number;
  below(node: T, bit: number): T | undefined;
}

const packed = new Uint8Array(SHAPE_BYTES + PLACES * SIDE_BYTES);

/** The record that begins with a node. */
export function packRecord<T>(first: T, walk: NodeWalk<T>): Uint8Array {
  let shape = 0;
  let used = SHAPE_BYTES;
  const visit = (node: T, place: number): void => {
    shape |= 1 << place;
    for (let bit = 0; bit < 2; bit++) {
      const below = isBelow(2 * place + bit) ? undefined : walk.below(node, bit);
      if (below !== undefined) {
        visit(below, 2 * place + bit);
        continue;
      }
      const bytes = walk.bytes(node);
      const at = walk.offset(node) + bit * SIDE_BYTES;
      for (let i = 0; i < SIDE_BYTES; i++) packed[used + i] = bytes[at + i] as number;
      used += SIDE_BYTES;
    }
  };
  visit(first, FIRST);
  packed[0] = shape;
  packed[1] = shape >> 8;
  return packed.slice(0, used);
}

/** The nodes of a record by place. */
export type UnpackedRecord = {
  /** At 0 the record's first node as a side of the one above, then node p at `offset(p)`. */
  readonly bytes: Uint8Array;
  has(place: number): boolean;
  offset(place: number): number;
};

/** Undefined if the bytes are not a valid record. */
export function unpackRecord(record: Uint8Array): UnpackedRecord | undefined {
  const shape = (record[0] as number) | ((record[1] as number) << 8);
  const has = (place: number): boolean => !isBelow(place) && ((shape >> place) & 1) === 1;
  const offset = (place: number): number => place * NODE_BYTES;
  const bytes = new Uint8Array(PLACES * NODE_BYTES);
  let used = SHAPE_BYTES;
  let seen = 0;
  const visit = (place: number, at: number): void => {
    if (!has(place)) {
      bytes.set(record.subarray(used, used + SIDE_BYTES), at);
      used += SIDE_BYTES;
      return;
    }
    seen |= 1 << place;
    for (let bit = 0; bit < 2; bit++) visit(2 * place + bit, offset(place) + bit * SIDE_BYTES);
    writeNodeAsSide(bytes, at, bytes, offset(place));
  };
  if (!has(FIRST)) return undefined;
  visit(FIRST, 0);
  return used === record.length && seen === shape ? { bytes, has, offset } : undefined;
}
