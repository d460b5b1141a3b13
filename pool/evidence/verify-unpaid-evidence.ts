/**
 * `svc-pool verify-evidence` on a file about credits that were not paid (books rule 29): reads the lists named in it,
 * and all payments since, from the pool and from a node, and adds them up. The file itself proves nothing; the data it
 * refers to is public.
 */
import type { ApiClient } from '../../protocol/api/client.ts';
import { newPayments, type PayoutTerms, readPayoutTerms, unlistedSum } from '../../protocol/books/account-payments.ts';
import { gatherEvidence } from '../../protocol/books/books-evidence.ts';
import { isWhole } from '../../protocol/books/books-slice.ts';
import { type PublishedTerms, sliceCutsOf } from '../../protocol/books/books-terms.ts';
import { judgeProof } from '../../protocol/books/books-verdict.ts';
import { checkPoolProof, type PoolProof } from '../../protocol/books/pool-proof.ts';
import {
  highestThreshold,
  judgeUnpaid,
  readUnpaidEvidence,
  type UnpaidEvidence,
  unlistedWords,
  unpaidBound,
} from '../../protocol/evidence/unpaid-evidence.ts';
import type { EvidenceSources, Judged } from './judged-evidence.ts';

type PaymentVerdict = {
  readonly verdict: 'unpaid' | 'paid' | 'unchecked' | 'malformed';
  readonly why?: string;
  readonly credited?: bigint;
  readonly paid?: bigint;
};

/** Ten minutes. Books further behind the ledger catch up after a fall: payments and advances are booked again at its end. */
const MAX_BEHIND = 240;

/** A reward is credited at the latest this many cuts after the slice, unless it is held (rule 7). */
const LIST_CUTS = 96;

/**
 * Number of lists that are checked completely, spread over all of them. All lists share the same slice length and
 * address.
 */
const MAX_JUDGED = 8;

type Read = (path: string) => Promise<unknown>;

/** The credits in the pool's lists now. A list that is missing or different is reported. */
async function creditedBy(credits: UnpaidEvidence['credits'], address: string, read: Read, node: ApiClient) {
  let credited = 0n;
  const step = Math.ceil(credits.length / MAX_JUDGED);
  for (const [i, { service, slice, amount }] of credits.entries()) {
    const proof = (await read(`proofs/${service}/${slice}?address=${encodeURIComponent(address)}`)) as PoolProof;
    const isAsked = proof?.service === service && proof.slice === slice && proof.address === address;
    const checked = checkPoolProof(proof);
    if (!isAsked || !checked.valid) throw new Error(`the pool’s proof of ${service}/${slice} is false`);
    if (String(checked.credit) !== amount)
      throw new Error(
        `the pool’s list ${service}/${slice} credits ${checked.credit} atoms now, the file says ${amount}`,
      );
    credited += checked.credit;
    // With a false address or slice length, a pool could show payments of others, or no list that is old enough.
    const verdict = i % step === 0 ? judgeProof(proof, await gatherEvidence(proof, { pool: read, node })) : undefined;
    if (verdict?.verdict === 'unchecked' && verdict.missing.includes('rewards'))
      throw new Error(`the node does not show the rewards of the list ${service}/${slice}`);
    if (verdict?.verdict === 'false')
      throw new Error(`the pool’s list ${service}/${slice} is false (${verdict.reason}): see svc-pool audit --public`);
  }
  return credited;
}

type Ages = {
  readonly cuts: number;
  readonly bound: number;
  readonly node: Pick<ApiClient, 'cuts'>;
  readonly newest: { readonly height: number; readonly finalized_at_millis: number };
};

/** The credits, in ascending order of slice, that are older than the limit by the ledger's times. */
async function oldOnes(
  credits: UnpaidEvidence['credits'],
  { cuts, bound, node, newest }: Ages,
): Promise<UnpaidEvidence['credits']> {
  const sorted = [...credits].sort((a, b) => a.slice - b.slice);
  const isOld = async (slice: number): Promise<boolean> => {
    const height = (slice + 1) * cuts + LIST_CUTS;
    if (height >= newest.height) return false;
    const at = (await node.cuts({ before: height + 1, limit: 1 })).cuts[0];
    if (at?.height !== height) throw new Error(`the node does not show cut ${height}`);
    return newest.finalized_at_millis - at.finalized_at_millis >= bound;
  };
  let [from, to] = [0, sorted.length];
  while (from < to) {
    const middle = Math.floor((from + to) / 2);
    if (await isOld(sorted[middle]?.slice as number)) from = middle + 1;
    else to = middle;
  }
  return sorted.slice(0, from);
}

/** Only the names of the lists are taken from the file. */
async function judge(evidence: UnpaidEvidence, { pool: read, node }: EvidenceSources): Promise<PaymentVerdict> {
  if (read === undefined || node === undefined)
    return { verdict: 'unchecked', why: 'it takes --pool-api and --node-api' };
  try {
    const { address } = evidence;
    const published = (await read('terms')) as PublishedTerms & { readonly height?: unknown };
    // One document for all checks: payments and lists are checked against the same address.
    const pool: Read = async (path) => (path === 'terms' ? published : read(path));
    const cuts = sliceCutsOf(published.terms);
    if (cuts === undefined) throw new Error('the pool publishes no terms');
    const terms = await readPayoutTerms(address, pool);
    const bound = unpaidBound(terms.intervalMillis);
    const newest = (await node.cuts({ limit: 1 })).cuts[0];
    if (newest === undefined) throw new Error('the node has no cuts');
    const behind = newest.height - (isWhole(published.height) ? published.height : newest.height);
    if (behind > MAX_BEHIND)
      throw new Error(`the pool says that its books are ${behind} cuts behind: ask again when they are not`);
    const credits = await oldOnes(evidence.credits, { cuts, bound, node, newest });
    if (credits.length === 0) throw new Error('none of the lists is old enough by the terms that the pool publishes');
    const credited = await creditedBy(credits, address, pool, node);
    // A list is made after its slice: payments from before the first of these slices closed were for other lists.
    const fromHeight = ((credits[0]?.slice ?? 0) + 1) * cuts;
    const asked = { address, payer: published.address, known: new Map(), fromHeight };
    const { found } = await newPayments(asked, { pool, node });
    const paid = [...found.values()].reduce((sum, { atoms }) => sum + atoms, 0n);
    const [owed, named] = [credited - paid, BigInt(evidence.threshold)];
    const highest = highestThreshold(terms, newest.finalized_at_millis, bound);
    const threshold = highest > named ? highest : named;
    // After a pause it has as long to pay as ever.
    const isPaused = terms.isPaused || (terms.resumedMillis ?? 0) > newest.finalized_at_millis - bound;
    const facts = { ...terms, isPaused, credited, paid, threshold };
    const verdict = judgeUnpaid(facts);
    if (verdict === 'paid' || owed < named) return { verdict: 'paid', credited, paid };
    if (verdict === 'paused')
      throw new Error('the pool says that its payouts are paused, or were in the time that it has for them');
    if (verdict === 'below')
      throw new Error(
        `the pool owes ${owed} atoms, and says that it pays this address from ${threshold} atoms on, or did in that time${advancedWords(terms)}; the file says ${named}`,
      );
    const unlisted = await unlistedSum({ ...asked, known: found }, node);
    if (judgeUnpaid({ ...facts, unlisted }) === 'unlisted')
      throw new Error(`${unlistedWords(unlisted)}; ask again in an hour`);
    if (terms.earlier === undefined) throw new Error('the pool does not say which thresholds this address had before');
    return { verdict: 'unpaid', credited, paid };
  } catch (error) {
    return { verdict: 'unchecked', why: (error as Error).message };
  }
}

const advancedWords = ({ advanced }: PayoutTerms): string =>
  advanced === 0n ? '' : `, and that it once paid it ${advanced} atoms more than it had credited`;

function wordsOf({ verdict, why, credited, paid }: PaymentVerdict, threshold: string): string {
  if (verdict === 'unchecked') return `Whether the pool paid could not be checked: ${why}.`;
  if (verdict === 'malformed') return 'The file is not evidence of this form.';
  const sums = `its lists of more than a day ago credit ${credited} atoms, and the ledger shows payments of ${paid} since the first of them`;
  return verdict === 'unpaid'
    ? `The pool HAS NOT PAID what it credited: ${sums}. It pays from ${threshold} atoms on. Whether it cannot or will not pay, no file shows.`
    : `The pool has paid, or less than its threshold of ${threshold} atoms is left: ${sums}.`;
}

/** 5: the pool has not paid what it credited; 1: it has, or that could not be checked. */
export async function verifyUnpaidEvidence(file: unknown, sources: EvidenceSources): Promise<Judged> {
  const evidence = readUnpaidEvidence(file);
  const document: PaymentVerdict = evidence === undefined ? { verdict: 'malformed' } : await judge(evidence, sources);
  const words = [wordsOf(document, evidence?.threshold ?? '')];
  return { exit: document.verdict === 'unpaid' ? 5 : 1, document, words };
}
