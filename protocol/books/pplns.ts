/**
 * PPLNS by slices (books rules 2 to 5), pure and exact. A block belongs to the slice of its anchor. Its window is the
 * whole slices strictly before that one, newest first, that make up W of work, the oldest counted in part. It is in
 * this folder because three programs must agree on it to the atom: the pool, its audit, and the miner.
 */
import { type Bytes, compareBytes } from '../bytes.ts';
import { ProtocolError } from '../errors.ts';

/** A closed slice's work by account, named by its payload in hex. */
export type SliceWork = { readonly slice: number; readonly total: bigint; readonly work: ReadonlyMap<string, bigint> };

/** The same with accounts numbered in ascending order of payload; `each` tells all rows, an account at most once. */
export type RankedSlice = { readonly total: bigint; each(tell: (rank: number, work: bigint) => void): void };

export type WindowPart = {
  readonly slice: number;
  readonly total: bigint;
  /** How much of the slice's work counts; below `total` only for the oldest part. */
  readonly counted: bigint;
};
export type Window = { readonly parts: readonly WindowPart[]; readonly counted: bigint };

export const sliceOfHeight = (height: number, sliceCuts: number): number => Math.floor(height / sliceCuts);

/** `totals` yields closed slices strictly before the block's own, newest first. Empty slices are passed over. */
export function windowOf(windowWork: bigint, totals: Iterable<{ slice: number; total: bigint }>): Window {
  if (windowWork < 1n) throw new ProtocolError('out_of_range', 'a window holds at least one hash of work');
  const parts: WindowPart[] = [];
  let counted = 0n;
  for (const { slice, total } of totals) {
    if (total === 0n) continue;
    const wanted = windowWork - counted;
    const part = { slice, total, counted: total < wanted ? total : wanted };
    parts.push(part);
    counted += part.counted;
    if (counted === windowWork) break;
  }
  return { parts, counted };
}

/**
 * An account's weight in a window, scaled by the total of the oldest slice so that counting it in part stays exact:
 * the weights of all accounts add up to `weightTotal(window)`.
 */
export function weightOf(window: Window, workIn: (slice: number) => bigint): bigint {
  const scale = window.parts.at(-1)?.total ?? 1n;
  let weight = 0n;
  for (const part of window.parts)
    weight += part.counted === part.total ? workIn(part.slice) * scale : workIn(part.slice) * part.counted;
  return weight;
}

export const weightTotal = (window: Window): bigint => window.counted * (window.parts.at(-1)?.total ?? 1n);

/** The weight of every account, by rank; `accounts` is how many ranks there are. */
export function rankedWeights(window: Window, slices: ReadonlyMap<number, RankedSlice>, accounts: number): bigint[] {
  const scale = window.parts.at(-1)?.total ?? 1n;
  const weights = new Array<bigint>(accounts).fill(0n);
  const partly: [RankedSlice, bigint][] = [];
  for (const part of window.parts) {
    const slice = slices.get(part.slice);
    if (slice === undefined || slice.total !== part.total)
      throw new ProtocolError('out_of_range', `slice ${part.slice} is not the one the window names`);
    if (part.counted !== part.total) partly.push([slice, part.counted]);
    else
      slice.each((rank, work) => {
        weights[rank] = (weights[rank] as bigint) + work;
      });
  }
  // Work of whole slices is added up first and scaled once.
  for (let rank = 0; rank < accounts; rank++) weights[rank] = (weights[rank] as bigint) * scale;
  for (const [slice, counted] of partly)
    slice.each((rank, work) => {
      weights[rank] = (weights[rank] as bigint) + work * counted;
    });
  return weights;
}

export const FEE_SCALE = 1_000_000n;

/** The pool's fee in parts per million of the reward, rounded down: the odd atom is the miners'. */
export const feeOf = (reward: bigint, feePpm: bigint): bigint => (reward * feePpm) / FEE_SCALE;

/** The places of the `count` largest values, equal ones in ascending order of place. */
function largest(values: readonly bigint[], count: number): number[] {
  if (count === 0) return [];
  // Rounded to 53 bits nearly all values still differ, and numbers sort much faster; those at the limit are compared
  // exactly.
  const rounded = Float64Array.from(values, Number);
  const limit = rounded.toSorted()[values.length - count] as number;
  const above: number[] = [];
  const atLimit: number[] = [];
  for (const [place, value] of rounded.entries())
    if (value > limit) above.push(place);
    else if (value === limit) atLimit.push(place);
  atLimit.sort((a, b) => {
    const [x, y] = [values[a] as bigint, values[b] as bigint];
    return x === y ? a - b : x > y ? -1 : 1;
  });
  return [...above, ...atLimit.slice(0, count - above.length)];
}

/**
 * Divides an amount by weight without losing an atom: each gets the floor of its share, and the atoms left over go one
 * each to the largest remainders, equal ones in ascending order of account.
 */
export function divideRanked(amount: bigint, weights: readonly bigint[]): bigint[] {
  let total = 0n;
  for (const weight of weights) total += weight;
  if (total === 0n) throw new ProtocolError('out_of_range', 'nothing to divide by: all weights are zero');
  const remainders = new Array<bigint>(weights.length);
  let left = amount;
  const shares = weights.map((weight, rank) => {
    const product = amount * weight;
    const share = product / total;
    remainders[rank] = product - share * total;
    left -= share;
    return share;
  });
  for (const rank of largest(remainders, Number(left))) shares[rank] = (shares[rank] as bigint) + 1n;
  return shares;
}

/** The credits of a window by account: weights and division as above, with accounts by name. */
export function divideWindow(
  amount: bigint,
  window: Window,
  slices: ReadonlyMap<number, SliceWork>,
): Map<string, bigint> {
  const counted = window.parts.flatMap((part) => slices.get(part.slice) ?? []);
  const names = [...new Set(counted.flatMap(({ work }) => [...work.keys()]))].sort();
  const rankOf = new Map(names.map((name, rank) => [name, rank]));
  const ranked = new Map(
    counted.map(({ slice, total, work }): [number, RankedSlice] => [
      slice,
      { total, each: (tell) => work.forEach((value, name) => void tell(rankOf.get(name) as number, value)) },
    ]),
  );
  const shares = divideRanked(amount, rankedWeights(window, ranked, names.length));
  return new Map(names.map((name, rank) => [name, shares[rank] as bigint]));
}

/** Leaves of the tree over a slice's work or a credit list: ascending by account, zero values left out. */
export const leavesOf = (values: ReadonlyMap<string, bigint>, payload: (account: string) => Bytes) =>
  [...values]
    .filter(([, value]) => value > 0n)
    .map(([account, value]) => ({ key: payload(account), value }))
    .sort((a, b) => compareBytes(a.key, b.key));
