/**
 * The division of an anchor's work half (ledger rule 37), and the outpoints of rewards. Whole atoms; remainders are
 * distributed or carried over, never lost. vectors/rewards.json has tables to check by hand.
 */
import { type Bytes, ByteWriter, compareBytes, concat } from '../../protocol/bytes.ts';
import { id, LABELS } from '../../protocol/crypto/identifier.ts';
import type { Outpoint } from '../../protocol/transactions/transaction.ts';

export type PaidBlock = { readonly id: Bytes; readonly payout: Bytes; readonly feeShare: bigint };

export type BlockShare = PaidBlock & { readonly subsidy: bigint; readonly amount: bigint };

export type AnchorPayment = {
  /** In ascending order of block identifiers. */
  readonly shares: readonly BlockShare[];
  /** The amount carried over to the next anchor with work. */
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

export const stakeRewardOutpoint = (interval: number, positionId: Bytes): Outpoint => ({
  transactionId: id(LABELS.stakePayment, concat(new ByteWriter(8).height(interval).done(), positionId)),
  outputIndex: 0,
});
