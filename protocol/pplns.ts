/**
 * PPLNS by slices (books rules 2 to 5), pure and exact. A block belongs to the slice of its anchor. Its window is the
 * whole slices strictly before that one, newest first, that make up W of work, the oldest counted in part. It lives in
 * this folder because three programs must agree on it to the atom: the pool, its audit, and the miner who checks both.
 */
import { type Bytes, compareBytes, toHex } from './bytes.ts';
import { ProtocolError } from './errors.ts';

/**
 * An account's name where work is divided: its address payload in hex, or any number that orders accounts like their payloads
 * do, since equal remainders go by that order.
 */
export type AccountKey = string | number;

/** A closed slice's work by account. */
export type SliceWork = { readonly slice: number; readonly total: bigint; readonly work: ReadonlyMap<string, bigint> };

/** As much of a slice as weights are made of. */
export type SliceRows<K extends AccountKey> = {
  readonly total: bigint;
  readonly work: Iterable<readonly [K, bigint]>;
};

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

export function weightsOf<K extends AccountKey = string>(
  window: Window,
  slices: ReadonlyMap<number, SliceRows<K>>,
): Map<K, bigint> {
  const scale = window.parts.at(-1)?.total ?? 1n;
  const whole = new Map<K, bigint>();
  const weights = new Map<K, bigint>();
  for (const part of window.parts) {
    const slice = slices.get(part.slice);
    if (slice === undefined || slice.total !== part.total)
      throw new ProtocolError('out_of_range', `slice ${part.slice} is not the one the window names`);
    // Work of whole slices is added up first and scaled once.
    if (part.counted === part.total)
      for (const [account, work] of slice.work) whole.set(account, (whole.get(account) ?? 0n) + work);
    else
      for (const [account, work] of slice.work)
        weights.set(account, (weights.get(account) ?? 0n) + work * part.counted);
  }
  for (const [account, work] of whole) weights.set(account, (weights.get(account) ?? 0n) + work * scale);
  return weights;
}

export const FEE_SCALE = 1_000_000n;

/** The pool's fee in parts per million of the reward, rounded down: the odd atom is the miners'. */
export const feeOf = (reward: bigint, feePpm: bigint): bigint => (reward * feePpm) / FEE_SCALE;

/**
 * Divides an amount by weight without losing an atom: each gets the floor of its share, and the atoms left over go one
 * each to the largest remainders, equal ones in ascending order of account.
 */
export function divide<K extends AccountKey = string>(amount: bigint, weights: ReadonlyMap<K, bigint>): Map<K, bigint> {
  let total = 0n;
  for (const weight of weights.values()) total += weight;
  if (total === 0n) throw new ProtocolError('out_of_range', 'nothing to divide by: all weights are zero');
  const rows = [...weights].filter(([, weight]) => weight > 0n);
  const credits = new Map<K, bigint>();
  let left = amount;
  const remainders: { account: K; remainder: bigint }[] = [];
  for (const [account, weight] of rows) {
    const product = amount * weight;
    const share = product / total;
    credits.set(account, share);
    left -= share;
    remainders.push({ account, remainder: product - share * total });
  }
  remainders.sort((a, b) =>
    a.remainder === b.remainder ? (a.account < b.account ? -1 : 1) : a.remainder > b.remainder ? -1 : 1,
  );
  for (const { account } of remainders.slice(0, Number(left)))
    credits.set(account, (credits.get(account) as bigint) + 1n);
  return credits;
}

/** Leaves of the tree over a slice's work or a credit list: ascending by account, zero values left out. */
export const leavesOf = (values: ReadonlyMap<string, bigint>, payload: (account: string) => Bytes) =>
  [...values]
    .filter(([, value]) => value > 0n)
    .map(([account, value]) => ({ key: payload(account), value }))
    .sort((a, b) => compareBytes(a.key, b.key));

export const accountOf = (addressPayload: Bytes): string => toHex(addressPayload);
