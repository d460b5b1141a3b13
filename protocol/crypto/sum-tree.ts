/**
 * Merkle sum trees (books rule 1): a tree over (key, value) leaves in ascending order of key whose every node commits
 * the sum below it. The root also commits the number of leaves and the total. Without the number, a branch of a large
 * tree could be presented as one of a small tree, and a present account as absent.
 */
import { type Bytes, compareBytes, equalBytes } from '../bytes.ts';
import { ProtocolError } from '../errors.ts';
import { ID_BYTES, id, LABELS } from './identifier.ts';

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

function checkSum(sum: bigint): void {
  if (sum < 0n || sum >= MAX_SUM) throw new ProtocolError('out_of_range', `${sum} does not fit 128 bits`);
}

function putSum(at: number, sum: bigint): number {
  checkSum(sum);
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

/** The nodes of a row in two blocks of memory: 64 bytes a node, where an object for each took five times as much. */
class SumRow {
  readonly length: number;
  readonly #hashes: Uint8Array;
  /** Low and high half of each sum. */
  readonly #sums: BigUint64Array;

  constructor(length: number) {
    this.length = length;
    this.#hashes = new Uint8Array(length * ID_BYTES);
    this.#sums = new BigUint64Array(2 * length);
  }

  set(at: number, { hash, sum }: SumNode): void {
    checkSum(sum);
    this.#hashes.set(hash, at * ID_BYTES);
    this.#sums[2 * at] = sum & LOW;
    this.#sums[2 * at + 1] = sum >> 64n;
  }

  node(at: number): SumNode {
    const [low, high] = [this.#sums[2 * at] as bigint, this.#sums[2 * at + 1] as bigint];
    const hash = this.#hashes.slice(at * ID_BYTES, (at + 1) * ID_BYTES);
    return { hash, sum: high === 0n ? low : (high << 64n) | low };
  }
}

/** All rows of a tree, leaves first. Kept, it serves every branch of the tree without hashing again. */
export type SumTree = { readonly root: SumRoot; readonly rows: readonly SumRow[] };

/** Nodes between two pauses of `sumTreeSteps`: a millisecond or two of hashing. */
const STEP_NODES = 256;

/** Builds a tree with pauses, so that the caller's thread stays responsive. */
export function* sumTreeSteps(leaves: readonly SumLeaf[]): Generator<undefined, SumTree> {
  checkOrder(leaves);
  let row = new SumRow(leaves.length);
  if (leaves.length === 0) return { root: EMPTY_ROOT, rows: [row] };
  let made = 0;
  for (const [i, leaf] of leaves.entries()) {
    row.set(i, sumLeafNode(leaf));
    if (++made % STEP_NODES === 0) yield;
  }
  const rows = [row];
  while (row.length > 1) {
    const next = new SumRow(Math.ceil(row.length / 2));
    for (let i = 0; i < next.length; i++) {
      const left = row.node(2 * i);
      next.set(i, 2 * i + 1 < row.length ? parent(left, row.node(2 * i + 1)) : left);
      if (++made % STEP_NODES === 0) yield;
    }
    rows.push(next);
    row = next;
  }
  return { root: rootOf(leaves.length, row.node(0)), rows };
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
  const { count } = tree.root;
  if (!Number.isInteger(index) || index < 0 || index >= count)
    throw new ProtocolError('out_of_range', `no leaf ${index} in a tree of ${count}`);
  const siblings: SumNode[] = [];
  let at = index;
  for (const row of tree.rows.slice(0, -1)) {
    if ((at ^ 1) < row.length) siblings.push(row.node(at ^ 1));
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
