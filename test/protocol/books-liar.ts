/** What a lying pool starts from, and the tools to lie consistently: documents are made anew, names and hashes fitted to the lie. */
import { type SliceRecord, sliceChain } from '../../protocol/books/books-slice.ts';
import type { BooksEvidence } from '../../protocol/books/books-verdict.ts';
import { type PoolList, type PoolProof, poolListId } from '../../protocol/books/pool-proof.ts';
import { divideWindow, leavesOf, windowOf } from '../../protocol/books/pplns.ts';
import { fromHex, toHex } from '../../protocol/bytes.ts';
import { sumTree } from '../../protocol/crypto/sum-tree.ts';
import {
  addressOf,
  Books,
  type Decisions,
  honestDecisions,
  keyOf,
  membership,
} from '../../vectors/generate/honest-books.ts';

export type Writable<T> = {
  -readonly [K in keyof T]: T[K] extends (infer E)[] | readonly (infer E)[] ? Writable<E>[] : Writable<T[K]>;
};
export const copy = <T>(value: T): Writable<T> => structuredClone(value) as Writable<T>;

export const honest = new Books(honestDecisions());
export const SLICE = 18;
export const MINERS = 7;
/** Worked in the newest slice of the window, and is between two others in its tree. */
export const VICTIM = (() => {
  const keys = [...honest.decisions.slices[SLICE - 1 - 3]!.keys()].sort();
  return [...Array(MINERS).keys()].find((miner) => keys.indexOf(keyOf(miner)) === 2)!;
})();

/** The same document with its name made anew, as a liar would. */
export const renamed = <T extends PoolProof | PoolList>(document: T): T => ({
  ...document,
  list_id: poolListId(document as never),
});

export function lyingBooks(change: (decisions: Decisions) => void): Books {
  const decisions = honestDecisions();
  change(decisions);
  return new Books(decisions);
}

/** A proof over a window of the liar's choice, consistent in itself. */
export function proofOver(
  books: Books,
  parts: { slice: number; total: bigint }[],
  w: bigint,
  miner = VICTIM,
): PoolProof {
  const base = books.proof(SLICE, miner);
  const window = windowOf(w, parts);
  const at = (slice: number) => slice - books.decisions.firstSlice;
  const slices = new Map(
    books.records.map((record, i) => [
      record.slice,
      { slice: record.slice, total: BigInt(record.total_work), work: books.decisions.slices[i]! },
    ]),
  );
  const credits = divideWindow(BigInt(base.credited), window, slices);
  const tree = sumTree(leavesOf(credits, fromHex));
  return renamed({
    ...base,
    window_work: String(w),
    window: window.parts.map((part) => ({
      slice: part.slice,
      accounts: books.records[at(part.slice)]!.accounts,
      total: String(part.total),
      counted: String(part.counted),
      root: books.records[at(part.slice)]!.root,
      leaf: membership(books.trees[at(part.slice)]!, books.decisions.slices[at(part.slice)]!, miner),
    })),
    credit_accounts: tree.root.count,
    credit_root: toHex(tree.root.hash),
    credit: membership(tree, credits, miner),
  });
}

export const before = (books: Books) =>
  books.records
    .filter((record) => record.slice < SLICE)
    .reverse()
    .map((record) => ({ slice: record.slice, total: BigInt(record.total_work) }));

export const rechained = (records: readonly SliceRecord[]): SliceRecord[] => {
  let previous = records[0]!.previous;
  return records.map((record) => {
    const joined = { ...record, previous };
    previous = sliceChain(joined);
    return { ...joined, chain: previous };
  });
};

export type Lie = { readonly proof: PoolProof; readonly evidence: BooksEvidence };
export const proofLie = (change: (proof: Writable<PoolProof>) => void): Lie => {
  const proof = copy(honest.proof(SLICE, VICTIM));
  change(proof);
  return { proof: renamed(proof as PoolProof), evidence: honest.evidence(SLICE) };
};
export const recordLie = (change: (records: Writable<SliceRecord>[]) => Writable<SliceRecord>[] | undefined): Lie => {
  const records = copy(honest.records) as Writable<SliceRecord>[];
  const changed = (change(records) ?? records) as SliceRecord[];
  return { proof: honest.proof(SLICE, VICTIM), evidence: { ...honest.evidence(SLICE), records: changed } };
};
export const booksLie = (change: (decisions: Decisions) => void, isRecordsToo: boolean): Lie => {
  const books = lyingBooks(change);
  const evidence = honest.evidence(SLICE);
  const proof = books.proof(SLICE, VICTIM);
  return { proof, evidence: isRecordsToo ? { ...evidence, records: books.records } : evidence };
};
export const own = (books: Books) => books.records.find((record) => record.slice === SLICE)!;
export const part = (proof: Writable<PoolProof>, i = 0) => proof.window[i]!;
export const branchOf = (leaf: unknown) =>
  (leaf as { branch: { index: number; siblings: { hash: string; sum: string }[] } }).branch;
export const absenceOf = (of: number, left: number | null, right: number | null) => {
  const tree = honest.trees[SLICE - 1 - 3]!;
  const work = honest.decisions.slices[SLICE - 1 - 3]!;
  const miners = [...Array(MINERS).keys()]
    .filter((n) => work.has(keyOf(n)) && n !== of)
    .sort((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1));
  const neighbour = (n: number | null) =>
    n === null ? null : { address: addressOf(n), ...(membership(tree, work, n) as { value: string; branch: never }) };
  const smaller = miners.filter((n) => keyOf(n) < keyOf(of));
  const larger = miners.filter((n) => keyOf(n) > keyOf(of));
  return {
    absent: {
      before: left === null ? null : neighbour(smaller.at(left) ?? null),
      after: right === null ? null : neighbour(larger.at(right) ?? null),
    },
  };
};
