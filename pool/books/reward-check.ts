/**
 * Checks the reward that a node reports for a block against the rules (books rule 15). Pure. The chain pays a block one
 * output, at an index that follows from the block's identifier, 96 cuts after its anchor, and at most: an equal part of
 * the work halves of the subsidies since the last anchor that had work, and half of the fees of its transactions.
 */
import { MAX_SUPPLY } from '../../protocol/amount.ts';
import { type Bytes, equalBytes } from '../../protocol/bytes.ts';
import { MAX_BODY_BYTES } from '../../protocol/ledger/body.ts';
import { workHalves, workRewardOutpoint } from '../../protocol/ledger/work-reward.ts';
import { REGISTRATION_WINDOW } from '../../protocol/network.ts';

export type Claim = {
  readonly blockId: Bytes;
  readonly transactionId: Bytes;
  readonly outputIndex: number;
  readonly amount: bigint;
  readonly height: number;
};

/** The block's part of the fees according to the template, and the maximum mass of its transactions. */
export type Carried = { readonly fees: bigint; readonly mass: number };

export type RewardFacts = {
  readonly anchorHeight: number;
  /** Cuts per interval of the chain, over which an interval's emission is spread. */
  readonly intervalCuts: number;
  /** The newest anchor before this one of which a reward is known; -1 for none. */
  readonly paidBefore: number;
  /** How many blocks of this anchor were paid, at least. */
  readonly sharers: number;
  /** Other blocks of this anchor in the books. */
  readonly siblings: readonly { readonly amount: bigint; readonly carried: Carried | undefined }[];
  /** Undefined for a block that is in no journal. */
  readonly carried: Carried | undefined;
  /** Atoms per unit of mass beyond which the claim of a single node is not accepted; undefined for no limit. */
  readonly maxFeePerMass: bigint | undefined;
};

export const HOLD_REASONS = {
  wrongOutput: 'the reward is not in the output that belongs to the block',
  wrongHeight: 'the reward was not paid by the cut that closes its window',
  aboveSchedule: 'the amount is more than the emission and the fees of the body allow',
  aboveFeeRate: 'the fees in it are above --max-fee-per-mass, and one node alone says so',
} as const;

/** Room for any body: the smallest transaction has 3.4 KB and makes at most 8 outputs. */
const MAX_BODY_MASS = 2 * MAX_BODY_BYTES;

/** Half of what the transactions of a body may pay at a rate. */
const feesAtRate = (carried: Carried | undefined, perMass: bigint): bigint =>
  (BigInt(carried?.mass ?? MAX_BODY_MASS) * perMass) / 2n;

/** Undefined if the reward is valid. */
export function rewardFlaw(claim: Claim, facts: RewardFacts): string | undefined {
  const outpoint = workRewardOutpoint(claim.blockId);
  const isOutput =
    claim.outputIndex === outpoint.outputIndex && equalBytes(claim.transactionId, outpoint.transactionId);
  if (!isOutput) return HOLD_REASONS.wrongOutput;
  if (claim.height !== facts.anchorHeight + REGISTRATION_WINDOW) return HOLD_REASONS.wrongHeight;
  const whole = workHalves(facts.paidBefore + 1, facts.anchorHeight, facts.intervalCuts);
  const sharers = BigInt(Math.max(1, facts.sharers));
  const part = (whole + sharers - 1n) / sharers;
  const isAbove = (feesOf: (carried: Carried | undefined) => bigint): boolean => {
    let [amounts, fees] = [claim.amount, feesOf(facts.carried)];
    if (amounts > part + fees) return true;
    // Each reward may pass alone while their sum is more than there is.
    for (const { amount, carried } of facts.siblings) {
      amounts += amount;
      fees += feesOf(carried);
    }
    return amounts > whole + fees;
  };
  const stated = (carried: Carried | undefined): bigint => carried?.fees ?? MAX_SUPPLY;
  if (isAbove(stated)) return HOLD_REASONS.aboveSchedule;
  const { maxFeePerMass } = facts;
  if (maxFeePerMass === undefined) return undefined;
  const least = (carried: Carried | undefined): bigint => {
    const [said, bound] = [stated(carried), feesAtRate(carried, maxFeePerMass)];
    return said < bound ? said : bound;
  };
  return isAbove(least) ? HOLD_REASONS.aboveFeeRate : undefined;
}
