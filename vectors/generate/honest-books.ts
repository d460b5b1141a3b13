/**
 * An honest pool's books in memory, and every document that it would publish: vectors, and what a liar starts from. Nothing of pool/ is used, so
 * that the verifier is not tested against the code it checks.
 */
import { formatAddress } from '../../protocol/address.ts';
import { commitmentPayload, headAt, type LedgerCommitment } from '../../protocol/books/books-commitment.ts';
import {
  type BooksService,
  FIRST_CHAIN,
  type SliceRecord,
  sliceChain,
  windowWork,
} from '../../protocol/books/books-slice.ts';
import type { PublishedTerms } from '../../protocol/books/books-terms.ts';
import { type BooksEvidence, type ChainReward, rewardTransaction } from '../../protocol/books/books-verdict.ts';
import {
  branchDocument,
  type MembershipDocument,
  type PoolList,
  type PoolProof,
  type ProofBlock,
  poolListId,
} from '../../protocol/books/pool-proof.ts';
import { divideWindow, feeOf, leavesOf, type Window, windowOf } from '../../protocol/books/pplns.ts';
import { type Bytes, fromHex, toHex } from '../../protocol/bytes.ts';
import { EMPTY_ROOT, type SumTree, sumBranch, sumTree } from '../../protocol/crypto/sum-tree.ts';
import { targetOfWork, targetToBytes } from '../../protocol/ledger/target.ts';
import { pattern } from './pattern.ts';

export const SLICE_CUTS = 10;
export const NETWORK = 'development' as const;
const WINDOW_THOUSANDTHS = 2000;

/** Everything a pool decides: an honest one decides it by the rules, a liar changes some of it before the documents are made. */
export type Decisions = {
  firstSlice: number;
  slices: Map<string, bigint>[];
  blocks: { slice: number; service: BooksService; reward: bigint; finder: number }[];
  feePpm: number;
  /** The fee of slices before `until`, where it was another one. */
  earlierFee?: { readonly until: number; readonly ppm: number };
  /** What the chain paid; an honest pool lists exactly that. */
  readonly pays: { slice: number; service: BooksService; reward: bigint; finder: number }[];
};

export const payload = (miner: number): Bytes => Uint8Array.of(0, ...pattern(`miner ${miner}`, 48));
export const addressOf = (miner: number): string => formatAddress(payload(miner), NETWORK);
export const keyOf = (miner: number): string => toHex(payload(miner));
export const poolAddress = formatAddress(Uint8Array.of(0, ...pattern('pool', 48)), NETWORK);

export const blockIdOf = (slice: number, service: string, i: number): string =>
  toHex(pattern(`block ${slice} ${service} ${i}`, 48));

export function honestDecisions(slices = 20, miners = 7): Decisions {
  const work = Array.from({ length: slices }, (_, slice) => {
    const entries = Array.from({ length: miners }, (_, miner): [string, bigint] => [
      keyOf(miner),
      BigInt(1000 + 137 * miner + 31 * slice),
    ]);
    // A slice that nobody worked in, and miners that come and go.
    return new Map(slice === 9 ? [] : entries.filter((_, miner) => (miner + slice) % 4 !== 0));
  });
  const blocks = Array.from({ length: slices }, (_, slice) => [
    { slice: slice + 3, service: 'pplns' as const, reward: 1_000_003n + BigInt(slice), finder: slice % miners },
    { slice: slice + 3, service: 'pplns' as const, reward: 777_777n, finder: (slice + 1) % miners },
    { slice: slice + 3, service: 'solo' as const, reward: 5_000_001n, finder: (slice + 2) % miners },
  ]).flat();
  return { firstSlice: 3, slices: work, blocks, feePpm: 10_000, pays: structuredClone(blocks) };
}

const soloWork = (slice: number): string =>
  String(windowWork(targetOfWork(9_000n + BigInt(slice * 10)), BigInt(WINDOW_THOUSANDTHS), []));

const targetOf = (slice: number): string => toHex(targetToBytes(targetOfWork(9_000n + BigInt(slice * 10))));

export class Books {
  readonly decisions: Decisions;
  readonly trees: SumTree[];
  readonly records: SliceRecord[] = [];
  /** Nobody works for themselves here: the records of solo are of empty slices. */
  readonly solo: SliceRecord[] = [];

  constructor(decisions: Decisions) {
    this.decisions = decisions;
    this.trees = decisions.slices.map((work) => sumTree(leavesOf(work, fromHex)));
    let previous = FIRST_CHAIN;
    const totals: bigint[] = [];
    for (const [i, { root }] of this.trees.entries()) {
      const slice = decisions.firstSlice + i;
      const target = targetOf(slice);
      const body = {
        network: NETWORK,
        service: 'pplns' as const,
        slice,
        slice_cuts: SLICE_CUTS,
        window_thousandths: WINDOW_THOUSANDTHS,
        fee_ppm: slice < (decisions.earlierFee?.until ?? 0) ? (decisions.earlierFee?.ppm as number) : decisions.feePpm,
        target,
        window_work: String(
          windowWork(BigInt(targetOfWork(9_000n + BigInt(slice * 10))), BigInt(WINDOW_THOUSANDTHS), totals),
        ),
        accounts: root.count,
        total_work: String(root.sum),
        root: toHex(root.hash),
        previous,
      };
      const record = { ...body, chain: sliceChain(body) };
      this.records.push(record);
      previous = record.chain;
      totals.unshift(root.sum);
      const before = this.solo.at(-1)?.chain ?? FIRST_CHAIN;
      const empty = { accounts: 0, total_work: '0', root: toHex(EMPTY_ROOT.hash), previous: before };
      const alone = { ...body, ...empty, service: 'solo' as const, window_work: soloWork(slice) };
      this.solo.push({ ...alone, chain: sliceChain(alone) });
    }
  }

  get #newest(): number {
    return (this.records.at(-1) as SliceRecord).slice;
  }

  /** What the ledger has of a payout that was made when `slice` was the newest closed one. */
  commitment(slice: number, number: number): LedgerCommitment {
    const at = this.#index(slice);
    const head = headAt({ pplns: this.records[at]?.chain as string, solo: this.solo[at]?.chain as string });
    return {
      transaction_id: toHex(pattern(`payout ${number}`, 48)),
      height: (slice + 1) * SLICE_CUTS + number,
      payload_hex: commitmentPayload({ number, slice, head }),
    };
  }

  #index(slice: number): number {
    return slice - this.decisions.firstSlice;
  }

  window(slice: number): { window: Window; windowWork: string } {
    const before = this.records
      .filter((record) => record.slice < slice)
      .reverse()
      .map((record) => ({ slice: record.slice, total: BigInt(record.total_work) }));
    const own = this.records[this.#index(slice)] as SliceRecord;
    const window = windowOf(BigInt(own.window_work), before);
    if (window.parts.length > 0) return { window, windowWork: own.window_work };
    const first = this.records.find((record) => record.slice >= slice && record.total_work !== '0') as SliceRecord;
    const parts = [{ slice: first.slice, total: BigInt(first.total_work) }];
    return { window: windowOf(BigInt(first.window_work), parts), windowWork: first.window_work };
  }

  blocks(slice: number, service: BooksService): ProofBlock[] {
    return this.decisions.blocks
      .filter((block) => block.slice === slice && block.service === service)
      .map((block, i) => {
        const blockId = blockIdOf(slice, service, i);
        const reward = String(block.reward);
        const named = { block_id: blockId, transaction_id: rewardTransaction(blockId), output_index: 0 };
        return { ...named, reward, finder: addressOf(block.finder) };
      })
      .sort((a, b) => (a.block_id < b.block_id ? -1 : 1));
  }

  list(slice: number): PoolList {
    const { window, windowWork: w } = this.window(slice);
    const blocks = this.blocks(slice, 'pplns');
    const reward = blocks.reduce((sum, block) => sum + BigInt(block.reward), 0n);
    const fee = feeOf(reward, BigInt(this.decisions.feePpm));
    const slices = new Map(
      this.records.map((record, i) => {
        const work = this.decisions.slices[i] as Map<string, bigint>;
        return [record.slice, { slice: record.slice, total: BigInt(record.total_work), work }];
      }),
    );
    const credits = divideWindow(reward - fee, window, slices);
    const { root } = sumTree(leavesOf(credits, fromHex));
    const address = (key: string) => formatAddress(fromHex(key), NETWORK);
    const head = {
      version: 2 as const,
      network: NETWORK,
      service: 'pplns' as const,
      slice,
      blocks,
      reward: String(reward),
      fee_ppm: this.decisions.feePpm,
      fee: String(fee),
      credited: String(reward - fee),
      window_work: w,
      credit_accounts: root.count,
      credit_root: toHex(root.hash),
    };
    const parts = window.parts.map((part) => {
      const i = this.#index(part.slice);
      const record = this.records[i] as SliceRecord;
      const leaves = leavesOf(this.decisions.slices[i] as Map<string, bigint>, fromHex);
      return {
        slice: part.slice,
        accounts: record.accounts,
        total: String(part.total),
        counted: String(part.counted),
        root: record.root,
        leaves: leaves.map((leaf) => ({ address: address(toHex(leaf.key)), work: String(leaf.value) })),
      };
    });
    return {
      ...head,
      list_id: poolListId({ ...head, window: parts }),
      window: parts,
      credits: [...credits]
        .filter(([, amount]) => amount > 0n)
        .map(([key, amount]) => ({ address: address(key), amount: String(amount) })),
    };
  }

  proof(slice: number, miner: number): PoolProof {
    const { credits, ...list } = this.list(slice);
    const tree = sumTree(
      leavesOf(new Map(credits.map((credit) => [keyOfAddress(credit.address), BigInt(credit.amount)])), fromHex),
    );
    const amounts = new Map(credits.map((credit) => [keyOfAddress(credit.address), BigInt(credit.amount)]));
    return {
      ...list,
      address: addressOf(miner),
      window: list.window.map(({ leaves: _, ...part }) => ({
        ...part,
        leaf: membership(
          this.trees[this.#index(part.slice)] as SumTree,
          this.decisions.slices[this.#index(part.slice)] as never,
          miner,
        ),
      })),
      credit: membership(tree, amounts, miner),
    };
  }

  evidence(slice: number): BooksEvidence {
    const rewards = new Map<string, ChainReward>();
    for (const service of ['pplns', 'solo'] as const)
      for (const [i, pay] of this.decisions.pays
        .filter((each) => each.slice === slice && each.service === service)
        .entries())
        rewards.set(rewardTransaction(blockIdOf(slice, service, i)), {
          amount: String(pay.reward),
          height: slice * SLICE_CUTS + 97,
        });
    const from = {
      from_slice: this.decisions.firstSlice,
      slice_cuts: SLICE_CUTS,
      window_thousandths: WINDOW_THOUSANDTHS,
      fee_ppm: 10_000,
    };
    const terms: PublishedTerms = { network: NETWORK, address: poolAddress, terms: { pplns: [from], solo: [from] } };
    return {
      terms,
      records: this.records,
      targets: new Map(this.records.map((record) => [record.slice * SLICE_CUTS, targetOf(record.slice)])),
      rewards,
      lateRewards: new Map(),
      otherBlocks: this.blocks(slice, 'solo').map((block) => block.block_id),
      movedBlocks: [],
      blockServices: new Map(
        (['pplns', 'solo'] as const).flatMap((service) =>
          this.blocks(slice, service).map((block) => [block.block_id, service] as const),
        ),
      ),
      commitments: [this.commitment(Math.min(slice + 1, this.#newest), 1), this.commitment(this.#newest, 2)],
      otherRecords: this.solo,
      poolAddress,
    };
  }
}

const KEYS = new Map(Array.from({ length: 64 }, (_, miner) => [addressOf(miner), keyOf(miner)]));
const keyOfAddress = (address: string): string => KEYS.get(address) as string;

export function membership(tree: SumTree, values: ReadonlyMap<string, bigint>, miner: number): MembershipDocument {
  const leaves = leavesOf(values, fromHex);
  const key = keyOf(miner);
  const at = leaves.findIndex((leaf) => toHex(leaf.key) === key);
  if (at !== -1) return { value: String(leaves[at]?.value), branch: branchDocument(sumBranch(tree, at)) };
  const right = leaves.findIndex((leaf) => toHex(leaf.key) > key);
  const neighbour = (i: number) => {
    const leaf = leaves[i];
    if (leaf === undefined) return null;
    return {
      address: formatAddress(leaf.key, NETWORK),
      value: String(leaf.value),
      branch: branchDocument(sumBranch(tree, i)),
    };
  };
  const after = right === -1 ? leaves.length : right;
  return { absent: { before: neighbour(after - 1), after: neighbour(after) } };
}
