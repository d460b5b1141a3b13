/**
 * Collects the data that a proof is checked against (books rule 13): from the pool its terms, slice records and the
 * blocks of both services; from a node of the checker's choice the target and the rewards. Reads are passed in as
 * functions, so it runs in a page, a miner and a program alike. Missing data is null: the verdict then lists what was
 * not checked.
 */
import type { ApiClient } from '../api/client.ts';
import { ApiError } from '../api/client-calls.ts';
import { fromHex } from '../bytes.ts';
import { ProtocolError } from '../errors.ts';
import { REGISTRATION_WINDOW } from '../network.ts';
import { bookedService } from './block-service.ts';
import { type LedgerCommitment, readCommitment } from './books-commitment.ts';
import { type BooksService, FIRST_CHAIN, readWork, type SliceRecord, WINDOW_SLICES } from './books-slice.ts';
import { type PublishedTerms, type TermsFrom, termsAt } from './books-terms.ts';
import { type BooksEvidence, type ChainReward, rewardTransaction } from './books-verdict.ts';
import { readPayouts } from './ledger-payouts.ts';
import type { CreditHead, ProofPart } from './pool-proof.ts';
import { PoolOmission, PoolSilence } from './pool-silence.ts';

export type BooksSources = {
  /** Reads `api/v1/PATH` of the pool. */
  pool(path: string): Promise<unknown>;
  /** A node that the checker trusts; null when there is none. */
  readonly node: Pick<ApiClient, 'cuts' | 'addressChanges' | 'block' | 'cutTransactions'> | null;
  /** The address that the checker's own jobs pay, where it mines. */
  readonly poolAddress?: string | null;
  /** The checker has read all records itself and judges whether one is missing. For other checkers a page without the requested record is a `PoolOmission`. */
  readonly hasAllRecords?: boolean;
};

type Asked = Pick<CreditHead, 'service' | 'slice' | 'blocks' | 'window_work'> & {
  readonly window: readonly ProofPart[];
};

/** With 200 records per page: limits what a pool can make the reader fetch and keep. */
const MAX_PAGES = 50;
const PAGE_RECORDS = 200;
/** A record as JSON, with the total of its rewards. */
const MAX_RECORD = 4_096;
/** Blocks of one slice: far more than any network finds, and a list of them fits into an answer. */
const MAX_SLICE_BLOCKS = 20_000;
const MAX_CURSOR = 256;
const PAGE_CHANGES = 1024;
const MAX_CHANGES_PAGES = 200;
/** Blocks of both services, or of earlier slices, queried at a node. */
const MAX_BLOCKS = 1_000;

/** By not answering, a pool must not turn a false proof into one that cannot be checked: then the whole check fails. */
const orNull = async <T>(work: Promise<T>): Promise<T | null> => {
  try {
    return await work;
  } catch (error) {
    if (error instanceof ProtocolError || error instanceof PoolSilence) throw error;
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

/** Records of an answer. Their fields are checked where they are compared; none is longer than any pool makes it. */
function recordsOf(answer: unknown): SliceRecord[] {
  const slices = (answer as { slices: SliceRecord[] } | null)?.slices;
  insistShape(Array.isArray(slices) && slices.length <= PAGE_RECORDS, 'slice records');
  for (const each of slices as unknown[])
    insistShape(
      typeof each === 'object' && each !== null && JSON.stringify(each).length <= MAX_RECORD,
      'slice records',
    );
  return slices as SliceRecord[];
}

/**
 * A closed slice must be on its page. By omitting it or ending its pages early, a pool must not turn a false proof into
 * one that cannot be checked.
 */
function insistShown(isShown: boolean, service: BooksService, slice: number, { hasAllRecords }: BooksSources): void {
  if (!isShown && hasAllRecords !== true)
    throw new PoolOmission(`the pool does not show its records of ${service} up to slice ${slice}`);
}

const newestOf = (asked: Asked): number => Math.max(asked.slice, ...asked.window.map((part) => part.slice));

/** Records from `newest` back, until the window and W can both be recomputed. Ascending. */
async function readRecords(asked: Asked, newest: number, sources: BooksSources): Promise<SliceRecord[]> {
  const oldest = Math.min(asked.slice, ...asked.window.map((part) => part.slice));
  const records: SliceRecord[] = [];
  const window = readWork(asked.window_work);
  let worked = 0;
  let counted = 0n;
  let isEnough = false;
  let cursor = `${newest + 1}-0`;
  for (let page = 0; page < MAX_PAGES; page++) {
    const answer = (await sources.pool(
      `slices/${asked.service}?limit=${PAGE_RECORDS}&cursor=${encodeURIComponent(cursor)}`,
    )) as { next_cursor?: unknown };
    const page = recordsOf(answer);
    records.push(...page);
    worked += page.filter((record) => record.slice < oldest && readWork(record.total_work) > 0n).length;
    for (const { slice, total_work: work } of page) if (slice < asked.slice) counted += readWork(work);
    const next = answer.next_cursor;
    // A window that ends too early is detected by comparing it with W.
    isEnough = worked > WINDOW_SLICES && (counted >= window || asked.window.length === 0);
    if (next === undefined || isEnough) break;
    insistShape(typeof next === 'string' && next.length <= MAX_CURSOR && page.length > 0, 'slice records');
    cursor = next as string;
  }
  const isLong = records.length >= MAX_PAGES * PAGE_RECORDS;
  const reaches = isEnough || isLong || records.at(-1)?.previous === FIRST_CHAIN;
  insistShown(reaches && records[0]?.slice === newest, asked.service, newest, sources);
  return records.reverse();
}

type SliceBlock = { readonly block_id: string; readonly credited_with: number | null };

/** More blocks than are read are no lie (rule 30). */
export function insistReadable(blocks: readonly unknown[]): void {
  if (blocks.length > MAX_SLICE_BLOCKS) throw new PoolSilence(`a slice has more than ${MAX_SLICE_BLOCKS} blocks`);
}

/** Blocks of a service whose anchors lie in a slice, and the list that credits each, as the pool says. */
export async function readBlocks(
  service: BooksService,
  slice: number,
  { pool }: Pick<BooksSources, 'pool'>,
): Promise<readonly SliceBlock[]> {
  const answer = (await pool(`slices/${service}/${slice}/blocks`)) as { blocks: SliceBlock[] };
  insistShape(Array.isArray(answer?.blocks), 'blocks');
  insistReadable(answer.blocks);
  for (const block of answer.blocks) insistShape(typeof block?.block_id === 'string', 'blocks');
  return answer.blocks;
}

/** Blocks of the slice that this list need not name: those of the other service, and those that are held or that a later list credits. */
async function readOtherBlocks(asked: Asked, sources: BooksSources) {
  const other = asked.service === 'pplns' ? 'solo' : 'pplns';
  const others = await readBlocks(other, asked.slice, sources);
  const own = await readBlocks(asked.service, asked.slice, sources);
  const idOf = (block: { readonly block_id: string }) => block.block_id;
  return {
    otherBlocks: others.map(idOf),
    movedBlocks: own.filter(({ credited_with: list }) => list === null || list > asked.slice).map(idOf),
  };
}

type Node = NonNullable<BooksSources['node']>;

/** The address received more outputs than are read. Anybody can send it dust, so this is not the pool's fault. */
export class TooManyChanges extends Error {}

/** Rewards that the pool's address got in the cuts that pay a slice's anchors. */
export async function readRewards(
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
  throw new TooManyChanges('the pool’s address received too much in this slice');
}

/**
 * A pool keeps an answer for five seconds and serves it up to ten while it makes a new one, and a proxy may keep it for
 * five more: data requested after this time is newer than anything known before (rule 26).
 */
export const NEWER_MILLIS = 16_000;

/** Undefined for a block that the node does not know. If the node fails, nothing is known of the block, which must not count against the pool. */
const blockOf = (node: Node, id: string) =>
  node.block({ id }).catch((error: unknown) => {
    if (error instanceof ApiError && error.code === 'block_unknown') return undefined;
    throw error;
  });

/** Rewards of listed blocks whose anchors lie before `start`, the slice's first cut. */
async function readLate(
  asked: Asked,
  known: ReadonlyMap<string, ChainReward>,
  address: string,
  start: number,
  node: Node,
): Promise<Map<string, ChainReward>> {
  const late = new Map<string, ChainReward>();
  let count = 0;
  for (const block of asked.blocks) {
    const transaction = rewardTransaction(block.block_id);
    if (known.has(transaction)) continue;
    if (++count > MAX_BLOCKS) throw new Error('the list names too many blocks of earlier slices');
    const found = await blockOf(node, block.block_id);
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

/** The services of the pool's blocks according to the ledger. Null if there are too many to query. */
async function readServices(blocks: readonly string[], node: Node): Promise<Map<string, BooksService> | null> {
  if (blocks.length > MAX_BLOCKS) return null;
  const services = new Map<string, BooksService>();
  for (const id of blocks) {
    const found = await blockOf(node, id);
    if (found !== undefined) services.set(id, bookedService(fromHex(found.extranonce)));
  }
  return services;
}

/** Records of the other service, of the slices that the commitments name. */
async function readOtherRecords(
  asked: Asked,
  slices: readonly number[],
  sources: BooksSources,
): Promise<SliceRecord[]> {
  const other = asked.service === 'pplns' ? 'solo' : 'pplns';
  const records: SliceRecord[] = [];
  for (const slice of new Set(slices)) {
    const shown = recordsOf(await sources.pool(`slices/${other}?limit=1&cursor=${slice + 1}-0`));
    insistShown(shown[0]?.slice === slice, other, slice, sources);
    records.push(...shown);
  }
  return records;
}

const slicesOf = (commitments: readonly LedgerCommitment[]): number[] =>
  commitments.flatMap(({ payload_hex: payload }) => (payload === null ? [] : (readCommitment(payload)?.slice ?? [])));

type Published = Pick<BooksEvidence, 'terms' | 'records' | 'commitments' | 'areCommitmentsPartial' | 'otherRecords'> & {
  readonly own: TermsFrom | undefined;
};

/** Terms, the slice's records, and the payouts on the ledger that commit them. */
async function gatherPublished(asked: Asked, sources: BooksSources): Promise<Published> {
  const { node } = sources;
  const terms = await orNull(readTerms(sources));
  const newest = newestOf(asked);
  const own = terms === null ? undefined : termsAt(terms.terms[asked.service], asked.slice);
  const carried =
    node === null || terms === null || own === undefined
      ? null
      : await orNull(
          readPayouts({ slice: newest, address: terms.address, sliceCuts: own.slice_cuts }, { ...sources, node }),
        );
  const commitments = carried?.found ?? null;
  const committed = slicesOf(commitments ?? []);
  const records = await orNull(readRecords(asked, Math.max(newest, ...committed), sources));
  const otherRecords = await orNull(readOtherRecords(asked, committed, sources));
  return { terms, own, records, commitments, areCommitmentsPartial: carried?.isPartial === true, otherRecords };
}

const NO_LEDGER = { targets: null, rewards: null, lateRewards: null, blockServices: null } as const;

/** The data that a signed record is compared with (`judgeRecord`). */
export async function gatherRecord(
  signed: Pick<SliceRecord, 'service' | 'slice'>,
  sources: BooksSources,
): Promise<BooksEvidence> {
  const { service, slice } = signed;
  const asked = { service, slice, blocks: [], window_work: '1', window: [] };
  const { own: _own, ...published } = await gatherPublished(asked, sources);
  return { ...published, ...NO_LEDGER, otherBlocks: null, movedBlocks: null, poolAddress: null };
}

/** Throws a ProtocolError when the pool's own documents have no such form. */
export async function gatherEvidence(asked: Asked, sources: BooksSources): Promise<BooksEvidence> {
  const { node, poolAddress = null } = sources;
  const { own, ...found } = await gatherPublished(asked, sources);
  const { terms } = found;
  const blocks = (await orNull(readOtherBlocks(asked, sources))) ?? { otherBlocks: null, movedBlocks: null };
  const published = { ...found, ...blocks, poolAddress };
  if (node === null || terms === null || own === undefined) return { ...published, ...NO_LEDGER };
  const first = asked.slice * own.slice_cuts + REGISTRATION_WINDOW;
  const rewards = await orNull(readRewards(terms.address, first, first + own.slice_cuts - 1, node));
  const lateRewards =
    rewards === null ? null : await orNull(readLate(asked, rewards, terms.address, asked.slice * own.slice_cuts, node));
  // Of the other service only paid ones: a pool could list any number of others.
  const paid = (blocks.otherBlocks ?? []).filter((id) => rewards?.has(rewardTransaction(id)));
  const named = [...asked.blocks.map((block) => block.block_id), ...paid];
  const blockServices = await orNull(readServices(named, node));
  // W is that of the slice itself, or of a later one that a new pool's first blocks are divided over.
  const counted = Math.max(asked.slice, asked.window[0]?.slice ?? 0);
  const targets = await orNull(readTargets([counted * own.slice_cuts], node));
  return { ...published, targets, rewards, lateRewards, blockServices };
}
