/** The fate of the pool's blocks, as finalized cuts tell it. A reward is taken once, with its amount and output. */
import type { Bytes } from '../../protocol/bytes.ts';
import type { Transaction } from '../database/connect.ts';

export type PaidReward = {
  readonly blockId: Bytes;
  readonly transactionId: Bytes;
  readonly outputIndex: number;
  readonly amount: bigint;
  readonly height: number;
};

/**
 * True when the block is known. A repeated word of the chain changes nothing; a different one is an error. A slice is credited
 * once: what comes to light after that is divided with the blocks of the slice that is open now (books rule 7).
 */
export async function recordPaid(transaction: Transaction, reward: PaidReward): Promise<boolean> {
  const [row] = await transaction<{ state: string; reward: bigint | null }[]>`select state, reward from blocks
    where block_id = ${Buffer.from(reward.blockId)} for update`;
  if (row === undefined) return false;
  if (row.state === 'paid') {
    if (row.reward !== reward.amount)
      throw new Error(`a block was paid ${row.reward} atoms and now the chain says ${reward.amount}`);
    return true;
  }
  await transaction`update blocks set state = 'paid', reward = ${reward.amount}, reason = null,
    reward_transaction = ${Buffer.from(reward.transactionId)}, reward_output = ${reward.outputIndex},
    settled_height = ${reward.height} where block_id = ${Buffer.from(reward.blockId)}`;
  await transaction`update blocks b set slice = s.number from slices s, credit_lists c
    where b.block_id = ${Buffer.from(reward.blockId)} and c.service = b.service and c.slice = b.slice
      and s.service = b.service and s.closed_height is null`;
  return true;
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
