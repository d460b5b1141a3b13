/**
 * Terms of slices that the books do not have, as journals note them (feed/terms-notes.ts): the database fell back, and the pool may have been
 * started with another fee or window since. A slice that was published opens again with the terms that it had (books rule 11). The first
 * note of a slice counts.
 */
import type { Transaction } from '../database/connect.ts';
import { SERVICES, type TermsRecord } from '../journal-record.ts';

export type SliceTerms = { readonly windowThousandths: bigint; readonly feePpm: bigint };

/** Notes of slices that the books have say nothing new: that is all of them, as long as the database did not fall back. */
export async function keepNotedTerms(transaction: Transaction, records: readonly TermsRecord[]): Promise<void> {
  for (const { service: name, from, through, windowThousandths, feePpm } of records) {
    const service = SERVICES.indexOf(name);
    await transaction`insert into noted_terms (service, from_slice, through_slice, window_thousandths, fee_ppm)
      select ${service}, ${from}, ${through}, ${windowThousandths}, ${feePpm}
      where not exists (select from slices where service = ${service} and number >= ${through})
        and not exists (select from noted_terms where service = ${service} and from_slice <= ${from}
          and through_slice >= ${through})`;
  }
}

/** What is noted of a slice that opens now; undefined for one that was never published. Notes up to it are done with. */
export async function takeNotedTerms(
  transaction: Transaction,
  service: number,
  slice: number,
): Promise<SliceTerms | undefined> {
  const [row] = await transaction<{ window: bigint; fee: bigint }[]>`select window_thousandths as window, fee_ppm as fee
    from noted_terms where service = ${service} and ${slice} between from_slice and through_slice order by id limit 1`;
  await transaction`delete from noted_terms where service = ${service} and through_slice <= ${slice}`;
  return row === undefined ? undefined : { windowThousandths: BigInt(row.window), feePpm: BigInt(row.fee) };
}
