/**
 * Fees that an operator changed in a running pool, by the slice from which each holds. A fee never applies to work done
 * before it was announced: a lower one holds from the next slice on, a higher one a day later (a day of the chain, in
 * cuts). Slices that are open or closed keep theirs.
 */
import { INTERVAL_CUTS } from '../../protocol/network.ts';
import { sliceOfHeight } from '../../protocol/pplns.ts';

/** `ppm` null: the fee that the pool was started with. */
export type FeeEntry = { readonly from: number; readonly ppm: number | null };
/** By `from`, ascending. */
export type FeeSchedule = readonly FeeEntry[];

/** Changes that may be announced at a time, with those that the books still need. */
export const MOST_ANNOUNCED = 16;
const ALL_PPM = 1_000_000;

/** Cuts between the announcement of a higher fee and the slice that it begins with. */
export const RISE_NOTICE_CUTS = INTERVAL_CUTS;

export type FeeMoment = {
  /** The fee that the pool was started with. */
  readonly file: number;
  /** The newest slice that is open, or that the chain is in. */
  readonly slice: number;
  /** The newest slice of the books: where they are behind the chain, those between are opened later, with the fees that were announced for them. */
  readonly opened: number;
  readonly sliceCuts: number;
};

export const feeEntryAt = (schedule: FeeSchedule, slice: number): FeeEntry | undefined =>
  schedule.findLast(({ from }) => from <= slice);

/** Undefined if the fee of the start holds. */
export const feeAt = (schedule: FeeSchedule, slice: number): number | undefined =>
  feeEntryAt(schedule, slice)?.ppm ?? undefined;

export const announced = (schedule: FeeSchedule, slice: number): FeeSchedule =>
  schedule.filter(({ from }) => from > slice);

/**
 * Undefined if too many changes are announced already. A change replaces those announced for later slices, and a rise
 * replaces every rise announced before, so that at most one rise is pending. Announced lower fees stay, and so does the
 * same rise, with its earlier slice.
 */
export function withFee(schedule: FeeSchedule, ppm: number | null, moment: FeeMoment): FeeSchedule | undefined {
  const { file, slice, opened, sliceCuts } = moment;
  const inForce = feeEntryAt(schedule, slice);
  const coming = announced(schedule, slice);
  const value = (entry: { readonly ppm: number | null } | undefined) => entry?.ppm ?? file;
  // Announced fees count as promised: cancelling a lower fee is a rise too.
  const least = Math.min(value(inForce), ...coming.map(value));
  const isRise = value({ ppm }) > least;
  const from = isRise ? sliceOfHeight((slice + 1) * sliceCuts + RISE_NOTICE_CUTS - 1, sliceCuts) + 1 : slice + 1;
  let last = value(inForce);
  const before = coming.filter((entry) => {
    if (entry.from >= from || (isRise && entry.ppm !== ppm && value(entry) > last)) return false;
    last = value(entry);
    return true;
  });
  const oldest = feeEntryAt(schedule, Math.min(opened, slice))?.from ?? 0;
  const needed = [...schedule.filter((entry) => entry.from >= oldest && entry.from <= slice), ...before];
  const first = needed.findIndex((entry) => entry.ppm !== null);
  const kept = first === -1 ? [] : needed.slice(first);
  if (kept.length >= MOST_ANNOUNCED) return undefined;
  const isSame = (kept.at(-1)?.ppm ?? null) === ppm;
  return isSame ? kept : [...kept, { from, ppm }];
}

/** Undefined for a text that was not written by an edit. */
export function parseSchedule(text: string): FeeSchedule | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (!Array.isArray(value)) return undefined;
  const isEntry = (entry: Partial<FeeEntry> | null) =>
    Number.isSafeInteger(entry?.from) &&
    (entry?.ppm === null || (Number.isSafeInteger(entry?.ppm) && (entry?.ppm as number) >= 0)) &&
    (entry?.ppm ?? 0) <= ALL_PPM;
  const isAscending = value.every((entry, i) => isEntry(entry) && (i === 0 || value[i - 1].from < entry.from));
  return isAscending ? (value as FeeSchedule) : undefined;
}
