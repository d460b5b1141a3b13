/**
 * Who gets what of an anchor's work half and of an interval's stake pool (ledger rules 37 and 38). Whole atoms; what a division
 * leaves over is handed out or kept, never lost. vectors/rewards.json has tables to check by hand.
 */
import { type Bytes, ByteWriter, compareBytes, concat } from '../../protocol/bytes.ts';
import { id, LABELS } from '../../protocol/identifier.ts';
import type { Outpoint } from '../../protocol/transaction.ts';

export type PaidBlock = { readonly id: Bytes; readonly payout: Bytes; readonly feeShare: bigint };

export type BlockShare = PaidBlock & { readonly subsidy: bigint; readonly amount: bigint };

export type AnchorPayment = {
  /** In ascending order of block identifiers. */
  readonly shares: readonly BlockShare[];
  /** What goes on to the next anchor that has work. */
  readonly carry: bigint;
};

/** Equal parts; the atoms that do not divide go, one each, to the blocks with the lowest identifiers. */
export function payAnchor(workHalf: bigint, carried: bigint, blocks: readonly PaidBlock[]): AnchorPayment {
  const total = workHalf + carried;
  if (blocks.length === 0) return { shares: [], carry: total };
  const count = BigInt(blocks.length);
  const part = total / count;
  const over = total % count;
  const shares = [...blocks]
    .sort((a, b) => compareBytes(a.id, b.id))
    .map((block, i) => {
      const subsidy = part + (BigInt(i) < over ? 1n : 0n);
      return { ...block, subsidy, amount: subsidy + block.feeShare };
    });
  return { shares, carry: 0n };
}

export type StakeShare = { readonly position: number; readonly amount: bigint };

export type StakeDivision = { readonly shares: readonly StakeShare[]; readonly left: bigint };

/** In proportion to principal, rounded down; what is left goes into the pool of the interval that runs. */
export function divideStakePool(
  pool: bigint,
  positions: readonly { readonly principal: bigint; readonly earns: boolean }[],
): StakeDivision {
  let total = 0n;
  for (const { principal, earns } of positions) if (earns) total += principal;
  if (total === 0n) return { shares: [], left: pool };
  const shares: StakeShare[] = [];
  let left = pool;
  positions.forEach(({ principal, earns }, position) => {
    const amount = earns ? (pool * principal) / total : 0n;
    if (amount > 0n) shares.push({ position, amount });
    left -= amount;
  });
  return { shares, left };
}

export const stakeRewardOutpoint = (interval: number, positionId: Bytes): Outpoint => ({
  transactionId: id(LABELS.stakePayment, concat(new ByteWriter(8).height(interval).done(), positionId)),
  outputIndex: 0,
});
