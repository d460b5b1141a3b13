/**
 * Commitments (books rule 21): every payout transaction carries, as its text payload, its number and the head of all books up to then. So the
 * pool cannot change what it published before a payout: anybody can compare the payload on the ledger with the records.
 */

import { fromHex, fromUtf8, toHex, utf8 } from '../bytes.ts';
import { attempt } from '../errors.ts';
import { PAYLOAD_KINDS } from '../transactions/transaction.ts';
import { type BooksService, booksHead, FIRST_CHAIN, type SliceRecord } from './books-slice.ts';

export type BooksCommitment = {
  /** The payout's number (rule 16). Numbers have no gap, so a commitment missing in a list is noticed. */
  readonly number: number;
  /** The newest slice that was closed in both services. */
  readonly slice: number;
  /** `booksHead` over both services' chains at that slice, 96 hex characters. */
  readonly head: string;
};

const FORM = /^SVC-BOOKS\/2 ([1-9]\d{0,11}) (0|[1-9]\d{0,8}) ([0-9a-f]{96})$/;

/** `SVC-BOOKS/2 NUMBER SLICE HEAD`. */
export const commitmentText = ({ number, slice, head }: BooksCommitment): string =>
  `SVC-BOOKS/2 ${number} ${slice} ${head}`;

/** The payload of a transaction: the kind byte for text, and the text. */
export const commitmentPayload = (commitment: BooksCommitment): string =>
  toHex(Uint8Array.of(PAYLOAD_KINDS.text, ...utf8(commitmentText(commitment))));

/** Undefined if the payload is not a commitment. */
export function readCommitment(payloadHex: string): BooksCommitment | undefined {
  const payload = attempt(() => fromHex(payloadHex));
  if (!payload.ok || payload.value[0] !== PAYLOAD_KINDS.text) return undefined;
  const text = attempt(() => fromUtf8(payload.value.subarray(1)));
  return text.ok ? readCommitmentText(text.value) : undefined;
}

/** Undefined if the text is not a commitment. */
export function readCommitmentText(text: string): BooksCommitment | undefined {
  const found = FORM.exec(text);
  return found === null ? undefined : { number: Number(found[1]), slice: Number(found[2]), head: found[3] as string };
}

/** The head at a slice. A service that had no closed slice by then counts with FIRST_CHAIN. */
export const headAt = (chains: Readonly<Partial<Record<BooksService, string>>>): string =>
  toHex(booksHead({ pplns: chains.pplns ?? FIRST_CHAIN, solo: chains.solo ?? FIRST_CHAIN }));

/** A listed payout, and its commitment according to a node. */
export type LedgerCommitment = {
  readonly transaction_id: string;
  readonly height: number;
  /** Null when the node has no such transaction in that cut. */
  readonly payload_hex: string | null;
};

export type CommitmentFault = 'commitment_missing' | 'commitment';

/**
 * Whether a payout's commitment agrees with the records of both services: a fault, or the commitment. Undefined when a record of its slice is not
 * at hand.
 */
export function checkCommitment(
  { payload_hex: payload }: LedgerCommitment,
  recordAt: (service: BooksService, slice: number) => Pick<SliceRecord, 'chain'> | undefined,
): BooksCommitment | CommitmentFault | undefined {
  const commitment = payload === null ? undefined : readCommitment(payload);
  if (commitment === undefined) return 'commitment_missing';
  const [pplns, solo] = [recordAt('pplns', commitment.slice), recordAt('solo', commitment.slice)];
  if (pplns === undefined || solo === undefined) return undefined;
  return headAt({ pplns: pplns.chain, solo: solo.chain }) === commitment.head ? commitment : 'commitment';
}
