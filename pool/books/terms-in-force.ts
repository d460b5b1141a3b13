/**
 * From which slice on new terms hold (books rule 3): from the one after that which the chain is in when an accountant starts with them. Books that are behind the
 * chain then open the slices before it with the terms that were in force, so that no fee counts for work that was done before it was announced.
 */
import { attempt } from '../../protocol/errors.ts';
import { sliceOfHeight } from '../../protocol/pplns.ts';
import type { Transaction } from '../database/connect.ts';
import type { SliceOptions } from './slices.ts';

const SETTING = 'terms_in_force';

/** What counts while no journal notes something else of a slice (noted-terms.ts). */
const BEFORE_ALL_NOTES = 0;

type Terms = { readonly window: number; readonly fee: number };

/** The terms of the newest start, by service, and the newest slice that has those of the starts before. */
type InForce = { readonly through: number; readonly terms: Readonly<Record<string, Terms>> };

type NewestSlice = Terms & { readonly service: number; readonly number: number };

async function readInForce(transaction: Transaction): Promise<InForce | undefined> {
  const [row] = await transaction<{ value: string }[]>`select value from settings where name = ${SETTING}`;
  const read = attempt(() => (row === undefined ? undefined : (JSON.parse(row.value) as InForce)));
  return read.ok ? read.value : undefined;
}

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
  await transaction`insert into settings values (${SETTING}, ${JSON.stringify(now)})
    on conflict (name) do update set value = excluded.value`;
}
