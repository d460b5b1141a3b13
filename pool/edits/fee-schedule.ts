/**
 * The one schedule of fees, by the slice from which each holds: those of the options, which a restart changes, and over
 * them those that an operator changed in the running pool. Work is paid under the fee it was done under: a lower fee
 * holds from the next slice on, a higher one a day later (a day of the chain, in cuts), whichever way it was changed.
 * Slices that are open or closed keep theirs.
 */

import { sliceOfHeight } from '../../protocol/books/pplns.ts';
import { INTERVAL_CUTS } from '../../protocol/network.ts';

/** `ppm` null: the fee of the options. */
export type FeeEntry = { readonly from: number; readonly ppm: number | null };
/** By `from`, ascending. */
export type FeeSchedule = readonly FeeEntry[];

/** Changes that may be announced at a time, with those that the books still need. */
export const MOST_ANNOUNCED = 16;
const ALL_PPM = 1_000_000;

/** Cuts between the announcement of a higher fee and the slice that it begins with. */
export const RISE_NOTICE_CUTS = INTERVAL_CUTS;

/** The first slice that begins a day after the end of this one. */
export const sliceAfterNotice = (slice: number, sliceCuts: number): number =>
  sliceOfHeight((slice + 1) * sliceCuts + RISE_NOTICE_CUTS - 1, sliceCuts) + 1;

/** The fees of the options by slice, ascending; the first also counts before its slice. */
export type OptionFees = readonly { readonly from: number; readonly ppm: number }[];

export type FeeMoment = {
  /** What counts where the schedule has nothing. */
  readonly options: OptionFees;
  /** The newest slice that is open, or that the chain is in. */
  readonly slice: number;
  /** The newest slice of the books: where they are behind the chain, those between are opened later, with the fees that were announced for them. */
  readonly opened: number;
  readonly sliceCuts: number;
};

export const feeEntryAt = (schedule: FeeSchedule, slice: number): FeeEntry | undefined =>
  schedule.findLast(({ from }) => from <= slice);

/** Undefined if the fee of the options holds. */
export const feeAt = (schedule: FeeSchedule, slice: number): number | undefined =>
  feeEntryAt(schedule, slice)?.ppm ?? undefined;

const optionFeeAt = (options: OptionFees, slice: number): number =>
  (options.findLast(({ from }) => from <= slice) ?? options[0])?.ppm ?? 0;

/** The fee of a slice. */
export const feeInForce = (schedule: FeeSchedule, options: OptionFees, slice: number): number =>
  feeAt(schedule, slice) ?? optionFeeAt(options, slice);

/** The changes after a slice, from the schedule or from the options. */
export function feeChanges(schedule: FeeSchedule, options: OptionFees, slice: number): OptionFees {
  const changes: { from: number; ppm: number }[] = [];
  for (const from of changePoints(schedule, options, slice)) {
    const ppm = feeInForce(schedule, options, from);
    if (ppm !== (changes.at(-1)?.ppm ?? feeInForce(schedule, options, slice))) changes.push({ from, ppm });
  }
  return changes;
}

export const changePoints = (schedule: FeeSchedule, options: OptionFees, slice: number): number[] =>
  [...new Set([...schedule, ...options].map(({ from }) => from))].filter((from) => from > slice).sort((a, b) => a - b);

export const announced = (schedule: FeeSchedule, slice: number): FeeSchedule =>
  schedule.filter(({ from }) => from > slice);

/**
 * Undefined if too many changes are announced already. A change replaces those announced for later slices, and a rise
 * replaces every rise announced before, so that at most one rise is pending. Announced lower fees stay, and so does the
 * same rise, with its earlier slice.
 */
export function withFee(schedule: FeeSchedule, ppm: number | null, moment: FeeMoment): FeeSchedule | undefined {
  const { options, slice, opened, sliceCuts } = moment;
  const coming = announced(schedule, slice);
  const points = [slice, ...changePoints(schedule, options, slice)];
  // Announced fees count as promised: cancelling a lower fee is a rise too.
  const least = Math.min(...points.map((each) => feeInForce(schedule, options, each)));
  const isRise = (ppm ?? Math.max(...points.map((each) => optionFeeAt(options, each)))) > least;
  const from = isRise ? sliceAfterNotice(slice, sliceCuts) : slice + 1;
  const oldest = feeEntryAt(schedule, Math.min(opened, slice))?.from ?? 0;
  const needed = schedule.filter((entry) => entry.from >= oldest && entry.from <= slice);
  let last = feeInForce(schedule, options, slice);
  for (const [i, entry] of coming.entries()) {
    const value = entry.ppm ?? optionFeeAt(options, entry.from);
    if (entry.from >= from) break;
    const isOtherRise = isRise && entry.ppm !== ppm && value > last;
    // A fee of the options may lie under it that is higher: then it is a promise, too.
    const covered = [entry.from, ...points].filter(
      (each) => each >= entry.from && each < (coming[i + 1]?.from ?? from),
    );
    const isPromise = covered.some((each) => feeInForce(needed, options, each) > feeInForce(schedule, options, each));
    if (isOtherRise && !isPromise) continue;
    last = value;
    needed.push(entry);
  }
  const first = needed.findIndex((entry) => entry.ppm !== null);
  const kept = first === -1 ? [] : needed.slice(first);
  if (kept.length >= MOST_ANNOUNCED) return undefined;
  const isSame = (kept.at(-1)?.ppm ?? null) === ppm;
  return isSame ? kept : [...kept, { from, ppm }];
}

/** The fees of the options after a start with another one; with too many changes at once those before stay. */
export function withOptionFee(fees: OptionFees, ppm: number, moment: Omit<FeeMoment, 'options'>): OptionFees {
  return (withFee(fees, ppm, { ...moment, options: [] }) ?? fees) as OptionFees;
}

/** Undefined for a text that was not written by an edit. */
export function parseSchedule(text: string): FeeSchedule | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  return isSchedule(value) ? value : undefined;
}

export function isSchedule(value: unknown): value is FeeSchedule {
  if (!Array.isArray(value)) return false;
  const isEntry = (entry: Partial<FeeEntry> | null) =>
    Number.isSafeInteger(entry?.from) &&
    (entry?.ppm === null || (Number.isSafeInteger(entry?.ppm) && (entry?.ppm as number) >= 0)) &&
    (entry?.ppm ?? 0) <= ALL_PPM;
  return value.every((entry, i) => isEntry(entry) && (i === 0 || value[i - 1].from < entry.from));
}

export const isOptionFees = (value: unknown): value is OptionFees =>
  isSchedule(value) && value.length > 0 && value.every(({ ppm }) => ppm !== null);
