/** Results of the pool's blocks, from finalized cuts. A reward is recorded once, with its amount and output. */
import type { Bytes } from '../../protocol/bytes.ts';
import { REGISTRATION_WINDOW } from '../../protocol/network.ts';
import type { Verdict } from '../accountant/reward-judge.ts';
import { byteaTexts, type Sql, type Transaction } from '../database/connect.ts';
import type { Claim } from './reward-check.ts';

export async function recordVerdict(transaction: Transaction, verdict: Verdict, height: number): Promise<void> {
  if (verdict.kind === 'paid') await recordPaid(transaction, verdict.claim);
  else {
    if (verdict.kind === 'held') await recordHeld(transaction, verdict);
    else await recordUnpaid(transaction, verdict.blockId, height);
    const { paidBefore, sharers } = verdict.bounds;
    await transaction`update blocks set paid_before = ${paidBefore}, sharers = ${sharers}
      where block_id = ${Buffer.from(verdict.blockId)} and paid_before is null`;
  }
}

/**
 * False when it was recorded before, or the block is not known. A slice is credited once: a reward that becomes known
 * later is divided with the blocks of the slice that is open now (books rule 7).
 */
export async function recordPaid(transaction: Transaction, claim: Claim): Promise<boolean> {
  const id = Buffer.from(claim.blockId);
  const rows = await transaction`update blocks set state = 'paid', reward = ${claim.amount}, reason = null,
    claimed_reward = null, reward_transaction = ${Buffer.from(claim.transactionId)}, reward_output = ${claim.outputIndex},
    settled_height = ${claim.height} where block_id = ${id} and state <> 'paid' returning 1`;
  if (rows.length === 0) return false;
  await transaction`update blocks b set slice = s.number from slices s, credit_lists c
    where b.block_id = ${id} and c.service = b.service and c.slice = b.slice
      and s.service = b.service and s.closed_height is null`;
  return true;
}

/**
 * Holds a claim: it is not credited, and its block does not expire. The list of its slice waits for it, counted from
 * the cut that pays it and not from the time when the books read it: so anybody can tell from the chain when a list is
 * due (rule 24).
 */
async function recordHeld(
  transaction: Transaction,
  { blockId, amount, reason }: Extract<Verdict, { kind: 'held' }>,
): Promise<void> {
  await transaction`update blocks set state = 'held', reason = ${reason},
      claimed_reward = ${amount === undefined ? null : String(amount)}::numeric,
      settled_height = anchor_height + ${REGISTRATION_WINDOW}
    where block_id = ${Buffer.from(blockId)} and state <> 'paid'`;
}

/** Expires a held block that turned out to have no reward. All others expire with their window. */
async function recordUnpaid(transaction: Transaction, blockId: Bytes, height: number): Promise<void> {
  await transaction`update blocks set state = 'expired', reason = null, claimed_reward = null, settled_height = ${height}
    where block_id = ${Buffer.from(blockId)} and state = 'held'`;
}

/** Rewards in the books for which a node now reports another amount. */
export async function conflictingRewards(
  sql: Sql,
  rewards: readonly { readonly block_id: string; readonly amount: string }[],
): Promise<{ block: string; booked: bigint; said: string }[]> {
  if (rewards.length === 0) return [];
  const rows = await sql<{ block_id: Buffer; reward: bigint }[]>`select block_id, reward from blocks
    where state = 'paid' and block_id = any(${byteaTexts(rewards.map((reward) => reward.block_id))}::text[]::bytea[])`;
  const booked = new Map(rows.map((row) => [row.block_id.toString('hex'), row.reward]));
  return rewards.flatMap(({ block_id, amount }) => {
    const reward = booked.get(block_id);
    return reward === undefined || String(reward) === amount ? [] : [{ block: block_id, booked: reward, said: amount }];
  });
}

export async function recordRegistered(transaction: Transaction, blockId: Bytes): Promise<void> {
  await transaction`update blocks set state = 'registered' where block_id = ${Buffer.from(blockId)}
    and state in ('found', 'accepted')`;
}

export async function recordAnswer(
  transaction: Transaction,
  blockId: Bytes,
  state: 'accepted' | 'refused',
  reason?: string,
): Promise<void> {
  await transaction`update blocks set state = ${state}, reason = ${reason ?? null}
    where block_id = ${Buffer.from(blockId)} and state = 'found'`;
}

/** Blocks whose window closed without a reward, once every cut up to `height` has been read. They credit nothing. */
export async function expireBlocks(transaction: Transaction, height: number, window: number): Promise<Buffer[]> {
  const rows = await transaction<{ block_id: Buffer }[]>`update blocks set state = 'expired', settled_height = ${height}
    where state in ('found', 'accepted', 'registered', 'refused') and anchor_height + ${window} <= ${height}
    returning block_id`;
  return rows.map((row) => row.block_id);
}
