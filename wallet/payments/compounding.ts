/**
 * Merging many small outputs (docs/wallet.md, Compounding). Pure. A merge spends up to eight outputs and makes one. Only
 * finalized outputs are spent, so a payment that needs hundreds waits one round of merges per factor of eight.
 */
import { MAX_INPUTS } from '../../protocol/transactions/transaction.ts';
import type { OwnedOutput } from '../state/records.ts';
import type { SortedOutputs } from '../state/sorted-outputs.ts';
import { type Ask, feeOf, type Profile, wantedOf } from './selection.ts';

/** 512 outputs are merged in two rounds; a payment that needs more is refused: run `compound` first. */
export const MAX_MERGED = MAX_INPUTS ** 3;

export type Merge = {
  readonly inputs: readonly OwnedOutput[];
  readonly profiles: readonly Profile[];
  readonly amount: bigint;
  readonly fee: bigint;
  readonly mass: number;
};

type MergeTerms = Pick<Ask, 'feePerMass' | 'profileOf'>;

/** Undefined when the outputs are not worth the fee of moving them. */
export function merge(inputs: readonly OwnedOutput[], terms: MergeTerms): Merge | undefined {
  const profiles = inputs.map(terms.profileOf);
  const { fee, mass } = feeOf({ payloadBytes: 0, feePerMass: terms.feePerMass }, profiles, 1);
  const amount = inputs.reduce((total, input) => total + input.amount, 0n) - fee;
  return amount > 0n ? { inputs, profiles, amount, fee, mass } : undefined;
}

/** Groups of at most eight, each worth moving; a last group smaller than `least` is left alone. */
export function merges(
  outputs: readonly OwnedOutput[],
  terms: MergeTerms,
  most: number,
  least: number,
): readonly Merge[] {
  const found: Merge[] = [];
  for (let i = 0; i < outputs.length && found.length < most; i += MAX_INPUTS) {
    const group = outputs.slice(i, i + MAX_INPUTS);
    if (group.length < least) break;
    const merged = merge(group, terms);
    if (merged !== undefined) found.push(merged);
  }
  return found;
}

/** Merges needed to bring this many outputs down to the eight that one payment can spend: each takes away seven. */
export const mergesNeeded = (outputs: number): number =>
  outputs <= MAX_INPUTS ? 0 : Math.ceil((outputs - MAX_INPUTS) / (MAX_INPUTS - 1));

/**
 * The next round for a request that holds these outputs: only as many merges as are needed, of the smallest outputs, and
 * none that could not run now. An empty list means that the payment itself is next.
 */
export function nextRound(held: readonly OwnedOutput[], terms: MergeTerms): readonly Merge[] {
  const needed = mergesNeeded(held.length);
  if (needed === 0) return [];
  const ascending = [...held].sort((a, b) => (a.amount < b.amount ? -1 : 1));
  const round: Merge[] = [];
  let left = held.length;
  for (let i = 0; i < needed && left > MAX_INPUTS; i++) {
    const size = Math.min(MAX_INPUTS, left - MAX_INPUTS + 1);
    // Too few are left for a full merge: they go into the next round, where they need no extra merge.
    if (ascending.length < size) break;
    const group = ascending.splice(0, size);
    const merged = merge(group, terms);
    if (merged === undefined) continue;
    round.push(merged);
    left -= group.length - 1;
  }
  return round;
}

/** Outputs for a payment that needs more than eight: the largest first, with room for the fees of all merges. */
export function gather(available: SortedOutputs, ask: Ask): readonly OwnedOutput[] | { needed: bigint } {
  const wanted = wantedOf(ask);
  const eight = Array.from({ length: MAX_INPUTS }, (): Profile => 'inline');
  const payment = ask.subtractFee ? 0n : feeOf(ask, eight, ask.amounts.length + 1).fee;
  const perMerge = feeOf({ payloadBytes: 0, feePerMass: ask.feePerMass }, eight, 1).fee;
  const taken: OwnedOutput[] = [];
  let held = 0n;
  let needed = wanted + payment;
  for (let i = 1; i <= Math.min(MAX_MERGED, available.size); i++) {
    const output = available.at(-i) as OwnedOutput;
    taken.push(output);
    held += output.amount;
    needed = wanted + payment + perMerge * BigInt(mergesNeeded(taken.length));
    if (held >= needed) return taken;
  }
  return { needed };
}
