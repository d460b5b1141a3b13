/**
 * A node of a trie as bytes, as it is hashed (ledger rule 34): `digest 48 | u64 sum | u64 count` of its left side, then of its right. Figures are
 * read and added in halves of 32 bits: a bigint for every one costs more than the rest of a node.
 */
import type { Bytes } from '../../protocol/bytes.ts';
import { ID_BYTES, id, LABELS } from '../../protocol/crypto/identifier.ts';

export type TrieRoot = { readonly digest: Bytes; readonly sum: bigint; readonly count: number };

/** A subtree of up to this many entries is one leaf. */
export const LEAF_ENTRIES = 16;
/** Levels of a trie: keys have as many bits, one for each. */
export const MAX_DEPTH = 8 * ID_BYTES;
export const SIDE_BYTES = ID_BYTES + 8 + 8;
export const NODE_BYTES = 2 * SIDE_BYTES;
const SUM_AT = ID_BYTES;
const COUNT_AT = ID_BYTES + 8;
const HIGH = 0x1_0000_0000;

/** Left is 0, right is 1. */
export const bitOf = (key: Bytes, depth: number): number => ((key[depth >> 3] as number) >> (7 - (depth & 7))) & 1;

const u32At = (bytes: Uint8Array, at: number): number =>
  ((bytes[at] as number) |
    ((bytes[at + 1] as number) << 8) |
    ((bytes[at + 2] as number) << 16) |
    ((bytes[at + 3] as number) << 24)) >>>
  0;

function writeU32(bytes: Uint8Array, at: number, value: number): void {
  bytes[at] = value;
  bytes[at + 1] = value >>> 8;
  bytes[at + 2] = value >>> 16;
  bytes[at + 3] = value >>> 24;
}

export const countAt = (bytes: Uint8Array, side: number): number =>
  u32At(bytes, side + COUNT_AT) + u32At(bytes, side + COUNT_AT + 4) * HIGH;

const sumAt = (bytes: Uint8Array, side: number): bigint =>
  BigInt(u32At(bytes, side + SUM_AT)) | (BigInt(u32At(bytes, side + SUM_AT + 4)) << 32n);

/** A copy. */
export const sideAt = (bytes: Uint8Array, at: number): TrieRoot => ({
  digest: bytes.slice(at, at + ID_BYTES),
  sum: sumAt(bytes, at),
  count: countAt(bytes, at),
});

export function writeSide(bytes: Uint8Array, at: number, { digest, sum, count }: TrieRoot): void {
  bytes.set(digest, at);
  writeU32(bytes, at + SUM_AT, Number(sum & 0xffff_ffffn));
  writeU32(bytes, at + SUM_AT + 4, Number((sum >> 32n) & 0xffff_ffffn));
  writeU32(bytes, at + COUNT_AT, count % HIGH);
  writeU32(bytes, at + COUNT_AT + 4, Math.floor(count / HIGH));
}

/** Total of both sides of a node. */
function writeTotal(to: Uint8Array, at: number, from: Uint8Array, left: number): void {
  const right = left + SIDE_BYTES;
  const low = u32At(from, left) + u32At(from, right);
  const carried = low >= HIGH ? 1 : 0;
  writeU32(to, at, low % HIGH);
  writeU32(to, at + 4, (u32At(from, left + 4) + u32At(from, right + 4) + carried) % HIGH);
}

/** Writes into `to` the node at `node` of `from`, in the form of a side of its parent. */
export function writeNodeAsSide(to: Uint8Array, at: number, from: Uint8Array, node: number): void {
  to.set(id(LABELS.stateNode, from.subarray(node, node + NODE_BYTES)), at);
  writeTotal(to, at + SUM_AT, from, node + SUM_AT);
  writeTotal(to, at + COUNT_AT, from, node + COUNT_AT);
}

export function hasDigest(bytes: Uint8Array, at: number, digest: Bytes): boolean {
  for (let i = 0; i < ID_BYTES; i++) if (bytes[at + i] !== digest[i]) return false;
  return true;
}
