/**
 * Emission (ledger rule 6). Genesis mints 20,000,000 coins; 180,000,000 follow, 0.3 % of what remains per interval, in
 * whole atoms; remainders are carried over. Every cut's subsidy is split into a work and a stake half.
 */
import { ATOMS_PER_COIN } from '../amount.ts';
import { INTERVAL_CUTS } from '../network.ts';

export const GENESIS_SUPPLY = 20_000_000n * ATOMS_PER_COIN;
export const TOTAL_EMISSION = 180_000_000n * ATOMS_PER_COIN;

export type EmissionState = {
  /** Interval whose amount this is, from 0. */
  readonly interval: number;
  readonly amount: bigint;
  /** Not yet emitted after this interval, and the carried remainder in thousandths of an atom. */
  readonly remaining: bigint;
  readonly carry: bigint;
};

function step(interval: number, remaining: bigint, carry: bigint): EmissionState {
  const scaled = remaining * 3n + carry;
  const amount = scaled / 1000n;
  return { interval, amount, remaining: remaining - amount, carry: scaled % 1000n };
}

export const firstInterval = (): EmissionState => step(0, TOTAL_EMISSION, 0n);
export const nextInterval = (state: EmissionState): EmissionState =>
  step(state.interval + 1, state.remaining, state.carry);

export function emissionOfInterval(interval: number): EmissionState {
  let state = firstInterval();
  while (state.interval < interval) state = nextInterval(state);
  return state;
}

/** The subsidy of cut k (from 0) of an interval that emits `amount`: the cuts of an interval add up to it exactly. */
export function subsidyOfCut(amount: bigint, k: number, intervalCuts: number = INTERVAL_CUTS): bigint {
  const cuts = BigInt(intervalCuts);
  return (amount * BigInt(k + 1)) / cuts - (amount * BigInt(k)) / cuts;
}

/** The odd atom of an odd value goes to the stake half, so that the halves add up. */
export const splitHalves = (value: bigint): { work: bigint; stake: bigint } => {
  const work = value / 2n;
  return { work, stake: value - work };
};
