/**
 * Evidence against a pool (books rule 20): receipts that it signed, and its own books, which contain less. Anyone with
 * the pool's public key can check it; nothing else from the miner or the pool is trusted. Node, page and `svc-pool
 * verify-evidence` use this.
 */
import { parseAddress } from '../address.ts';
import type { VerifySignature } from '../api/signed-answer.ts';
import { readWork, type SliceRecord, sliceChain } from '../books/books-slice.ts';
import { leafValue, type MembershipDocument } from '../books/pool-proof.ts';
import { booksText, OTHERS, type Receipt, type ReceiptRefusal, receiptRefusal } from '../books/receipt.ts';
import { type Bytes, fromHex } from '../bytes.ts';
import { ProtocolError } from '../errors.ts';

export const EVIDENCE_FORMAT = 'svc-pool-evidence-1';

export type Evidence = {
  readonly format: typeof EVIDENCE_FORMAT;
  /** As the pool sent it with the receipts. The check compares it with the key that the pool publishes. */
  readonly pool_key: string;
  readonly receipts: readonly Receipt[];
  /** The account's leaf under the root that the receipts name; null where the pool does not show it. */
  readonly leaf: MembershipDocument | null;
  /** The slice's record as the pool publishes it; null where it could not be read. */
  readonly record: SliceRecord | null;
};

export const EVIDENCE_SHORTCOMINGS = [
  'malformed',
  'key',
  'receipt',
  'other_slice',
  'no_leaf',
  'leaf',
  'books_suffice',
] as const;
export type EvidenceShortcoming = (typeof EVIDENCE_SHORTCOMINGS)[number];

export type EvidenceVerdict =
  /** The books that the pool signed hold less of the account's work than its front ends signed. */
  | { readonly verdict: 'convicts'; readonly charge: 'books_less'; readonly signed: bigint; readonly booked: bigint }
  /** The pool signed two different records of one closed slice. */
  | { readonly verdict: 'convicts'; readonly charge: 'two_books'; readonly chains: readonly [string, string] }
  | {
      readonly verdict: 'does_not';
      readonly why: EvidenceShortcoming;
      readonly receipt?: ReceiptRefusal;
      readonly signed?: bigint;
      readonly booked?: bigint;
    };

const shortOf = (why: EvidenceShortcoming, more: object = {}): EvidenceVerdict => ({
  verdict: 'does_not',
  why,
  ...more,
});

/**
 * The work that the front ends signed for the account. Each front end counts once: with the most that one of its
 * receipts says of the account, or with its workers' work added up, whichever is more. A worker counts once, with the
 * most that was signed for it. Who is among OTHERS differs between sheets, which may be made again: so their work is added
 * up with that of their own sheet's workers alone.
 */
export function signedWork(receipts: readonly Receipt[]): bigint {
  let signed = 0n;
  for (const own of Map.groupBy(receipts, ({ boot }) => boot).values()) {
    const named = own.filter(({ worker }) => worker !== OTHERS);
    const sheets = [...Map.groupBy(own, ({ receipts_root: root }) => root).values()];
    const accounts = own.map((receipt) => readWork(receipt.account_work));
    signed += [...accounts, ...[named, ...sheets].map(workOfWorkers)].reduce(most, 0n);
  }
  return signed;
}

function workOfWorkers(receipts: readonly Receipt[]): bigint {
  const works = new Map<string, bigint>();
  for (const { worker, work } of receipts) works.set(worker, most(works.get(worker) ?? 0n, readWork(work)));
  return [...works.values()].reduce((sum, work) => sum + work, 0n);
}

const most = (a: bigint, b: bigint): bigint => (a > b ? a : b);

/** The root that a receipt names, as a leaf is checked against it. */
export const signedRoot = (receipt: Receipt) => ({
  hash: fromHex(receipt.root, 48),
  sum: readWork(receipt.total_work),
  count: receipt.accounts,
});

function judge(evidence: Evidence, poolKey: Bytes, verify: VerifySignature | undefined): EvidenceVerdict {
  const [first] = evidence.receipts;
  if (evidence.format !== EVIDENCE_FORMAT || first === undefined) return shortOf('malformed');
  for (const receipt of evidence.receipts) {
    const refusal = receiptRefusal(receipt, poolKey, verify);
    if (refusal !== undefined) return shortOf(refusal === 'signature' ? 'key' : 'receipt', { receipt: refusal });
    const isSame =
      receipt.network === first.network &&
      receipt.service === first.service &&
      receipt.slice === first.slice &&
      receipt.address === first.address;
    if (!isSame) return shortOf('other_slice');
  }
  const other = evidence.receipts.find((receipt) => booksText(receipt) !== booksText(first));
  if (other !== undefined) return { verdict: 'convicts', charge: 'two_books', chains: [first.chain, other.chain] };
  if (evidence.leaf === null) return shortOf('no_leaf');
  const payload = parseAddress(first.address, first.network).payload;
  const booked = leafValue(signedRoot(first), payload, evidence.leaf, first.network);
  if (booked === undefined) return shortOf('leaf');
  const signed = signedWork(evidence.receipts);
  if (booked >= signed) return shortOf('books_suffice', { signed, booked });
  return { verdict: 'convicts', charge: 'books_less', signed, booked };
}

export function judgeEvidence(evidence: Evidence, poolKey: Bytes, verify?: VerifySignature): EvidenceVerdict {
  try {
    return judge(evidence, poolKey, verify);
  } catch (error) {
    if (error instanceof ProtocolError || error instanceof TypeError || error instanceof RangeError)
      return shortOf('malformed');
    throw error;
  }
}

/** Whether a published record is the one that the receipts were signed for. */
export function isSignedRecord(record: SliceRecord, receipt: Receipt): boolean {
  try {
    return (
      sliceChain(record) === receipt.chain &&
      record.root === receipt.root &&
      record.accounts === receipt.accounts &&
      record.total_work === receipt.total_work
    );
  } catch {
    return false;
  }
}
