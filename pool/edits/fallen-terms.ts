/**
 * What counts after the database was replaced by an older copy of itself: the terms that it says, or those that an
 * instance has announced. Pure.
 */
import { parseInForce } from '../books/terms-in-force.ts';
import { coinsOf } from './editable.ts';
import { feeRow } from './edited-fee.ts';
import { changePoints, type FeeSchedule, feeInForce, type OptionFees, parseSchedule } from './fee-schedule.ts';
import { type Minimums, minimumAt, minimumsText, parseMinimums, withMinimum } from './minimum-schedule.ts';
import { newEdition, type Terms, type TermsRow } from './terms-rows.ts';

/**
 * `kept`: the database has all that the instance announced. `fell`: it has less, and nothing of its own. `apart`: others
 * have gone on with it, and announced what it said, while this instance was away.
 */
export type Relation = 'kept' | 'fell' | 'apart';

export function relationOf(known: Terms, found: Terms): Relation {
  const [last, newest] = [known.editions.at(-1), found.editions.at(-1)];
  if (last === undefined || newest === last) return 'kept';
  // Who has more changes in fewer slices is a copy of before another fall, and those changes were lost in it.
  if (found.editions.includes(last)) return found.slice >= known.slice ? 'kept' : 'apart';
  // Before the accountant's first start the pool has announced nothing.
  const isOlder = newest === undefined || found.rows.terms_in_force === undefined || known.editions.includes(newest);
  return isOlder && found.slice <= known.slice ? 'fell' : 'apart';
}

/**
 * Of both the better for miners: in each slice that is not open yet the lower fee, and the lower smallest payout. Others
 * have read only one of them, so that neither a rise nor another window may come from the other; the operator can
 * announce it again. `opened`: the newest slice of the books, by service.
 */
export function joinedTerms(
  found: Terms,
  known: Terms,
  { opened, nowMillis }: { readonly opened: readonly number[]; readonly nowMillis: number },
): Pick<Terms, 'editions' | 'rows'> {
  const fees = opened.map((slice, service): [TermsRow, string | undefined] => [
    feeRow(service),
    joinedFees(found, known, service, slice),
  ]);
  const rows = { ...found.rows, ...joinedMinimums(found, known, nowMillis) };
  for (const [row, value] of fees) if (value !== undefined) rows[row] = value;
  const before = known.editions.filter((edition) => !found.editions.includes(edition));
  return { editions: [...before, ...found.editions, newEdition()], rows };
}

type KnownFees = { readonly schedule: FeeSchedule; readonly options: OptionFees };

/** Undefined where there are none, or what is there cannot be read. */
function feesOf({ rows }: Terms, service: number): KnownFees | undefined {
  const options = parseInForce(rows.terms_in_force ?? '')?.[service]?.fees;
  const schedule = parseSchedule(rows[feeRow(service)] ?? '[]');
  return options === undefined || schedule === undefined ? undefined : { options, schedule };
}

/** Undefined if those of the database are lower everywhere. */
function joinedFees(found: Terms, known: Terms, service: number, opened: number): string | undefined {
  const [ours, theirs] = [feesOf(found, service), feesOf(known, service)];
  if (ours === undefined || theirs === undefined) return undefined;
  const feeOf = ({ schedule, options }: KnownFees, slice: number) => feeInForce(schedule, options, slice);
  const points = [ours, theirs].flatMap(({ schedule, options }) => changePoints(schedule, options, opened));
  const slices = [...new Set([opened + 1, ...points])].sort((a, b) => a - b);
  if (slices.every((slice) => feeOf(ours, slice) <= feeOf(theirs, slice))) return undefined;
  const fees = slices.map((from) => ({ from, ppm: Math.min(feeOf(ours, from), feeOf(theirs, from)) }));
  const changes = fees.filter(({ ppm }, i) => ppm !== fees[i - 1]?.ppm);
  return JSON.stringify([...ours.schedule.filter(({ from }) => from <= opened), ...changes]);
}

function joinedMinimums(found: Terms, known: Terms, nowMillis: number): Partial<Record<TermsRow, string>> {
  const [ours, theirs] = [minimumsOf(found), minimumsOf(known)];
  const [wish, other] = [ours?.at(-1)?.atoms, theirs?.at(-1)?.atoms];
  if (ours === undefined || theirs === undefined || wish === undefined || other === undefined) return {};
  const least = [ours, theirs].map((each) => minimumAt(each, nowMillis) ?? other).reduce((a, b) => (a < b ? a : b));
  const lower = other < wish ? other : wish;
  const minimums = withMinimum(withMinimum(ours, least, nowMillis), lower, nowMillis);
  return {
    payout_min_schedule: minimumsText(minimums),
    ...(lower === wish ? {} : { edit_payout_min: coinsOf(lower) }),
  };
}

const minimumsOf = ({ rows }: Terms): Minimums | undefined => parseMinimums(rows.payout_min_schedule ?? '[]');
