/**
 * Payouts of a pool that commit its books (books rule 21), as a node has them: those that the pool lists, and those
 * that spent from its address. If the node cannot read one of them, the others are still used.
 */
import type { ApiClient } from '../api/client.ts';
import { ApiError } from '../api/client-calls.ts';
import { ProtocolError } from '../errors.ts';
import { type LedgerCommitment, readCommitment } from './books-commitment.ts';

type PayoutReads = Pick<ApiClient, 'addressChanges' | 'cutTransactions'>;
type Sources = { pool(path: string): Promise<unknown>; readonly node: PayoutReads };

/** Payouts that the pool is asked for. */
const MAX_COMMITMENTS = 2;
/** Limits: commitments read from spends of the address, spends, and pages of changes searched. */
const MAX_FOUND = 4;
const MAX_SPENDS = 64;
const MAX_PAGES = 16;
const PAGE_CHANGES = 1024;
const MAX_ID = 256;

/** A transaction's payload, from the cut that executed it; null when it is not there. */
export async function payloadOnLedger(
  node: Pick<PayoutReads, 'cutTransactions'>,
  height: number,
  transaction: string,
): Promise<string | null> {
  for (let cursor: string | undefined; ; ) {
    const page = await node.cutTransactions({ height, limit: 64, ...(cursor === undefined ? {} : { cursor }) });
    const found = page.transactions.find((each) => each.transaction_id === transaction);
    if (found !== undefined) return found.outcome === 'finalized' ? found.payload_hex : null;
    if (page.next_cursor === undefined) return null;
    cursor = page.next_cursor;
  }
}

/** A row of the pool's list of commitments. */
export type CommitmentRow = {
  readonly number: number;
  readonly state: 'pending' | 'finalized' | 'void';
  readonly transaction_id: string | null;
  readonly final_height: number | null;
  readonly slice: number | null;
  readonly head: string | null;
};

/**
 * What a pool's list says of one of its payouts on the ledger that the list lacks. `unlisted`: the list ends before it, as that
 * of books replaced by an older copy does until the wallet has answered: an omission, and no lie. `denied`: the list has this
 * number for another transaction, or a later one. Numbers have no gap and books lose their newest ones first.
 */
export const judgeUnlisted = (number: number, rows: readonly CommitmentRow[]): 'unlisted' | 'denied' =>
  rows.some((row) => row.number >= number && row.transaction_id !== null) ? 'denied' : 'unlisted';

/** Payouts of the ledger and what they carry. `isPartial`: not all of them could be read. */
type CarriedCommitments = { readonly found: readonly LedgerCommitment[]; readonly isPartial: boolean };

/**
 * The payload of a transaction; undefined if the node cannot read it: the cut was pruned, or the node does not have it
 * yet. Then only that one is unread: with such a payout, a pool must not prevent the comparison of the others.
 */
async function carriedBy(
  node: PayoutReads,
  height: number,
  transaction: string,
): Promise<LedgerCommitment | undefined> {
  try {
    const payload_hex = await payloadOnLedger(node, height, transaction);
    return { transaction_id: transaction, height, payload_hex };
  } catch (error) {
    if (error instanceof ApiError) return undefined;
    throw error;
  }
}

function isCommitmentRow(row: CommitmentRow | null): row is CommitmentRow {
  if (typeof row !== 'object' || row === null) return false;
  const { transaction_id: transaction, final_height: height } = row;
  const isHeight = height === null || (Number.isSafeInteger(height) && height >= 0);
  return isHeight && (transaction === null || (typeof transaction === 'string' && transaction.length <= MAX_ID));
}

/** The first payouts, at most `MAX_COMMITMENTS`, whose final commitments cover a slice, read from the ledger. */
async function readCommitments(slice: number, { pool, node }: Sources): Promise<CarriedCommitments> {
  const answer = (await pool(`commitments?slice=${slice}&limit=${MAX_COMMITMENTS}`)) as {
    commitments: CommitmentRow[];
  };
  const isList = Array.isArray(answer?.commitments) && answer.commitments.length <= MAX_COMMITMENTS;
  if (!isList || !answer.commitments.every(isCommitmentRow))
    throw new ProtocolError('out_of_range', "the pool's commitments have no such form");
  const found: LedgerCommitment[] = [];
  let isPartial = false;
  for (const { state, transaction_id: transaction, final_height: height } of answer.commitments) {
    if (state !== 'finalized' || transaction === null || height === null) continue;
    const carried = await carriedBy(node, height, transaction);
    if (carried === undefined) isPartial = true;
    else found.push(carried);
  }
  return { found, isPartial };
}

/**
 * Commitments in the first transactions that spent from the pool's address after a height. The pool's key signed them,
 * so they count whether the pool lists them or not. Dust sent to the address, and merges by the pool, do not hide
 * payouts.
 */
async function readSpends(address: string, after: number, node: PayoutReads): Promise<CarriedCommitments> {
  const found: LedgerCommitment[] = [];
  const seen = new Set<string>();
  let isPartial = false;
  let cursor: string | undefined;
  for (let page = 0; page < MAX_PAGES; page++) {
    const asked = { addresses: [address], after_height: after, limit: PAGE_CHANGES };
    const answer = await node.addressChanges(cursor === undefined ? asked : { ...asked, cursor });
    for (const { kind, transaction_id: transaction, finalized_height: height } of answer.changes) {
      if (kind !== 'spent' || seen.has(transaction)) continue;
      if (seen.size === MAX_SPENDS) return { found, isPartial: isPartial || found.length === 0 };
      seen.add(transaction);
      const carried = await carriedBy(node, height, transaction);
      if (carried === undefined) isPartial = true;
      else if (carried.payload_hex !== null && readCommitment(carried.payload_hex) !== undefined) found.push(carried);
      if (found.length === MAX_FOUND) return { found, isPartial };
    }
    cursor = answer.next_cursor;
    if (cursor === undefined) return { found, isPartial };
  }
  return { found, isPartial: isPartial || found.length === 0 };
}

/** `slice`: the newest one that the payouts have to cover. */
export async function readPayouts(
  { slice, address, sliceCuts }: { readonly slice: number; readonly address: string; readonly sliceCuts: number },
  sources: Sources,
): Promise<CarriedCommitments> {
  const listed = await readCommitments(slice, sources);
  const spends = await readSpends(address, (slice + 1) * sliceCuts, sources.node);
  const all = [...listed.found, ...spends.found].map((each) => [each.transaction_id, each] as const);
  return { found: [...new Map(all).values()], isPartial: listed.isPartial || spends.isPartial };
}
