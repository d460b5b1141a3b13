/**
 * Paying an interval's stake pool during the next one (ledger rule 66): the members that earned, in the order of the committee, and their positions by
 * identifier, the self-bond last with the commission that the delegations gave. A cursor in the state holds the position of the walk.
 */
import { type Bytes, equalBytes } from '../../../protocol/bytes.ts';
import { WHOLE_COMMISSION } from '../../../protocol/staking/limits.ts';
import { selfBondId } from '../../../protocol/staking/names.ts';
import type { StakePayout } from '../effects.ts';
import { stakeRewardOutpoint } from '../rewards.ts';
import type { Committee, CommitteeMember } from './committee.ts';
import type { StakingLayer } from './layer.ts';
import { type Position, principalAtStart } from './position.ts';

export type PaymentWalk = {
  readonly interval: number;
  /** The amount collected in the interval, and the part paid so far. */
  readonly pool: bigint;
  readonly paid: bigint;
  /** Members that earned, as a bitmap, and the total of their positions. */
  readonly earned: bigint;
  readonly total: bigint;
  /** The member that is being paid, the last of its delegations that was visited, the commission gathered for it so far. */
  readonly member: number;
  readonly reached: Bytes | undefined;
  readonly gathered: bigint;
};

const isEarned = (walk: PaymentWalk, member: number): boolean => ((walk.earned >> BigInt(member)) & 1n) === 1n;

/** Starts the walk through a committee; `earns` tells who is paid. Undefined if nobody is. */
export function beginWalk(
  committee: Committee,
  pool: bigint,
  earns: (member: CommitteeMember, index: number) => boolean,
): PaymentWalk | undefined {
  let earned = 0n;
  let total = 0n;
  committee.members.forEach((member, i) => {
    if (member.earning === 0n || !earns(member, i)) return;
    earned |= 1n << BigInt(i);
    total += member.earning;
  });
  if (total === 0n) return undefined;
  return { interval: committee.epoch, pool, paid: 0n, earned, total, member: 0, reached: undefined, gathered: 0n };
}

export const isPaymentDue = (walk: PaymentWalk | undefined, committee: Committee, validator: Bytes): boolean =>
  walk !== undefined &&
  committee.members.some(
    ({ validatorId }, i) => i >= walk.member && isEarned(walk, i) && equalBytes(validatorId, validator),
  );

/** One cut's payments. The remaining walk is undefined once all were visited. */
export function payVisits(
  start: PaymentWalk,
  committee: Committee,
  layer: StakingLayer,
  visits: number,
): { readonly payouts: StakePayout[]; readonly walk: PaymentWalk; readonly done: boolean } {
  const payouts: StakePayout[] = [];
  let { paid, member, reached, gathered } = start;
  let left = visits;
  const share = (position: Position): bigint => (start.pool * principalAtStart(position, start.interval)) / start.total;
  const pay = (position: Position, amount: bigint): void => {
    if (amount === 0n) return;
    paid += amount;
    payouts.push({
      positionId: position.id,
      validatorId: position.validator,
      interval: start.interval,
      rewardAddress: position.rewardAddress,
      amount,
      outpoint: stakeRewardOutpoint(start.interval, position.id),
    });
  };
  for (; member < committee.members.length; member++, reached = undefined, gathered = 0n) {
    if (!isEarned(start, member)) continue;
    const { validatorId, commission } = committee.members[member] as CommitteeMember;
    const ids = left === 0 ? [] : layer.delegations(validatorId, reached, left);
    for (const id of ids) {
      const position = layer.position(id) as Position;
      const gross = share(position);
      const given = (gross * BigInt(commission)) / WHOLE_COMMISSION;
      gathered += given;
      pay(position, gross - given);
    }
    left -= ids.length;
    reached = ids.at(-1) ?? reached;
    if (left === 0) break;
    left--;
    const own = layer.position(selfBondId(validatorId));
    if (own === undefined) continue;
    pay(own, share(own) + gathered);
    if (own.principal === 0n) layer.removePosition(own);
  }
  const done = member === committee.members.length;
  return { payouts, walk: { ...start, paid, member, reached, gathered }, done };
}
