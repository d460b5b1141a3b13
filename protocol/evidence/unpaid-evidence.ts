/**
 * Evidence that a pool credits but does not pay (books rule 29): the lists with the unpaid credits of an account. Lists
 * and payments are public, so anybody can read them from the pool and from a node; the file only says which lists to
 * read.
 */
import { parseAtoms } from '../amount.ts';
import type { BooksService } from '../books/books-slice.ts';
import { ProtocolError } from '../errors.ts';

export const UNPAID_EVIDENCE_FORMAT = 'svc-pool-unpaid-evidence-1';

export type UnpaidEvidence = {
  readonly format: typeof UNPAID_EVIDENCE_FORMAT;
  readonly address: string;
  /** From which balance on the account is paid. */
  readonly threshold: string;
  /** What the account was owed, when, and for how long at least. */
  readonly owed: string;
  readonly at_millis: number;
  readonly for_hours: number;
  /** The account's credits in the lists that the miner judged. */
  readonly credits: readonly { readonly service: BooksService; readonly slice: number; readonly amount: string }[];
};

/** A day, and two of the pool's own payout intervals: an honest pool whose wallet failed overnight is not accused. */
export const unpaidBound = (intervalMillis: number): number => 24 * 3_600_000 + 2 * intervalMillis;

/** The thresholds of an account at a pool, in atoms. */
export type Thresholds = {
  /** The present one. */
  readonly minimum: bigint;
  /** Those before it, with the time until which each held; undefined where the pool does not say. */
  readonly earlier: readonly { readonly atoms: bigint; readonly untilMillis: number }[] | undefined;
};

/** The highest threshold within the bound before a time: a pool has as long to pay an account that lowers its own. */
export const highestThreshold = (
  { minimum, earlier = [] }: Thresholds,
  atMillis: number,
  boundMillis: number,
): bigint =>
  earlier.reduce(
    (highest, { atoms, untilMillis }) => (untilMillis > atMillis - boundMillis && atoms > highest ? atoms : highest),
    minimum,
  );

/** Credits that are older than the bound, and all payments since. */
export type UnpaidFacts = {
  readonly credited: bigint;
  readonly paid: bigint;
  /** What the ledger shows besides, of payments that the pool does not list. */
  readonly unlisted?: bigint;
  /** The highest of its time. */
  readonly threshold: bigint;
  /** What the pool says that it paid beyond its credits, before: it keeps as much of the later ones. */
  readonly advanced: bigint;
  readonly isPaused: boolean;
};

/** The one judge of what a pool owes: the miner and `verify-evidence` ask it. `below`: owed, but less than the threshold; `unlisted`: so little only with payments that the pool omits (rule 30). */
export function judgeUnpaid({ credited, paid, unlisted = 0n, threshold, advanced, isPaused }: UnpaidFacts) {
  const owed = credited - paid;
  if (owed <= 0n) return 'paid';
  if (owed < threshold + advanced) return 'below';
  if (isPaused) return 'paused';
  return owed - unlisted < threshold + advanced ? 'unlisted' : 'unpaid';
}

export const unlistedWords = (atoms: bigint): string =>
  `the ledger shows payments of ${atoms} atoms that the pool does not list: its database may have fallen back`;

/** Credits that a file names, the newest ones. */
export const MAX_UNPAID_CREDITS = 2_048;
const MAX_TEXT = 256;

/** Undefined for a file of another form. */
export function readUnpaidEvidence(value: unknown): UnpaidEvidence | undefined {
  const evidence = value as UnpaidEvidence;
  try {
    const { address, threshold, owed, credits } = evidence;
    if (typeof address !== 'string' || address.length > MAX_TEXT) return undefined;
    if (!Array.isArray(credits) || credits.length > MAX_UNPAID_CREDITS) return undefined;
    const names = new Set(credits.map(({ service, slice }) => `${service}/${slice}`));
    const isList = credits.every(
      ({ service, slice }) => (service === 'pplns' || service === 'solo') && Number.isSafeInteger(slice) && slice >= 0,
    );
    for (const each of [threshold, owed, ...credits.map(({ amount }) => amount)]) {
      if (typeof each !== 'string') return undefined;
      parseAtoms(each);
    }
    return isList && names.size === credits.length ? evidence : undefined;
  } catch (error) {
    if (error instanceof ProtocolError || error instanceof TypeError || error instanceof RangeError) return undefined;
    throw error;
  }
}
