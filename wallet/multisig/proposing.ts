/**
 * Selects the outputs of a multisig address that a payment spends, in one or more transactions (docs/wallet.md,
 * Multisig). Witnesses are long, so few inputs fit: a payment that needs more is split into several transactions. Pure.
 */
import { massOf, minimumFee } from '../../protocol/transactions/fee.ts';
import type { MultisigDescriptor } from '../../protocol/transactions/multisig.ts';
import { type MultisigProfile, mostInputs } from '../../protocol/transactions/multisig-package.ts';
import type { Outpoint } from '../../protocol/transactions/transaction.ts';
import { multisigShape } from '../../protocol/transactions/witness.ts';

export type GroupOutput = { readonly outpoint: Outpoint; readonly amount: bigint };

export type ProposalTerms = {
  readonly profile: MultisigProfile;
  readonly descriptor: MultisigDescriptor;
  readonly feePerMass: bigint;
  readonly payloadBytes: number;
  /** The output that must be spent first, whatever its amount. */
  readonly first?: GroupOutput | undefined;
};

/** One transaction: what it spends, what the recipient gets, and what returns; the rest is its fee. */
export type Part = { readonly inputs: readonly GroupOutput[]; readonly amount: bigint; readonly change: bigint };

/** A package with all its signatures, in hex, must fit a call of the daemon. */
const MOST_INPUTS = 5;

/** How many outputs one part spends at most. */
export const mostOfPart = (profile: MultisigProfile, descriptor: MultisigDescriptor, payloadBytes: number): number =>
  Math.min(MOST_INPUTS, mostInputs(profile, descriptor, 2, payloadBytes));

const total = (outputs: readonly GroupOutput[]): bigint => outputs.reduce((sum, { amount }) => sum + amount, 0n);

/** The parts, or how much would be needed. Large outputs first: few signatures. */
export function proposalParts(
  outputs: readonly GroupOutput[],
  amount: bigint,
  terms: ProposalTerms,
): readonly Part[] | { readonly needed: bigint } {
  const { profile, descriptor, feePerMass, payloadBytes, first } = terms;
  const shape = multisigShape(profile, descriptor.threshold);
  const feeOf = (inputs: number, made: number): bigint =>
    minimumFee(massOf({ witnesses: Array(inputs).fill(shape), inputs, outputs: made, payloadBytes }), feePerMass);
  const most = mostOfPart(profile, descriptor, payloadBytes);
  const others = outputs.filter((output) => output !== first);
  others.sort((a, b) => (a.amount < b.amount ? 1 : a.amount > b.amount ? -1 : 0));
  const left = first === undefined ? others : [first, ...others];
  const parts: Part[] = [];
  let wanted = amount;
  while (left.length > 0) {
    const room = left.slice(0, most);
    for (let count = 1; count <= room.length; count++) {
      const inputs = room.slice(0, count);
      const rest = total(inputs) - wanted;
      if (rest < feeOf(count, 1)) continue;
      // Change that costs more than it holds is left to the fee.
      const change = rest - feeOf(count, 2);
      return [...parts, { inputs, amount: wanted, change: change > 0n ? change : 0n }];
    }
    const all = total(room) - feeOf(room.length, 1);
    // The rest is not worth its own fee.
    if (all <= 0n) break;
    parts.push({ inputs: room, amount: all, change: 0n });
    wanted -= all;
    left.splice(0, room.length);
  }
  const paid = parts.reduce((sum, part) => sum + part.amount, 0n);
  return { needed: total(outputs) + (amount - paid) };
}
