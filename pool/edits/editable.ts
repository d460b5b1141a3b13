/**
 * The settings that an operator can change in a running pool. Values are written as in the options of the same name,
 * and checked by the same rules.
 */
import { ATOMS_PER_COIN, formatCoins } from '../../protocol/amount.ts';
import { readPayoutMin, readPercent, readPoolName } from '../options.ts';

export const EDITABLE = ['pool_name', 'payout_min', 'fee_pplns', 'fee_solo', 'notice', 'pause_note'] as const;
export type Editable = (typeof EDITABLE)[number];

/** Both are public: plain text of one line. */
export const MAX_WORDS = 500;

const percentOf = (ppm: number): string => (ppm / 10_000).toString();
export const coinsOf = (atoms: bigint): string => formatCoins(atoms).replace(/\.?0+$/, '');

/** Control characters, line ends, and invisible characters: direction marks, zero-width spaces, tags. */
const UNSHOWN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u;

function readWords(word: string): string {
  const words = word.trim();
  if (words.length > MAX_WORDS) throw new Error(`must have at most ${MAX_WORDS} characters`);
  if (UNSHOWN.test(words)) throw new Error('must be plain text of one line');
  if (words === '') throw new Error('must not be empty');
  return words;
}

/** Normalises a value as typed; throws an error that says what is wrong with it. */
const READERS: Readonly<Record<Editable, (word: string) => string>> = {
  pool_name: readPoolName,
  payout_min: (word) => coinsOf(readPayoutMin(word)),
  fee_pplns: (word) => percentOf(readPercent(word)),
  fee_solo: (word) => percentOf(readPercent(word)),
  notice: readWords,
  pause_note: readWords,
};

/** With a much higher minimum all payouts would stop a day later. */
export const MAX_EDITED_PAYOUT_MIN = 100n * ATOMS_PER_COIN;

/**
 * Applies to new edits only: a stored one is always accepted. `file`: the minimum of the options, which may be higher.
 */
export function insistPayoutMin(value: string, file: bigint): void {
  const most = file > MAX_EDITED_PAYOUT_MIN ? file : MAX_EDITED_PAYOUT_MIN;
  if (readPayoutMin(value) > most)
    throw new EditRefusal(`must be at most ${coinsOf(most)} coins: a higher one needs the option and a restart`);
}

/** An error that says what is wrong with a value. */
export class EditRefusal extends Error {
  override readonly name = 'EditRefusal';
}

export function readValue(name: Editable, word: string): string {
  try {
    return READERS[name](word);
  } catch (error) {
    throw new EditRefusal((error as Error).message);
  }
}

export type FeeName = 'fee_pplns' | 'fee_solo';
export const FEE_SERVICES: Readonly<Record<FeeName, number>> = { fee_pplns: 0, fee_solo: 1 };
export const isFee = (name: Editable): name is FeeName => name in FEE_SERVICES;

export type FileTerms = {
  readonly name: string;
  readonly payoutMin: bigint;
  readonly feePpm: { readonly pplns: number; readonly solo: number };
};

/** The value of the option; null if there is no such option. */
export const fileValues = ({ name, payoutMin, feePpm }: FileTerms): Readonly<Record<Editable, string | null>> => ({
  pool_name: name,
  payout_min: coinsOf(payoutMin),
  fee_pplns: percentOf(feePpm.pplns),
  fee_solo: percentOf(feePpm.solo),
  notice: null,
  pause_note: null,
});

export const feeText = percentOf;
