/**
 * Documents about cuts and work blocks (specification: Cut reference, Block document).
 */

import { change } from './address-documents.ts';
import { described, type Infer, integer, list, nullable, object, oneOf, optional, text } from './schema.ts';
import { transaction } from './transaction-documents.ts';
import {
  address,
  amount,
  count,
  cutReference,
  height,
  hex,
  identifier,
  millis,
  nextCursor,
  outpoint,
  version,
} from './values.ts';

export const cutSummary = object(
  {
    height,
    cut_id: identifier,
    previous_id: identifier,
    state_root: identifier,
    validator_set_id: identifier,
    finalized_at_millis: millis,
    registered_work: count,
    executed_work: count,
    transactions: count,
    subsidy: amount,
    fees: amount,
    target: text({ pattern: '^[0-9a-f]{64}$', description: 'block target of work on this cut' }),
  },
  'Cut',
);
export type CutSummary = Infer<typeof cutSummary>;

export const cutList = object(
  {
    api_version: version,
    finalized_height: height,
    cuts: described(list(cutSummary), 'newest first'),
    next_before: optional(described(height, 'absent on the last page')),
  },
  'Cuts',
);
export const cutTransactions = object(
  {
    api_version: version,
    finalized_height: height,
    cut: cutReference,
    transactions: described(list(transaction), 'in the order of execution'),
    next_cursor: nextCursor,
  },
  'CutTransactions',
);
export const cutChanges = object(
  {
    api_version: version,
    finalized_height: height,
    cut: cutReference,
    changes: list(change),
    next_cursor: nextCursor,
  },
  'CutChanges',
);

export const workReward = object(
  { block_id: identifier, transaction_id: identifier, output_index: integer(), amount },
  'WorkReward',
);
export const cutRewards = object(
  {
    api_version: version,
    finalized_height: height,
    cut: cutReference,
    rewards: list(workReward),
    next_cursor: nextCursor,
  },
  'CutRewards',
);

export const REWARD_STATES = ['waiting', 'pending', 'paid', 'expired'] as const;
export const blockReward = object(
  {
    state: described(
      oneOf(REWARD_STATES),
      '`waiting`: no cut registered it yet; `pending`: registered, paid when the window closes; `paid`, `expired`: final',
    ),
    amount: described(nullable(amount), 'null until paid'),
    work_amount: nullable(amount),
    fee_amount: nullable(amount),
    outpoint: nullable(outpoint),
    paid_height: nullable(height),
  },
  'BlockReward',
);
export type BlockReward = Infer<typeof blockReward>;

const blockFields = {
  block_id: identifier,
  anchor_height: height,
  anchor_id: identifier,
  registration_window_end: height,
  timestamp_millis: millis,
  target: text({ pattern: '^[0-9a-f]{64}$' }),
  nonce: text({ pattern: '^[0-9a-f]{16}$', description: 'as in the header' }),
  payout: address,
  extranonce: hex,
  tag: described(text({ maxLength: 20 }), 'miner tag; chosen by the miner, escape it where it is shown'),
  parents: list(identifier),
  registered_cut: nullable(cutReference),
  reward: blockReward,
};
export const block = object(
  {
    api_version: version,
    finalized_height: height,
    ...blockFields,
    header_hex: text({
      pattern: '^[0-9a-f]{624}$',
      description: 'the 312 bytes that the block is named by and whose work was done',
    }),
    transactions: described(nullable(list(identifier)), 'null where the body was pruned'),
  },
  'Block',
);
export type BlockDocument = Infer<typeof block>;

export const recentBlocks = object(
  {
    api_version: version,
    finalized_height: height,
    blocks: described(list(object({ ...blockFields, transactions: count }, 'BlockSummary')), 'newest first'),
  },
  'RecentBlocks',
);
