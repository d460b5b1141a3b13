/**
 * Terms of slices that the books do not have, as journals note them (feed/terms-notes.ts): the database fell back, and the pool may have been
 * started with another fee or window since. A slice that was published opens again with the terms that it had (books rule 11). Of several
 * notes of a slice the newest counts: after two replacements of the database it may have been published twice, and miners have the last version.
 */
import type { Transaction } from '../database/connect.ts';
import { SERVICES, type TermsRecord } from '../journal-record.ts';

export type SliceTerms = {
  readonly windowThousandths: bigint;
  readonly feePpm: bigint;
  /** From a journal, and not from the start of a pool whose books are behind the chain (terms-in-force.ts). */
  readonly isPublished: boolean;
};

/** Time of a note that counts while no journal notes something else of a slice. */
export const BEFORE_ALL_NOTES = 0;

/**
 * A note and the slice that its journal entry counted in before the books fell back (slice-marks.ts). The mark also
 * counts for shares while the node is behind.
 */
export type MarkedNote = { readonly record: TermsRecord; readonly slice: number | undefined };

/**
 * Notes of slices that the books have say nothing new: that is all of them, as long as the database did not fall back. Nobody can have seen a slice beyond
 * `newest` and the mark, so a note that reaches further is cut short: a made-up one must not set the terms of all slices to come.
 */
export async function keepNotedTerms(
  transaction: Transaction,
  marked: readonly MarkedNote[],
  newest: number,
): Promise<void> {
  const notes = marked
    .map(({ record, slice = -1 }) => ({ ...record, through: Math.min(record.through, Math.max(newest, slice)) }))
    .filter(({ from, through }) => from <= through);
  if (notes.length === 0) return;
  await transaction`insert into noted_terms (service, from_slice, through_slice, window_thousandths, fee_ppm, at_millis)
    select n.service, n.first, n.last, n.w, n.fee, n.at from unnest(
      ${notes.map(({ service }) => SERVICES.indexOf(service))}::smallint[],
      ${notes.map(({ from }) => from)}::bigint[], ${notes.map(({ through }) => through)}::bigint[],
      ${notes.map(({ windowThousandths }) => windowThousandths)}::bigint[],
      ${notes.map(({ feePpm }) => feePpm)}::bigint[], ${notes.map(({ atMillis }) => atMillis)}::bigint[])
      as n(service, first, last, w, fee, at)
    where n.last > coalesce((select max(s.number) from slices s where s.service = n.service), -1)`;
}

/** What is noted of a slice that opens now; undefined for one that was never published. Notes up to it are done with. */
export async function takeNotedTerms(
  transaction: Transaction,
  service: number,
  slice: number,
): Promise<SliceTerms | undefined> {
  const [row] = await transaction<{ window: bigint; fee: bigint; at: string }[]>`select window_thousandths as window,
      fee_ppm as fee, at_millis::text as at from noted_terms where service = ${service} and ${slice} between from_slice and through_slice
    order by at_millis desc, id desc limit 1`;
  await transaction`delete from noted_terms where service = ${service} and through_slice <= ${slice}`;
  if (row === undefined) return undefined;
  const isPublished = Number(row.at) !== BEFORE_ALL_NOTES;
  return { windowThousandths: BigInt(row.window), feePpm: BigInt(row.fee), isPublished };
}
