/**
 * Gathers what a proof is compared with (books rule 13): from the pool its terms, slice records and the blocks of both services;
 * from a node of the checker's choice the target and the rewards. Reads come in as calls, so it runs in a page, a miner and a
 * program alike. What cannot be had is null: the verdict then says what was not checked.
 */
import type { ApiClient } from './api/client.ts';
import { type BooksService, readWork, type SliceRecord, WINDOW_SLICES } from './books-slice.ts';
import {
  type BooksEvidence,
  type ChainReward,
  type PublishedTerms,
  rewardTransaction,
  termsAt,
} from './books-verdict.ts';
import { ProtocolError } from './errors.ts';
import { REGISTRATION_WINDOW } from './network.ts';
import type { CreditHead, ProofPart } from './pool-proof.ts';

export type BooksSources = {
  /** Reads `api/v1/PATH` of the pool. */
  pool(path: string): Promise<unknown>;
  /** A node that the checker trusts; null when there is none. */
  readonly node: Pick<ApiClient, 'cuts' | 'addressChanges' | 'block'> | null;
};

type Asked = Pick<CreditHead, 'service' | 'slice' | 'blocks' | 'window_work'> & {
  readonly window: readonly ProofPart[];
};

/** 200 records a page: a pool that answers more pages than this wastes the reader's time. */
const MAX_PAGES = 50;
const PAGE_RECORDS = 200;
const PAGE_CHANGES = 1024;
const MAX_CHANGES_PAGES = 200;

const orNull = async <T>(work: Promise<T>): Promise<T | null> => {
  try {
    return await work;
  } catch (error) {
    if (error instanceof ProtocolError) throw error;
    return null;
  }
};

function insistShape(holds: boolean, what: string): void {
  if (!holds) throw new ProtocolError('out_of_range', `the pool's ${what} have no such form`);
}

async function readTerms(sources: BooksSources): Promise<PublishedTerms> {
  const terms = (await sources.pool('terms')) as PublishedTerms;
  insistShape(typeof terms?.address === 'string' && Array.isArray(terms.terms?.pplns), 'terms');
  insistShape(Array.isArray(terms.terms.solo), 'terms');
  return terms;
}

/** Records from the newest back, until the window and W can both be recomputed. Ascending. */
async function readRecords(asked: Asked, sources: BooksSources): Promise<SliceRecord[]> {
  const newest = Math.max(asked.slice, ...asked.window.map((part) => part.slice));
  const oldest = Math.min(asked.slice, ...asked.window.map((part) => part.slice));
  const records: SliceRecord[] = [];
  let cursor = `${newest + 1}-0`;
  for (let page = 0; page < MAX_PAGES; page++) {
    const answer = (await sources.pool(
      `slices/${asked.service}?limit=${PAGE_RECORDS}&cursor=${encodeURIComponent(cursor)}`,
    )) as { slices: SliceRecord[]; next_cursor?: string };
    insistShape(Array.isArray(answer?.slices), 'slice records');
    records.push(...answer.slices);
    const worked = records.filter((record) => record.slice < oldest && readWork(record.total_work) > 0n);
    if (answer.next_cursor === undefined || worked.length > WINDOW_SLICES) break;
    cursor = String(answer.next_cursor);
  }
  return records.reverse();
}

async function readBlocks(service: BooksService, slice: number, sources: BooksSources) {
  const answer = (await sources.pool(`slices/${service}/${slice}/blocks`)) as {
    blocks: { block_id: string; credited_with: number }[];
  };
  insistShape(Array.isArray(answer?.blocks), 'blocks');
  return answer.blocks;
}

/** Blocks of the slice that this list need not name: those of the other service, and those that a later list credits. */
async function readOtherBlocks(asked: Asked, sources: BooksSources) {
  const other = asked.service === 'pplns' ? 'solo' : 'pplns';
  const others = await readBlocks(other, asked.slice, sources);
  const own = await readBlocks(asked.service, asked.slice, sources);
  const idOf = (block: { readonly block_id: string }) => block.block_id;
  return {
    otherBlocks: others.map(idOf),
    movedBlocks: own.filter((block) => block.credited_with > asked.slice).map(idOf),
  };
}

type Node = NonNullable<BooksSources['node']>;

/** Rewards that the pool's address got in the cuts that pay a slice's anchors. */
async function readRewards(
  address: string,
  first: number,
  last: number,
  node: Node,
): Promise<Map<string, ChainReward>> {
  const rewards = new Map<string, ChainReward>();
  let cursor: string | undefined;
  for (let page = 0; page < MAX_CHANGES_PAGES; page++) {
    const answer = await node.addressChanges({
      addresses: [address],
      after_height: first - 1,
      limit: PAGE_CHANGES,
      ...(cursor === undefined ? {} : { cursor }),
    });
    for (const change of answer.changes) {
      if (change.finalized_height > last) return rewards;
      if (change.kind !== 'received' || change.source !== 'work_reward') continue;
      rewards.set(change.transaction_id, { amount: change.amount, height: change.finalized_height });
    }
    if (answer.next_cursor === undefined) {
      if (answer.indexed_height < last) throw new Error('the node has not read the cuts that pay this slice');
      return rewards;
    }
    cursor = answer.next_cursor;
  }
  throw new Error('the pool has too many rewards in this slice');
}

/** Rewards of listed blocks whose anchors lie before `start`, the slice's first cut. */
async function readLate(
  asked: Asked,
  known: ReadonlyMap<string, ChainReward>,
  address: string,
  start: number,
  node: Node,
): Promise<Map<string, ChainReward>> {
  const late = new Map<string, ChainReward>();
  for (const block of asked.blocks) {
    const transaction = rewardTransaction(block.block_id);
    if (known.has(transaction)) continue;
    const found = await node.block({ id: block.block_id }).catch(() => undefined);
    const reward = found?.reward;
    if (found?.payout !== address || reward?.state !== 'paid' || reward.amount === null) continue;
    if (found.anchor_height >= start) continue;
    late.set(transaction, { amount: reward.amount, height: reward.paid_height ?? 0 });
  }
  return late;
}

async function readTargets(heights: readonly number[], node: Node): Promise<Map<number, string>> {
  const targets = new Map<number, string>();
  for (const height of heights) {
    const [cut] = (await node.cuts({ before: height + 1, limit: 1 })).cuts;
    if (cut?.height === height) targets.set(height, cut.target);
  }
  return targets;
}

/** Throws a ProtocolError when the pool's own documents have no such form. */
export async function gatherEvidence(asked: Asked, sources: BooksSources): Promise<BooksEvidence> {
  const terms = await orNull(readTerms(sources));
  const records = await orNull(readRecords(asked, sources));
  const blocks = (await orNull(readOtherBlocks(asked, sources))) ?? { otherBlocks: null, movedBlocks: null };
  const own = terms === null ? undefined : termsAt(terms.terms[asked.service], asked.slice);
  const { node } = sources;
  if (node === null || terms === null || own === undefined)
    return { terms, records, ...blocks, targets: null, rewards: null, lateRewards: null };
  const first = asked.slice * own.slice_cuts + REGISTRATION_WINDOW;
  const rewards = await orNull(readRewards(terms.address, first, first + own.slice_cuts - 1, node));
  const lateRewards =
    rewards === null ? null : await orNull(readLate(asked, rewards, terms.address, asked.slice * own.slice_cuts, node));
  // W is that of the slice itself, or of a later one that a new pool's first blocks are divided over.
  const counted = Math.max(asked.slice, asked.window[0]?.slice ?? 0);
  const targets = await orNull(readTargets([counted * own.slice_cuts], node));
  return { terms, records, ...blocks, targets, rewards, lateRewards };
}
