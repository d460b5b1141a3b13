/**
 * Terms of slices that are missing in the books, as noted in journals (feed/terms-notes.ts): the database was replaced
 * by an older copy, and the pool may have been started with another fee or window since. A published slice opens again
 * with its original terms (books rule 11). Of several notes of a slice the newest counts: after two replacements of the
 * database it may have been published twice, and miners have the last version.
 */
import type { Transaction } from '../database/connect.ts';
import { SERVICES, type TermsRecord } from '../journal/journal-record.ts';

export type SliceTerms = {
  readonly windowThousandths: bigint;
  readonly feePpm: bigint;
};

/**
 * A note and the slice that its journal entry counted in before the database was replaced (slice-marks.ts). The mark
 * also counts for shares while the node is behind.
 */
export type MarkedNote = { readonly record: TermsRecord; readonly slice: number | undefined };

/**
 * Notes of slices that are in the books are ignored; without a replaced database that is all of them. No slice beyond
 * `newest` and the mark can have been published, so a note that reaches further is shortened: a forged note must not
 * set the terms of all future slices.
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

/** The noted terms of a slice that opens now; undefined if it was never published. Deletes notes up to it. */
export async function takeNotedTerms(
  transaction: Transaction,
  service: number,
  slice: number,
): Promise<SliceTerms | undefined> {
  const [row] = await transaction<{ window: bigint; fee: bigint }[]>`select window_thousandths as window,
      fee_ppm as fee from noted_terms where service = ${service} and ${slice} between from_slice and through_slice
    order by at_millis desc, id desc limit 1`;
  await transaction`delete from noted_terms where service = ${service} and through_slice <= ${slice}`;
  return row && { windowThousandths: BigInt(row.window), feePpm: BigInt(row.fee) };
}
