/**
 * Verifies a proof (books rule 13): a document of the pool is compared with its separately published data (terms, slice
 * records, the lists of both services) and with the ledger (targets, rewards). The verdict is `proven` only when every
 * part was recomputed; otherwise it names what is missing or what is false. Page, miner and audit all use this file.
 */
import { parseAtoms } from '../amount.ts';
import { fromHex, toHex } from '../bytes.ts';
import { ID_BYTES, id, LABELS } from '../crypto/identifier.ts';
import { ProtocolError } from '../errors.ts';
import { checkCommitment, type LedgerCommitment } from './books-commitment.ts';
import {
  type BooksService,
  FIRST_CHAIN,
  firstCutOf,
  readWork,
  recordTarget,
  type ShownRecord,
  type SliceRecord,
  type SliceTerms,
  sliceChain,
  WINDOW_SLICES,
  windowWork,
} from './books-slice.ts';
import { listFee, type PublishedTerms, termsFault, termsWalk } from './books-terms.ts';
import {
  checkPoolList,
  checkPoolProof,
  type PoolList,
  type PoolProof,
  type PoolProofRefusal,
  type ProofPart,
} from './pool-proof.ts';
import { windowOf } from './pplns.ts';

/** A reward that the ledger paid to the pool's address. */
export type ChainReward = { readonly amount: string; readonly height: number };

export type BooksEvidence = {
  readonly terms: PublishedTerms | null;
  /** Records of the proof's service in ascending order without gaps. They end with the proof's slice or a later one. */
  readonly records: readonly ShownRecord[] | null;
  /** Target of work on a cut, from a node. */
  readonly targets: ReadonlyMap<number, string> | null;
  /** By transaction id: all rewards of the pool's address for anchors in the proof's slice, from a node. */
  readonly rewards: ReadonlyMap<string, ChainReward> | null;
  /** The same for blocks that the list names and whose anchors lie before the slice. */
  readonly lateRewards: ReadonlyMap<string, ChainReward> | null;
  /** Blocks of the other service's list of this slice. */
  readonly otherBlocks: readonly string[] | null;
  /** Blocks of this slice that the pool, according to itself, holds or credits with a later list. */
  readonly movedBlocks: readonly string[] | null;
  /** Services that the ledger shows of the proof's blocks and of `otherBlocks`, by block id; one that it does not tell is left out. */
  readonly blockServices: ReadonlyMap<string, BooksService> | null;
  /** Payouts that commit the proof's slice or a later one, as the ledger has them, and the records that they are compared with. */
  readonly commitments: readonly LedgerCommitment[] | null;
  /** Some payouts could not be read from the node. Those in `commitments` are compared anyway. */
  readonly areCommitmentsPartial?: boolean;
  /** Records of the other service, of the slices that the commitments name. */
  readonly otherRecords: readonly SliceRecord[] | null;
  /** The address that the checker's own jobs pay, where it has any. */
  readonly poolAddress: string | null;
};

export const NOT_CHECKED = [
  'terms',
  'records',
  'records_reach',
  'target',
  'rewards',
  'other_service',
  'block_service',
  'later_list',
  'commitments',
  'solo_finder',
] as const;
export type NotChecked = (typeof NOT_CHECKED)[number];

export const BOOKS_FALSE = [
  'network',
  'pool_address',
  'terms',
  'record_order',
  'record_chain',
  'record_target',
  'record_window_work',
  'window_work',
  'window_slices',
  'slice_record',
  'reward_name',
  'reward_unknown',
  'reward_amount',
  'reward_left_out',
  'block_service',
  'commitment',
  'commitment_missing',
] as const;
export type BooksFalse = PoolProofRefusal | (typeof BOOKS_FALSE)[number];

/** The payout on the ledger that commits to the books behind a proof; null while there is none. */
export type CommittedBy = { readonly transaction_id: string; readonly height: number } | null;

export type BooksVerdict =
  | { readonly verdict: 'proven'; readonly credit: bigint; readonly committed: CommittedBy }
  | { readonly verdict: 'unchecked'; readonly credit: bigint; readonly missing: readonly NotChecked[] }
  | { readonly verdict: 'false'; readonly reason: BooksFalse };

class False extends Error {
  readonly reason: BooksFalse;

  constructor(reason: BooksFalse) {
    super(reason);
    this.reason = reason;
  }
}

const insist = (holds: boolean, reason: BooksFalse): void => {
  if (!holds) throw new False(reason);
};

/** The transaction id of a block's reward (ledger rule 37). */
export const rewardTransaction = (blockId: string): string => toHex(id(LABELS.workPayment, fromHex(blockId, ID_BYTES)));

const sameTerms = (a: SliceTerms, b: SliceTerms): boolean =>
  a.slice_cuts === b.slice_cuts && a.window_thousandths === b.window_thousandths && a.fee_ppm === b.fee_ppm;

type Records = {
  readonly all: readonly SliceRecord[];
  /** The first record is the pool's first: nothing came before. */
  readonly isWhole: boolean;
  /** Slices whose W was recomputed. */
  readonly checked: ReadonlySet<number>;
};

/** Records must follow each other without a gap, join by their hashes, keep the published terms, and have the right W. */
function checkRecords(all: readonly SliceRecord[], service: BooksService, terms: PublishedTerms | null): Records {
  const isWhole = all[0]?.previous === FIRST_CHAIN;
  const published = terms?.terms[service];
  const termsOf = termsWalk(published ?? []);
  if (isWhole && published !== undefined) insist(published[0]?.from_slice === all[0]?.slice, 'record_order');
  const checked = new Set<number>();
  /** Totals of the newest slices with work. */
  let newest: bigint[] = [];
  let before: SliceRecord | undefined;
  for (const record of all) {
    insist(record.service === service && Number.isSafeInteger(record.slice), 'record_order');
    if (before !== undefined) insist(record.slice === before.slice + 1, 'record_order');
    if (before !== undefined) insist(record.previous === before.chain, 'record_chain');
    // S never changes in a pool (rule 3): another length would move every deadline.
    insist(record.slice_cuts > 0 && record.slice_cuts === all[0]?.slice_cuts, 'terms');
    insist(sliceChain(record) === record.chain, 'record_chain');
    if (published !== undefined) {
      const own = termsOf(record.slice);
      insist(own !== undefined && sameTerms(own, record), 'terms');
    }
    if (isWhole || newest.length === WINDOW_SLICES) {
      const work = windowWork(recordTarget(record), BigInt(record.window_thousandths), newest);
      insist(work === readWork(record.window_work), 'record_window_work');
      checked.add(record.slice);
    }
    const total = readWork(record.total_work);
    if (total > 0n) newest = [total, ...newest].slice(0, WINDOW_SLICES);
    before = record;
  }
  return { all, isWhole, checked };
}

/** Why a pool's records are false by themselves and by its terms; undefined when they are not. Ascending, from the first on. */
export function recordsFault(
  records: readonly SliceRecord[],
  service: BooksService,
  terms: PublishedTerms | null,
): BooksFalse | undefined {
  const verdict = guarded(() => {
    checkRecords(records, service, terms);
    return { verdict: 'proven', credit: 0n, committed: null };
  });
  return verdict.verdict === 'false' ? verdict.reason : undefined;
}

type Windowed = Pick<PoolProof, 'slice' | 'window_work'> & { readonly window: readonly ProofPart[] };

/**
 * The window must follow from W and the records, with no slice left out, and each part must match its record. Returns
 * the record whose W counts; undefined if the records do not reach far enough.
 */
function checkWindow(document: Windowed, { all, isWhole }: Records): SliceRecord | undefined {
  const byNumber = new Map(all.map((record) => [record.slice, record]));
  // Before its first slice a pool had none.
  const first = isWhole ? (all[0]?.slice ?? 0) : 0;
  insist(document.slice >= first, 'slice_record');
  for (const part of document.window) {
    const record = byNumber.get(part.slice);
    insist(part.slice >= first, 'slice_record');
    if (record === undefined) return undefined;
    const isSame = record.root === part.root && record.total_work === part.total && record.accounts === part.accounts;
    insist(isSame, 'slice_record');
  }
  const own = byNumber.get(document.slice);
  if (own === undefined) return undefined;
  const hasWork = (record: SliceRecord) => readWork(record.total_work) > 0n;
  const before = all.filter((record) => record.slice < document.slice && hasWork(record)).reverse();
  if (before.length === 0) {
    // A new pool's first blocks go to the first slice from their own on that has work.
    const worked = all.find((record) => record.slice >= document.slice && hasWork(record));
    if (!isWhole || worked === undefined) return undefined;
    insist(document.window.length === 1 && document.window[0]?.slice === worked.slice, 'window_slices');
    insist(document.window_work === worked.window_work, 'window_work');
    return worked;
  }
  insist(document.window_work === own.window_work, 'window_work');
  const work = readWork(own.window_work);
  const due = windowOf(
    work,
    before.map((record) => ({ slice: record.slice, total: readWork(record.total_work) })),
  );
  if (due.counted < work && !isWhole) return undefined;
  const isSame = document.window.length === due.parts.length;
  insist(isSame && due.parts.every((part, i) => part.slice === document.window[i]?.slice), 'window_slices');
  return own;
}

/** W, the window and the target behind them, against the records and the ledger. */
function checkSlices(document: PoolProof | PoolList, evidence: BooksEvidence, missing: Set<NotChecked>): void {
  if (evidence.records === null || evidence.records.length === 0) {
    missing.add('records');
    return;
  }
  insist(
    evidence.records.every((record) => record.network === document.network),
    'network',
  );
  const records = checkRecords(evidence.records, document.service, evidence.terms);
  const own = evidence.records.find((record) => record.slice === document.slice);
  // Which fee of the window it is follows from the terms.
  if (own !== undefined) insist(document.fee_ppm <= own.fee_ppm, 'terms');
  // Checks that this reader gets the same list as everybody. An answer from before the list was made has none.
  if (own?.credits) insist(own.credits.root === document.credit_root, 'credit_root');
  const counted = document.service === 'solo' ? own : checkWindow(document, records);
  if (counted === undefined || own === undefined) {
    missing.add('records_reach');
    return;
  }
  // Nothing is divided by W on solo.
  if (document.service === 'solo') return;
  if (!records.checked.has(counted.slice)) missing.add('records_reach');
  const target = evidence.targets?.get(firstCutOf(counted.slice, counted.slice_cuts));
  if (target === undefined) missing.add('target');
  else insist(target === counted.target, 'record_target');
}

/** Every block's reward is on the ledger with this amount, and none that the pool got for this slice is left out. */
function checkRewards(
  document: Pick<PoolProof, 'blocks' | 'service'>,
  evidence: BooksEvidence,
  missing: Set<NotChecked>,
): void {
  // A block's header shows its service, and was fixed before hashing (rule 22).
  const checkService = (block: string, isOwn: boolean): void => {
    const service = evidence.blockServices?.get(block);
    if (service === undefined) missing.add('block_service');
    else insist((service === document.service) === isOwn, 'block_service');
  };
  for (const block of document.blocks) {
    insist(block.transaction_id === rewardTransaction(block.block_id) && block.output_index === 0, 'reward_name');
    if (evidence.rewards === null) continue;
    // If all blocks of a slice are booked under one service, the other has no list in which they could be missing.
    checkService(block.block_id, true);
    const paid = evidence.rewards.get(block.transaction_id) ?? evidence.lateRewards?.get(block.transaction_id);
    if (paid === undefined && evidence.lateRewards === null) {
      missing.add('rewards');
      continue;
    }
    insist(paid !== undefined, 'reward_unknown');
    insist(parseAtoms((paid as ChainReward).amount) === parseAtoms(block.reward), 'reward_amount');
  }
  if (evidence.rewards === null) {
    missing.add('rewards');
    return;
  }
  if (evidence.otherBlocks === null || evidence.movedBlocks === null) {
    missing.add('other_service');
    return;
  }
  const named = new Set(document.blocks.map((block) => block.transaction_id));
  const others = evidence.otherBlocks.map(rewardTransaction);
  insist(!others.some((transaction) => named.has(transaction)), 'reward_name');
  for (const block of evidence.otherBlocks)
    if (evidence.rewards.has(rewardTransaction(block))) checkService(block, false);
  for (const transaction of others) named.add(transaction);
  const moved = new Set(evidence.movedBlocks.map(rewardTransaction));
  for (const transaction of evidence.rewards.keys()) {
    if (named.has(transaction)) continue;
    insist(moved.has(transaction), 'reward_left_out');
    // Whether a later list contains the block cannot be checked here.
    missing.add('later_list');
  }
}

/** Every payout that was looked up carries the head that the records give. */
function checkCommitments(
  document: Pick<PoolProof, 'slice' | 'service'> & { readonly window: readonly ProofPart[] },
  { commitments, areCommitmentsPartial, records, otherRecords }: BooksEvidence,
  missing: Set<NotChecked>,
): CommittedBy {
  if (areCommitmentsPartial === true) missing.add('commitments');
  if (commitments === null || otherRecords === null || records === null) {
    missing.add('commitments');
    return null;
  }
  for (const record of otherRecords) insist(sliceChain(record) === record.chain, 'record_chain');
  const recordAt = (service: BooksService, slice: number) =>
    (service === document.service ? records : otherRecords).find(
      (record) => record.slice === slice && record.service === service,
    );
  const newest = Math.max(document.slice, ...document.window.map((part) => part.slice));
  let committed: CommittedBy = null;
  for (const commitment of commitments) {
    const found = checkCommitment(commitment, recordAt);
    if (found === undefined) missing.add('commitments');
    else if (typeof found === 'string') throw new False(found);
    else if (found.slice >= newest)
      committed ??= { transaction_id: commitment.transaction_id, height: commitment.height };
  }
  return committed;
}

function judge(document: PoolProof | PoolList, credit: bigint, evidence: BooksEvidence): BooksVerdict {
  const missing = new Set<NotChecked>();
  const { terms } = evidence;
  if (terms === null) missing.add('terms');
  else {
    insist(terms.network === document.network, 'network');
    insist(termsFault(terms.terms) === undefined, 'terms');
    insist(listFee(terms, document) === document.fee_ppm, 'terms');
    // Rewards are looked up under the address of the terms, which must be the one that the checker's jobs pay.
    if (evidence.poolAddress !== null) insist(terms.address === evidence.poolAddress, 'pool_address');
  }
  checkSlices(document, evidence, missing);
  checkRewards(document, evidence, missing);
  const committed = checkCommitments(document, evidence, missing);
  // Only the pool and the finder know who found a solo block.
  if (document.service === 'solo' && document.blocks.length > 0) missing.add('solo_finder');
  return outcome(credit, committed, missing);
}

function outcome(credit: bigint, committed: CommittedBy, missing: ReadonlySet<NotChecked>): BooksVerdict {
  if (missing.size === 0) return { verdict: 'proven', credit, committed };
  return { verdict: 'unchecked', credit, missing: NOT_CHECKED.filter((each) => missing.has(each)) };
}

function guarded(check: () => BooksVerdict): BooksVerdict {
  try {
    return check();
  } catch (error) {
    if (error instanceof False) return { verdict: 'false', reason: error.reason };
    if (error instanceof ProtocolError || error instanceof TypeError || error instanceof RangeError)
      return { verdict: 'false', reason: 'malformed' };
    throw error;
  }
}

export function judgeProof(document: PoolProof, evidence: BooksEvidence): BooksVerdict {
  return guarded(() => {
    const own = checkPoolProof(document);
    return own.valid ? judge(document, own.credit, evidence) : { verdict: 'false', reason: own.reason };
  });
}

export function judgeList(document: PoolList, evidence: BooksEvidence): BooksVerdict {
  return guarded(() => {
    const own = checkPoolList(document);
    return own.valid ? judge(document, own.credit, evidence) : { verdict: 'false', reason: own.reason };
  });
}

/**
 * Checks that a signed record is the published one, and that payouts on the ledger commit to it. Without `committed` no
 * payout covers it yet.
 */
export function judgeRecord(
  signed: Pick<SliceRecord, 'network' | 'service' | 'slice' | 'chain'>,
  evidence: BooksEvidence,
): BooksVerdict {
  return guarded(() => {
    const missing = new Set<NotChecked>();
    const { terms, records } = evidence;
    if (terms === null) missing.add('terms');
    else insist(terms.network === signed.network, 'network');
    const record = records?.find(({ slice }) => slice === signed.slice);
    if (records === null || record === undefined) missing.add('records');
    else {
      checkRecords(records, signed.service, terms);
      insist(record.chain === signed.chain, 'slice_record');
    }
    return outcome(0n, checkCommitments({ ...signed, window: [] }, evidence, missing), missing);
  });
}
