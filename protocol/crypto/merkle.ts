/**
 * Merkle trees (ledger rule 9). Leaves and nodes have different labels, so neither can be mistaken for the other; a
 * node without a sibling moves up unchanged; the empty tree has a special root.
 */
import { type Bytes, equalBytes } from '../bytes.ts';
import { ProtocolError } from '../errors.ts';
import { ID_BYTES, id, LABELS } from './identifier.ts';

export const merkleLeaf = (bytes: Bytes): Uint8Array<ArrayBuffer> => id(LABELS.merkleLeaf, bytes);
/** Reused buffer for the input of a node. */
const pair = new Uint8Array(2 * ID_BYTES);

export function merkleParent(left: Bytes, right: Bytes): Uint8Array<ArrayBuffer> {
  pair.set(left);
  pair.set(right, ID_BYTES);
  return id(LABELS.merkleNode, pair);
}

function above(row: readonly Bytes[]): Bytes[] {
  const next: Bytes[] = [];
  for (let i = 0; i < row.length; i += 2) {
    const left = row[i] as Bytes;
    const right = row[i + 1];
    next.push(right === undefined ? left : merkleParent(left, right));
  }
  return next;
}

export const merkleRoot = (leaves: readonly Bytes[]): Bytes => merkleRootOfHashes(leaves.map(merkleLeaf));

/** The root over leaves that are hashed already: a node hashes each waiting transaction once, not once per template. */
export function merkleRootOfHashes(hashes: readonly Bytes[]): Bytes {
  if (hashes.length === 0) return id(LABELS.merkleEmpty, new Uint8Array(0));
  let row = hashes;
  while (row.length > 1) row = above(row);
  return row[0] as Bytes;
}

export type MerkleBranch = { readonly index: number; readonly count: number; readonly siblings: readonly Bytes[] };

export function merkleBranch(leaves: readonly Bytes[], index: number): MerkleBranch {
  if (!Number.isInteger(index) || index < 0 || index >= leaves.length)
    throw new ProtocolError('out_of_range', `no leaf ${index} in a tree of ${leaves.length}`);
  const siblings: Bytes[] = [];
  let row: readonly Bytes[] = leaves.map(merkleLeaf);
  for (let at = index; row.length > 1; at >>= 1) {
    const sibling = row[at ^ 1];
    if (sibling !== undefined) siblings.push(sibling);
    row = above(row);
  }
  return { index, count: leaves.length, siblings };
}

/** True when `leaf` is at the branch's index in a tree of its count with this root. */
export function verifyMerkleBranch(root: Bytes, leaf: Bytes, branch: MerkleBranch): boolean {
  const { index, count, siblings } = branch;
  if (!Number.isSafeInteger(count) || !Number.isInteger(index) || index < 0 || index >= count) return false;
  let node: Bytes = merkleLeaf(leaf);
  let at = index;
  let used = 0;
  for (let width = count; width > 1; width = Math.ceil(width / 2)) {
    if ((at ^ 1) < width) {
      const sibling = siblings[used++];
      if (sibling?.length !== ID_BYTES) return false;
      node = at % 2 === 0 ? merkleParent(node, sibling) : merkleParent(sibling, node);
    }
    at = Math.floor(at / 2);
  }
  return used === siblings.length && equalBytes(node, root);
}
