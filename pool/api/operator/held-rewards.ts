/** Rewards that the books hold (books rule 15), for the operator: what is claimed, why it is held, and a way to accept an amount. */
import type { Sql } from '../../database/connect.ts';
import { SERVICES } from '../../journal/journal-record.ts';
import type { HeldRewardsDocument } from './operator-documents.ts';

const MOST = 500;

export async function heldRewards(sql: Sql): Promise<HeldRewardsDocument['rewards']> {
  type Row = {
    block_id: Buffer;
    service: number;
    anchor_height: bigint;
    claimed: string | null;
    reason: string | null;
    accepted: string | null;
  };
  const rows = await sql<Row[]>`select block_id, service, anchor_height, claimed_reward::text as claimed, reason,
      operator_accepts::text as accepted
    from blocks where state = 'held' order by anchor_height limit ${MOST}`;
  return rows.map((row) => ({
    block_id: row.block_id.toString('hex'),
    service: SERVICES[row.service] as (typeof SERVICES)[number],
    anchor_height: Number(row.anchor_height),
    claimed: row.claimed,
    reason: row.reason,
    accepted: row.accepted,
  }));
}

/**
 * The accountant picks it up at its next check. The request contains the amount, so that a different claim made later
 * is not accepted by mistake.
 */
export async function acceptReward(sql: Sql, blockId: string, amount: bigint): Promise<boolean> {
  const rows = await sql`update blocks set operator_accepts = ${String(amount)}::numeric
    where block_id = decode(${blockId}, 'hex') and state = 'held' and claimed_reward = ${String(amount)}::numeric
    returning 1`;
  return rows.length > 0;
}
