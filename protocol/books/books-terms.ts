/**
 * The published terms of a pool (books rule 3), and their validity. Page, miner and audit all use this file: with two
 * parsers, a document could mean different slice lengths to different readers.
 */
import { type BooksService, isWhole, type SliceTerms } from './books-slice.ts';

/** Terms from a slice on. */
export type TermsFrom = SliceTerms & { readonly from_slice: number };

/** The pool's published data about itself, read separately from any proof. */
export type PublishedTerms = {
  readonly network: string;
  readonly address: string;
  /** The key that receipts are signed with; absent where there are none. */
  readonly pool_key?: string;
  /** The first slice whose list has the lowest fee of its window (rule 7); absent for a pool of an earlier release. */
  readonly window_fee_from?: number;
  /** By service, ascending. */
  readonly terms: Readonly<Record<BooksService, readonly TermsFrom[]>>;
};

type TermsLists = PublishedTerms['terms'];

/**
 * `empty`: a service has none. `order`: not ascending. `slice_cuts`: a slice of no cuts. `slice_cuts_changed`: S differs, between entries or services.
 * `not_open`: for slices that are not open yet.
 */
export type TermsFault = 'empty' | 'order' | 'slice_cuts' | 'slice_cuts_changed' | 'not_open';

export const termsAt = (terms: readonly TermsFrom[], slice: number): TermsFrom | undefined =>
  terms.findLast((each) => each.from_slice <= slice);

/** The terms of slices that are asked for in ascending order: all of them together cost no more than the list is long. */
export function termsWalk(terms: readonly TermsFrom[]): (slice: number) => TermsFrom | undefined {
  let next = 0;
  return (slice) => {
    while ((terms[next]?.from_slice ?? Number.POSITIVE_INFINITY) <= slice) next++;
    return terms[next - 1];
  };
}

/**
 * S of a pool. It is the same in all its terms (`termsFault`), so no change can defer deadlines. Undefined if not
 * known.
 */
export function sliceCutsOf(terms: TermsLists): number | undefined {
  const cuts = (terms.pplns[0] ?? terms.solo[0])?.slice_cuts;
  return isWhole(cuts) && cuts > 0 ? cuts : undefined;
}

/**
 * Why terms cannot be those of a pool; undefined when they can. `height`: the newest cut that is known; without it
 * future slices are not checked.
 */
export function termsFault(terms: TermsLists, height?: number): TermsFault | undefined {
  const lists = [terms.pplns, terms.solo];
  if (lists.some((list) => list.length === 0)) return 'empty';
  const all = lists.flat();
  const [first] = all;
  const cuts = first?.slice_cuts ?? 0;
  if (!all.every((each) => isWhole(each.slice_cuts) && each.slice_cuts > 0)) return 'slice_cuts';
  if (all.some((each) => each.slice_cuts !== cuts)) return 'slice_cuts_changed';
  const isAscending = (list: readonly TermsFrom[]) =>
    list.every((each, i) => isWhole(each.from_slice) && each.from_slice > (list[i - 1]?.from_slice ?? -1));
  if (!lists.every(isAscending)) return 'order';
  // A slice may open between the reading of the height and that of the terms.
  const newest = height === undefined ? Number.MAX_SAFE_INTEGER : Math.floor(height / cuts) + 1;
  return all.some((each) => each.from_slice > newest) ? 'not_open' : undefined;
}

/**
 * The fee of a list (rule 7): the lowest of its own slice and of the slices of its window, so that no work is paid under
 * a higher fee than it was done under. Undefined without terms for the slice.
 */
export function listFee(
  { terms, window_fee_from: from = Number.POSITIVE_INFINITY }: Pick<PublishedTerms, 'terms' | 'window_fee_from'>,
  { service, slice, window }: ListedWindow,
): number | undefined {
  const own = termsAt(terms[service], slice)?.fee_ppm;
  if (own === undefined || slice < from) return own;
  return window.reduce((least, part) => Math.min(least, termsAt(terms[service], part.slice)?.fee_ppm ?? least), own);
}

/**
 * The `window_fee_from` of two documents of a pool: the lower one. A pool names it once, so a later one, or none, would
 * let it charge the fee of a slice for work that was done under a lower one.
 */
export const heldWindowFee = (before: number | undefined, now: number | undefined): number | undefined =>
  before === undefined || now === undefined ? (before ?? now) : Math.min(before, now);

type ListedWindow = {
  readonly service: BooksService;
  readonly slice: number;
  readonly window: readonly { readonly slice: number }[];
};
