/**
 * Receipts that convict a pool (books rule 20). Needs only the file and the pool's public key; with the pool's API it is also
 * checked whether the pool publishes that key and that slice, and with a node also whether the pool's payouts commit to it.
 */
import { type BooksSources, gatherRecord } from '../../protocol/books/books-evidence.ts';
import type { SliceRecord } from '../../protocol/books/books-slice.ts';
import { type BooksVerdict, judgeRecord } from '../../protocol/books/books-verdict.ts';
import { PoolOmission, PoolSilence } from '../../protocol/books/pool-silence.ts';
import { poolKeyName, type Receipt } from '../../protocol/books/receipt.ts';
import { fromHex } from '../../protocol/bytes.ts';
import { ProtocolError } from '../../protocol/errors.ts';
import {
  type Evidence,
  type EvidenceShortcoming,
  type EvidenceVerdict,
  judgeEvidence,
} from '../../protocol/evidence/receipt-evidence.ts';
import { verifyMessage } from '../../runtime/native/ml-dsa.ts';
import { PoolError } from '../pool-error.ts';
import type { EvidenceSources, Judged } from './judged-evidence.ts';

/** Longest text of a receipt that is shown. */
const MAX_TEXT = 128;

const WHY: Readonly<Record<EvidenceShortcoming, string>> = {
  malformed: 'the file is not evidence of this form',
  key: 'a receipt is not signed with the pool’s key',
  receipt: 'a receipt does not belong to what was signed',
  other_slice: 'the receipts are of different accounts or slices',
  no_leaf: 'the file lacks the leaf of the books: it shows only that the pool signed the receipts',
  leaf: 'the leaf is not one of the books that the receipts name',
  books_suffice: 'the books hold at least what the pool signed for',
};

/** Neither the pool's slices nor the ledger say anything of what the pool did not sign. */
const UNSIGNED: readonly EvidenceShortcoming[] = ['malformed', 'key', 'receipt'];

/** `isKnown`: the key is known to be the pool's, and not only taken from the file. */
function wordsOf(verdict: EvidenceVerdict, isKnown: boolean): string {
  if (verdict.verdict === 'does_not') {
    const figures =
      verdict.signed === undefined ? '' : ` (signed for ${verdict.signed}, booked ${verdict.booked}, in hashes)`;
    return `The evidence does not convict the pool: ${WHY[verdict.why]}${figures}.`;
  }
  const charge =
    verdict.charge === 'two_books'
      ? 'it signed two different records of one closed slice'
      : `it signed for ${verdict.signed} hashes of accepted work, and its books of the same slice hold ${verdict.booked}`;
  return isKnown
    ? `The evidence CONVICTS the pool: ${charge}.`
    : `The evidence convicts the holder of the key in the file: ${charge}. Anybody can make a key: whether that is the pool’s key is not known.`;
}

/** `hidden`: the pool answers, but shows no record of the slice. */
type Published = { readonly key: boolean | null; readonly record: boolean | null; readonly hidden: boolean };

/** The pool that is asked: its API, and its terms, which all checks use; undefined where they could not be read. */
type AskedPool = { readonly read: BooksSources['pool']; readonly terms: { readonly pool_key?: string } | undefined };

async function askedPool(published: EvidenceSources['pool']): Promise<AskedPool | undefined> {
  if (published === undefined) return undefined;
  const terms = (await published('terms').catch(() => undefined)) as AskedPool['terms'] | null;
  return { read: async (path) => (path === 'terms' ? terms : published(path)), terms: terms ?? undefined };
}

/**
 * Whether the pool publishes the same now; null if it could not be queried. The slices of a pool that did not sign the
 * receipts say nothing of them: it may be another pool.
 */
async function publishedOf(
  first: Receipt | undefined,
  key: string,
  isSigned: boolean,
  pool: AskedPool | undefined,
): Promise<Published> {
  const own = pool?.terms === undefined ? null : pool.terms.pool_key === key;
  if (pool === undefined || own !== true || !isSigned) return { key: own, record: null, hidden: false };
  const { read } = pool;
  const path = `slices/${first?.service}?limit=1&cursor=${(first?.slice ?? 0) + 1}-0`;
  const page = (await read(path).catch(() => undefined)) as { slices: (SliceRecord | null)[] } | null | undefined;
  const shown = Array.isArray(page?.slices) ? page.slices : [];
  const record = shown.find((each) => each?.slice === first?.slice);
  return {
    key: own,
    record: record == null ? null : record.chain === first?.chain && record.root === first?.root,
    hidden: first !== undefined && page !== undefined && record == null,
  };
}

const publicWords = ({ key, record, hidden }: Published): string[] => [
  ...(key === null
    ? []
    : [
        key
          ? 'The pool publishes this key.'
          : 'The pool publishes another key now, or is another pool: its slices were not compared.',
      ]),
  ...(hidden ? ['The pool answers, and shows no record of this slice. Ask again in an hour.'] : []),
  ...(record === null
    ? []
    : [
        record
          ? 'The pool publishes this slice as it signed it.'
          : 'The pool publishes another record of this slice than it signed.',
      ]),
];

/**
 * `hidden`: the pool answers without a record that it must have, because it signed it or a payout commits to it. Its
 * database may have been replaced by an older copy for the moment. `unread`: it does not answer, which says nothing.
 */
type LedgerVerdict =
  | BooksVerdict
  | { readonly verdict: 'hidden'; readonly reason: string }
  | { readonly verdict: 'unread'; readonly reason: string };

/**
 * Whether the record that the pool signed is the one that its payouts commit to on the ledger; null without a pool and
 * a node.
 */
async function ledgerOf(
  first: Receipt | undefined,
  pool: AskedPool | undefined,
  node: EvidenceSources['node'],
): Promise<LedgerVerdict | null> {
  if (first === undefined || pool === undefined || node === undefined) return null;
  if (pool.terms === undefined) return { verdict: 'unread', reason: 'it shows no terms' };
  try {
    return judgeRecord(first, await gatherRecord(first, { pool: pool.read, node }));
  } catch (error) {
    if (error instanceof PoolOmission) return { verdict: 'hidden', reason: error.message };
    if (error instanceof PoolSilence || error instanceof PoolError) return { verdict: 'unread', reason: error.message };
    if (error instanceof ProtocolError || error instanceof TypeError || error instanceof RangeError)
      return { verdict: 'false', reason: 'malformed' };
    throw error;
  }
}

function ledgerWords(verdict: LedgerVerdict | null): string[] {
  if (verdict === null) return [];
  if (verdict.verdict === 'unread')
    return [`Whether the ledger holds these books could not be checked: the pool does not answer (${verdict.reason}).`];
  if (verdict.verdict === 'hidden')
    return [`The pool answers, and leaves out records that it must have (${verdict.reason}). Ask again in an hour.`];
  if (verdict.verdict === 'false')
    return [`The ledger and the pool’s records do not hold the books that the pool signed (${verdict.reason}).`];
  if (verdict.verdict === 'unchecked')
    return [`Whether the ledger holds these books could not be checked (${verdict.missing.join(', ')}).`];
  const { committed } = verdict;
  return [
    committed === null
      ? 'No payout commits these books on the ledger yet.'
      : `The payout ${committed.transaction_id} at height ${committed.height} commits these books on the ledger.`,
  ];
}

/** Account and slice of the receipts, if they can be read. */
function firstOf(receipts: unknown): Receipt | undefined {
  const [first] = Array.isArray(receipts) ? (receipts as (Receipt | null)[]) : [];
  const texts = [first?.address, first?.service, first?.network];
  const isNamed = texts.every((text) => typeof text === 'string' && text.length <= MAX_TEXT);
  const isService = first?.service === 'pplns' || first?.service === 'solo';
  return isNamed && isService && Number.isSafeInteger(first?.slice) ? (first as Receipt) : undefined;
}

/** 0: convicts the pool; 1: does not; 3: convicts the holder of a key that is not known to be the pool's. */
export async function verifyReceiptEvidence(
  file: unknown,
  { poolKey, pool: read, node }: EvidenceSources,
): Promise<Judged> {
  const evidence = file as Evidence;
  const named =
    typeof evidence?.pool_key === 'string' && /^([0-9a-f]{2})*$/.test(evidence.pool_key) ? evidence.pool_key : '';
  // A short name selects the key in the file, if it is that key's name.
  const isShort = poolKey !== undefined && poolKey.length === 32;
  const isNamed = isShort && poolKeyName(fromHex(named)) === poolKey;
  const key = poolKey === undefined || isNamed ? named : isShort ? '' : poolKey;
  const verdict = judgeEvidence(evidence, fromHex(key), (signature, message, publicKey) =>
    verifyMessage(publicKey, message, signature),
  );
  const first = firstOf(evidence?.receipts);
  const isSigned = verdict.verdict === 'convicts' || !UNSIGNED.includes(verdict.why);
  const pool = await askedPool(read);
  const published = await publishedOf(first, key, isSigned, pool);
  const isKnown = poolKey !== undefined || published.key === true;
  const ledger = isSigned && published.key !== false ? await ledgerOf(first, pool, node) : null;
  const name = poolKeyName(fromHex(key));
  return {
    exit: verdict.verdict !== 'convicts' ? 1 : isKnown ? 0 : 3,
    document: { ...verdict, key: name, key_given: poolKey !== undefined, key_known: isKnown, published, ledger },
    words: [
      wordsOf(verdict, isKnown),
      ...(first === undefined
        ? []
        : [`Account ${first.address}, ${first.service}, slice ${first.slice}, network ${first.network}.`]),
      poolKey === undefined
        ? `The key is the one in the file (${name}): compare it with the pool’s own, or give --pool-key.`
        : `The key is the one given (${name}).`,
      ...publicWords(published),
      ...ledgerWords(ledger),
    ],
  };
}
