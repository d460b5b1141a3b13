/**
 * The slice from which new terms hold (books rule 3): the one after the slice that the chain is in when an accountant
 * starts with them. Books that are behind the chain then open the slices before it with the terms that were in force,
 * so that no fee counts for work that was done before it was announced.
 */
import { sliceOfHeight } from '../../protocol/pplns.ts';
import type { Sql, Transaction } from '../database/connect.ts';
import { PoolError } from '../pool-error.ts';
import { BEFORE_ALL_NOTES } from './noted-terms.ts';
import type { SliceOptions } from './slices.ts';

export const TERMS_SETTING = 'terms_in_force';

type Terms = { readonly window: number; readonly fee: number };

/** The terms of the newest start, by service, and the newest slice that has those of the starts before. */
type InForce = { readonly through: number; readonly terms: Readonly<Record<string, Terms>> };

type NewestSlice = Terms & { readonly service: number; readonly number: number };

const isCount = (value: unknown, least = 0): boolean => Number.isSafeInteger(value) && (value as number) >= least;

/** Undefined for a text that the pool did not write. */
export function parseInForce(text: string): InForce | undefined {
  let value: Partial<InForce> | null;
  try {
    value = JSON.parse(text) as Partial<InForce> | null;
  } catch {
    return undefined;
  }
  if (typeof value?.terms !== 'object' || value.terms === null || !isCount(value.through, -1)) return undefined;
  const isWhole = Object.values(value.terms).every((each) => isCount(each?.window, 1) && isCount(each?.fee));
  return isWhole ? (value as InForce) : undefined;
}

async function readInForce(transaction: Sql | Transaction): Promise<InForce | undefined> {
  const [row] = await transaction<{ value: string }[]>`select value from settings where name = ${TERMS_SETTING}`;
  if (row === undefined) return undefined;
  const terms = parseInForce(row.value);
  if (terms === undefined)
    throw new PoolError(
      'terms_unreadable',
      `the row ${TERMS_SETTING} of the table settings was changed and cannot be read: ${row.value.slice(0, 200)}; restore it from a backup, or delete it, and slices that are not open yet have the fee and window of the newest one`,
    );
  return terms;
}

/** The fee that the accountant was started with; undefined before its first start. */
export const startFee = async (sql: Sql | Transaction, service: number): Promise<number | undefined> =>
  (await readInForce(sql))?.terms[service]?.fee;

/** `height` is that of the chain, not of the books. */
export async function beginTerms(transaction: Transaction, options: SliceOptions, height: number): Promise<void> {
  const { services, sliceCuts, feePpm, windowThousandths } = options;
  const slice = sliceOfHeight(height, sliceCuts);
  const before = await readInForce(transaction);
  const newest = await transaction<NewestSlice[]>`select distinct on (service) service, number,
    window_thousandths as window, fee_ppm as fee from slices order by service, number desc`;
  for (const { service, number, ...opened } of newest) {
    const first = Math.max(number, before?.through ?? -1) + 1;
    const { window, fee } = before?.terms[service] ?? opened;
    if (first <= slice)
      await transaction`insert into noted_terms (service, from_slice, through_slice, window_thousandths, fee_ppm, at_millis)
        values (${service}, ${first}, ${slice}, ${window}, ${fee}, ${BEFORE_ALL_NOTES})`;
  }
  const now: InForce = {
    through: Math.max(slice, before?.through ?? -1),
    terms: Object.fromEntries(
      services.map((service) => [
        service,
        { window: Number(windowThousandths), fee: Number(feePpm.get(service) ?? 0n) },
      ]),
    ),
  };
  await transaction`insert into settings values (${TERMS_SETTING}, ${JSON.stringify(now)})
    on conflict (name) do update set value = excluded.value`;
}
