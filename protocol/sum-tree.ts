/**
 * Merkle sum trees (books rule 1): a tree over (key, value) leaves in ascending order of key whose every node commits
 * the sum below it. The root also commits the number of leaves and the total. Without the number, a branch of a large tree
 * can pass for one of a small tree, and an account that is there can be shown to be absent.
 */
import { type Bytes, compareBytes, equalBytes } from './bytes.ts';
import { ProtocolError } from './errors.ts';
import { id, LABELS } from './identifier.ts';

export type SumLeaf = { readonly key: Bytes; readonly value: bigint };
export type SumNode = { readonly hash: Bytes; readonly sum: bigint };
/** `hash` covers the count, the sum and the top node. */
export type SumRoot = { readonly hash: Bytes; readonly sum: bigint; readonly count: number };
export type SumBranch = { readonly index: number; readonly siblings: readonly SumNode[] };

const MAX_SUM = 1n << 128n;
const LOW = 0xffff_ffff_ffff_ffffn;
/** Reused buffer for the input of a node: a tree of 100,000 leaves has 200,000 of them. */
const place = new Uint8Array(512);
const view = new DataView(place.buffer);

function putSum(at: number, sum: bigint): number {
  if (sum < 0n || sum >= MAX_SUM) throw new ProtocolError('out_of_range', `${sum} does not fit 128 bits`);
  const isSmall = sum <= LOW;
  view.setBigUint64(at, isSmall ? sum : sum & LOW, true);
  view.setBigUint64(at + 8, isSmall ? 0n : sum >> 64n, true);
  return at + 16;
}

function put(at: number, bytes: Bytes): number {
  place.set(bytes, at);
  return at + bytes.length;
}

/** `u8 length | key | u128 value`. */
export function sumLeafNode({ key, value }: SumLeaf): SumNode {
  if (key.length > 255) throw new ProtocolError('too_long', `field of ${key.length} bytes, at most 255 allowed`);
  place[0] = key.length;
  return { hash: id(LABELS.sumLeaf, place.subarray(0, putSum(put(1, key), value))), sum: value };
}

/** `hash | u128 sum` of both. */
function parent(left: SumNode, right: SumNode): SumNode {
  const end = putSum(put(putSum(put(0, left.hash), left.sum), right.hash), right.sum);
  return { hash: id(LABELS.sumNode, place.subarray(0, end)), sum: left.sum + right.sum };
}

function checkOrder(leaves: readonly SumLeaf[]): void {
  for (let i = 1; i < leaves.length; i++)
    if (compareBytes((leaves[i - 1] as SumLeaf).key, (leaves[i] as SumLeaf).key) >= 0)
      throw new ProtocolError('not_canonical', 'leaves are in ascending order of key without repetition');
}

/** `u32 count | u128 sum | hash of the top node`. */
function rootOf(count: number, top: SumNode): SumRoot {
  view.setUint32(0, count, true);
  const end = put(putSum(4, top.sum), top.hash);
  return { hash: id(LABELS.booksRoot, place.subarray(0, end)), sum: top.sum, count };
}

/** All rows of a tree, leaves first. Kept, it serves every branch of the tree without hashing again. */
export type SumTree = { readonly root: SumRoot; readonly rows: readonly (readonly SumNode[])[] };

/** Nodes between two pauses of `sumTreeSteps`: a millisecond or two of hashing. */
const STEP_NODES = 256;

/** Builds a tree with pauses, so that the caller's thread stays responsive. */
export function* sumTreeSteps(leaves: readonly SumLeaf[]): Generator<undefined, SumTree> {
  checkOrder(leaves);
  if (leaves.length === 0) return { root: EMPTY_ROOT, rows: [[]] };
  let made = 0;
  let row: SumNode[] = [];
  for (const leaf of leaves) {
    row.push(sumLeafNode(leaf));
    if (++made % STEP_NODES === 0) yield;
  }
  const rows: SumNode[][] = [row];
  while (row.length > 1) {
    const next: SumNode[] = [];
    for (let i = 0; i < row.length; i += 2) {
      const left = row[i] as SumNode;
      const right = row[i + 1];
      next.push(right === undefined ? left : parent(left, right));
      if (++made % STEP_NODES === 0) yield;
    }
    rows.push(next);
    row = next;
  }
  return { root: rootOf(leaves.length, (rows.at(-1) as SumNode[])[0] as SumNode), rows };
}

export function sumTree(leaves: readonly SumLeaf[]): SumTree {
  const steps = sumTreeSteps(leaves);
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
  }
}

/** The root of a list without entries. */
export const EMPTY_ROOT: SumRoot = rootOf(0, { hash: id(LABELS.sumEmpty, new Uint8Array(0)), sum: 0n });

export function sumBranch(tree: SumTree, index: number): SumBranch {
  const count = (tree.rows[0] as readonly SumNode[]).length;
  if (!Number.isInteger(index) || index < 0 || index >= count)
    throw new ProtocolError('out_of_range', `no leaf ${index} in a tree of ${count}`);
  const siblings: SumNode[] = [];
  let at = index;
  for (const row of tree.rows.slice(0, -1)) {
    const sibling = row[at ^ 1];
    if (sibling !== undefined) siblings.push(sibling);
    at >>= 1;
  }
  return { index, siblings };
}

/** True when `leaf` is entry `branch.index` of the tree that `root` commits: count, sum and hash are all checked. */
export function verifySumBranch(root: SumRoot, leaf: SumLeaf, branch: SumBranch): boolean {
  const { count } = root;
  const { index, siblings } = branch;
  if (!Number.isInteger(count) || count > 0x7fff_ffff) return false;
  if (!Number.isInteger(index) || index < 0 || index >= count) return false;
  let node = sumLeafNode(leaf);
  let at = index;
  let used = 0;
  for (let width = count; width > 1; width = Math.ceil(width / 2)) {
    if ((at ^ 1) < width) {
      const sibling = siblings[used++];
      if (sibling === undefined || sibling.sum < 0n) return false;
      node = at % 2 === 0 ? parent(node, sibling) : parent(sibling, node);
    }
    at = Math.floor(at / 2);
  }
  return used === siblings.length && node.sum === root.sum && equalBytes(rootOf(count, node).hash, root.hash);
}
