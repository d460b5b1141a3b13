/**
 * Manages addresses that are handed out or watched ahead of use (docs/wallet.md, Addresses). A restored wallet finds
 * its money because every branch is watched LOOKAHEAD addresses beyond the last one that was paid or handed out.
 */

import { BRANCHES, type Branch } from '../keys/derivation.ts';
import type { Book } from './book.ts';
import type { AddressRecord } from './records.ts';

/** One batch of the node's address routes. */
export const LOOKAHEAD = 64;

export type Place = Pick<AddressRecord, 'branch' | 'index'>;

const lastGiven = (records: readonly AddressRecord[]): number => records.findLastIndex((record) => record.given);

/** Places whose records are missing so that each branch is watched far enough ahead. */
export function missingAddresses(book: Book): readonly Place[] {
  const missing: Place[] = [];
  for (const branch of Object.keys(BRANCHES) as Branch[]) {
    const records = book.branches[branch];
    const wanted = lastGiven(records) + 1 + LOOKAHEAD;
    // In full batches: one search of the history covers sixty-four addresses.
    if (records.length < wanted)
      for (let index = records.length; index < Math.ceil(wanted / LOOKAHEAD) * LOOKAHEAD; index++)
        missing.push({ branch, index });
  }
  return missing;
}

/** The next address that was not handed out, once it is watched. */
export function nextAddress(book: Book): AddressRecord | undefined {
  const records = book.branches.receive;
  return records[lastGiven(records) + 1];
}

/** The newest handed-out address that has not been paid, so that asking twice does not use up addresses. */
export function unusedAddress(book: Book): AddressRecord | undefined {
  const record = book.branches.receive[lastGiven(book.branches.receive)];
  return record !== undefined && !record.used && record.label === '' ? record : undefined;
}

/**
 * Change always returns to the first change address. On a transparent ledger a fresh one hides little, and a key that
 * the chain knows makes every later input a third smaller.
 */
export function changeAddress(book: Book): string {
  return (book.branches.change[0] as AddressRecord).address;
}

/** Addresses whose whole history has not been searched yet. */
export function unsearched(book: Book): readonly AddressRecord[] {
  const { searched } = book.meta;
  return (Object.keys(BRANCHES) as Branch[]).flatMap((branch) => book.branches[branch].slice(searched[branch]));
}
