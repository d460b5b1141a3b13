/**
 * The proof of one account's part of a slice's rewards, and the whole list of all accounts (books rules): documents,
 * and checks of their internal consistency. Arithmetic and hashes alone cannot show that a document is true:
 * books-verdict.ts compares it with the pool's terms, its slice records and the ledger. Runs in a page unchanged.
 */
import { parseAddress } from '../address.ts';
import { parseAtoms } from '../amount.ts';
import { type Bytes, ByteWriter, compareBytes, equalBytes, fromHex, toHex } from '../bytes.ts';
import { ID_BYTES, id, LABELS } from '../crypto/identifier.ts';
import { EMPTY_ROOT, type SumBranch, type SumRoot, sumTree, verifySumBranch } from '../crypto/sum-tree.ts';
import { ProtocolError } from '../errors.ts';
import { NETWORKS, type NetworkName } from '../network.ts';
import { readWork } from './books-slice.ts';
import {
  divideWindow,
  feeOf,
  leavesOf,
  type SliceWork,
  type Window,
  weightOf,
  weightTotal,
  windowOf,
} from './pplns.ts';

export type BranchDocument = {
  readonly index: number;
  readonly siblings: readonly { readonly hash: string; readonly sum: string }[];
};

/** A neighbour in a tree, which shows that an account between two of them is not in it. */
export type NeighbourDocument = { readonly address: string; readonly value: string; readonly branch: BranchDocument };
export type AbsenceDocument = { readonly before: NeighbourDocument | null; readonly after: NeighbourDocument | null };

/** An account's leaf, or its absence. */
export type MembershipDocument =
  | { readonly value: string; readonly branch: BranchDocument }
  | { readonly absent: AbsenceDocument };

/** A block whose reward is divided here. The finder matters for solo only. */
export type ProofBlock = {
  readonly block_id: string;
  readonly reward: string;
  readonly transaction_id: string;
  readonly output_index: number;
  readonly finder: string;
};

export type ProofPart = {
  readonly slice: number;
  /** Leaves of the slice's tree. */
  readonly accounts: number;
  readonly total: string;
  readonly counted: string;
  readonly root: string;
};

/** The part that is the same in every proof of a slice's rewards. */
export type CreditHead = {
  readonly version: 2;
  /**
   * Identifies everything below except the account's own part: two miners with the same identifier see the same list.
   */
  readonly list_id: string;
  readonly network: NetworkName;
  readonly service: 'pplns' | 'solo';
  readonly slice: number;
  readonly blocks: readonly ProofBlock[];
  readonly reward: string;
  readonly fee_ppm: number;
  readonly fee: string;
  readonly credited: string;
  /** W of the slice, or of the slice that a new pool's first blocks are divided over. */
  readonly window_work: string;
  /** Leaves of the list's tree. */
  readonly credit_accounts: number;
  readonly credit_root: string;
};

export type PoolProof = CreditHead & {
  readonly address: string;
  readonly window: readonly (ProofPart & { readonly leaf: MembershipDocument })[];
  readonly credit: MembershipDocument;
};

export type PoolList = CreditHead & {
  readonly window: readonly (ProofPart & {
    readonly leaves: readonly { readonly address: string; readonly work: string }[];
  })[];
  readonly credits: readonly { readonly address: string; readonly amount: string }[];
};

/** A list as a pool's API gives it: its credits page by page, the leaves of its window with the slices that they belong to. */
export type PoolListPage = CreditHead & {
  readonly window: readonly ProofPart[];
  readonly credits: PoolList['credits'];
  readonly next_cursor?: string;
};

export const POOL_PROOF_REFUSALS = [
  'malformed',
  'list_id',
  'reward_sum',
  'fee',
  'window_order',
  'window_arithmetic',
  'slice_branch',
  'slice_root',
  'credit_branch',
  'credit_root',
  'credit_amount',
] as const;
export type PoolProofRefusal = (typeof POOL_PROOF_REFUSALS)[number];

export type PoolProofVerdict =
  | {
      readonly valid: true;
      readonly credit: bigint;
      readonly roots: readonly { readonly slice: number; readonly root: string }[];
    }
  | { readonly valid: false; readonly reason: PoolProofRefusal };

class Refused extends Error {
  readonly reason: PoolProofRefusal;

  constructor(reason: PoolProofRefusal) {
    super(reason);
    this.reason = reason;
  }
}

const insist = (holds: boolean, reason: PoolProofRefusal): void => {
  if (!holds) throw new Refused(reason);
};

const hash = (text: string): Bytes => fromHex(text, ID_BYTES);

function readBranch(document: BranchDocument): SumBranch {
  insist(Array.isArray(document.siblings) && document.siblings.length <= 64, 'malformed');
  return {
    index: document.index,
    siblings: document.siblings.map(({ hash: text, sum }) => ({ hash: hash(text), sum: readWork(sum) })),
  };
}

/** The value of an account under a root; zero if it is proven absent. */
function valueUnder(
  root: SumRoot,
  payload: Bytes,
  member: MembershipDocument,
  network: NetworkName,
  or: PoolProofRefusal,
): bigint {
  if ('branch' in member) {
    const value = readWork(member.value);
    insist(value > 0n && verifySumBranch(root, { key: payload, value }, readBranch(member.branch)), or);
    return value;
  }
  const { before, after } = member.absent;
  const indexOf = (neighbour: NeighbourDocument, side: -1 | 1): number => {
    const key = parseAddress(neighbour.address, network).payload;
    const branch = readBranch(neighbour.branch);
    insist(verifySumBranch(root, { key, value: readWork(neighbour.value) }, branch), or);
    insist(Math.sign(compareBytes(key, payload)) === side, or);
    return branch.index;
  };
  // Both are leaves of the same tree, and the root covers the count: there is nothing between neighbouring indexes.
  const left = before === null ? -1 : indexOf(before, -1);
  const right = after === null ? root.count : indexOf(after, 1);
  insist(right === left + 1, or);
  if (before === null && after === null) insist(equalBytes(root.hash, EMPTY_ROOT.hash) && root.sum === 0n, or);
  return 0n;
}

/** The same for readers with a root and one leaf; undefined if the proof is invalid. */
export function leafValue(
  root: SumRoot,
  payload: Bytes,
  member: MembershipDocument,
  network: NetworkName,
): bigint | undefined {
  try {
    return valueUnder(root, payload, member, network, 'slice_branch');
  } catch (error) {
    if (error instanceof Refused || error instanceof ProtocolError || error instanceof TypeError) return undefined;
    throw error;
  }
}

/**
 * The identifier of a credit list: everything that is the same for all readers. Throws for a document that has no such
 * form.
 */
export function poolListId(document: Omit<CreditHead, 'list_id'> & { readonly window: readonly ProofPart[] }): string {
  const writer = new ByteWriter(1024)
    .u32(NETWORKS[document.network].id)
    .text(document.service)
    .height(document.slice)
    .u32(document.blocks.length);
  for (const block of document.blocks)
    writer
      .raw(hash(block.block_id))
      .u64(parseAtoms(block.reward))
      .raw(hash(block.transaction_id))
      .u32(block.output_index)
      .raw(parseAddress(block.finder, document.network).payload);
  writer.u64(parseAtoms(document.reward)).u32(document.fee_ppm).u64(parseAtoms(document.fee));
  writer.u64(parseAtoms(document.credited)).text(document.window_work).u32(document.window.length);
  for (const part of document.window)
    writer.height(part.slice).u32(part.accounts).text(part.total).text(part.counted).raw(hash(part.root));
  return toHex(id(LABELS.booksList, writer.u32(document.credit_accounts).raw(hash(document.credit_root)).done()));
}

type Head = { readonly reward: bigint; readonly fee: bigint; readonly credited: bigint; readonly feePpm: bigint };

function checkHead(document: CreditHead & { readonly window: readonly ProofPart[] }): Head {
  insist(document.version === 2 && Array.isArray(document.blocks) && Array.isArray(document.window), 'malformed');
  insist(Number.isInteger(document.fee_ppm) && document.fee_ppm >= 0 && document.fee_ppm <= 1_000_000, 'malformed');
  insist(document.service === 'pplns' || document.service === 'solo', 'malformed');
  const rewards = document.blocks.map((block) => parseAtoms(block.reward));
  insist(new Set(document.blocks.map((block) => toHex(hash(block.block_id)))).size === rewards.length, 'malformed');
  for (const block of document.blocks) {
    hash(block.transaction_id);
    insist(Number.isInteger(block.output_index) && block.output_index >= 0, 'malformed');
    parseAddress(block.finder, document.network);
  }
  const sum = (values: readonly bigint[]) => values.reduce((total, value) => total + value, 0n);
  const [reward, fee, credited] = [document.reward, document.fee, document.credited].map(parseAtoms) as [
    bigint,
    bigint,
    bigint,
  ];
  const feePpm = BigInt(document.fee_ppm);
  insist(sum(rewards) === reward, 'reward_sum');
  // Solo blocks are divided one by one, and so is their fee.
  const due = document.service === 'solo' ? sum(rewards.map((each) => feeOf(each, feePpm))) : feeOf(reward, feePpm);
  insist(due === fee && reward - fee === credited, 'fee');
  insist(poolListId(document) === document.list_id, 'list_id');
  return { reward, fee, credited, feePpm };
}

/** Newest first, strictly before the block's own slice; only a new pool's first blocks reach forward, to one slice. */
function checkWindow(document: CreditHead & { readonly window: readonly ProofPart[] }): Window {
  insist(Number.isSafeInteger(document.slice) && document.slice >= 0 && Array.isArray(document.window), 'malformed');
  const parts = document.window.map((part) => {
    insist(Number.isSafeInteger(part.slice) && part.slice >= 0, 'malformed');
    return { slice: part.slice, total: readWork(part.total), counted: readWork(part.counted) };
  });
  if (document.service === 'solo') {
    insist(parts.length === 0, 'window_order');
    return { parts, counted: 0n };
  }
  insist(parts.length > 0, 'window_order');
  const isFirst = parts.length === 1 && (parts[0]?.slice ?? 0) >= document.slice;
  let before = isFirst ? Number.MAX_SAFE_INTEGER : document.slice;
  for (const { slice } of parts) {
    insist(slice < before, 'window_order');
    before = slice;
  }
  const windowWork = readWork(document.window_work);
  insist(windowWork > 0n, 'malformed');
  const window = windowOf(windowWork, parts);
  const isSame =
    window.parts.length === parts.length && window.parts.every((part, i) => part.counted === parts[i]?.counted);
  insist(isSame, 'window_arithmetic');
  return window;
}

function guarded(check: () => PoolProofVerdict): PoolProofVerdict {
  try {
    return check();
  } catch (error) {
    if (error instanceof Refused) return { valid: false, reason: error.reason };
    // A field of the wrong type causes a TypeError in the readers: that is also the document's fault.
    if (error instanceof ProtocolError || error instanceof TypeError || error instanceof RangeError)
      return { valid: false, reason: 'malformed' };
    throw error;
  }
}

const rootsOf = (window: readonly ProofPart[]) => window.map(({ slice, root }) => ({ slice, root }));

/**
 * Whether an account's credit follows from the slices and rewards that the proof names. The verdict gives the slice roots
 * it rests on: compare them with those the pool published at the time.
 */
export function checkPoolProof(document: PoolProof): PoolProofVerdict {
  return guarded(() => {
    const head = checkHead(document);
    const window = checkWindow(document);
    const { payload } = parseAddress(document.address, document.network);
    const work = new Map<number, bigint>();
    for (const part of document.window) {
      const root = { hash: hash(part.root), sum: readWork(part.total), count: part.accounts };
      work.set(part.slice, valueUnder(root, payload, part.leaf, document.network, 'slice_branch'));
    }
    const root = { hash: hash(document.credit_root), sum: head.credited, count: document.credit_accounts };
    const credit = valueUnder(root, payload, document.credit, document.network, 'credit_branch');
    insist(isDue(document, head, window, work, credit), 'credit_amount');
    return { valid: true, credit, roots: rootsOf(document.window) };
  });
}

/** The largest remainders get one atom more; only the whole list shows which accounts those are. */
function isDue(
  document: PoolProof,
  head: Head,
  window: Window,
  work: ReadonlyMap<number, bigint>,
  credit: bigint,
): boolean {
  if (document.service === 'solo') {
    const own = document.blocks.filter((block) => block.finder === document.address);
    const due = own.reduce((sum, block) => sum + BigInt(block.reward) - feeOf(BigInt(block.reward), head.feePpm), 0n);
    return credit === due;
  }
  const weight = weightOf(window, (slice) => work.get(slice) ?? 0n);
  const exact = head.credited * weight;
  const floor = exact / weightTotal(window);
  return credit === floor || (credit === floor + 1n && exact % weightTotal(window) !== 0n);
}

/** Whether the whole list follows from its slices: every root, the window, and every credit to the atom. */
export function checkPoolList(document: PoolList): PoolProofVerdict {
  return guarded(() => {
    const head = checkHead(document);
    const window = checkWindow(document);
    const key = (address: string) => toHex(parseAddress(address, document.network).payload);
    const slices = new Map<number, SliceWork>();
    for (const part of document.window) {
      const work = new Map(part.leaves.map((leaf) => [key(leaf.address), readWork(leaf.work)]));
      insist(work.size === part.leaves.length, 'malformed');
      const { root } = sumTree(leavesOf(work, fromHex));
      insist(part.accounts === root.count && root.sum === readWork(part.total), 'slice_root');
      insist(equalBytes(root.hash, hash(part.root)), 'slice_root');
      slices.set(part.slice, { slice: part.slice, total: root.sum, work });
    }
    const due = document.service === 'solo' ? soloCredits(document, head) : divideWindow(head.credited, window, slices);
    const credits = new Map(document.credits.map((credit) => [key(credit.address), parseAtoms(credit.amount)]));
    insist(credits.size === document.credits.length, 'malformed');
    for (const account of new Set([...due.keys(), ...credits.keys()]))
      insist((due.get(account) ?? 0n) === (credits.get(account) ?? 0n), 'credit_amount');
    const { root } = sumTree(leavesOf(credits, fromHex));
    insist(document.credit_accounts === root.count && root.sum === head.credited, 'credit_root');
    insist(equalBytes(root.hash, hash(document.credit_root)), 'credit_root');
    return { valid: true, credit: head.credited, roots: rootsOf(document.window) };
  });
}

function soloCredits(document: PoolList, { feePpm }: Head): Map<string, bigint> {
  const credits = new Map<string, bigint>();
  for (const block of document.blocks) {
    const account = toHex(parseAddress(block.finder, document.network).payload);
    const reward = BigInt(block.reward);
    credits.set(account, (credits.get(account) ?? 0n) + reward - feeOf(reward, feePpm));
  }
  return credits;
}

export const branchDocument = (branch: SumBranch): BranchDocument => ({
  index: branch.index,
  siblings: branch.siblings.map(({ hash: bytes, sum }) => ({ hash: toHex(bytes), sum: String(sum) })),
});
