/** How the wallet shows stake to callers: as the node's documents, with amounts in coins. */
import { formatCoins } from '../../protocol/amount.ts';
import type { StakingPosition, ValidatorDocument } from '../../protocol/api/staking-documents.ts';
import { fromHex, toHex } from '../../protocol/bytes.ts';
import { delegationId } from '../../protocol/staking/names.ts';
import type { OperationRecord, OutgoingRecord } from '../state/records.ts';

const coins = (atoms: string): string => formatCoins(BigInt(atoms));

export const validatorDocument = ({ validator_id, ...rest }: ValidatorDocument): Record<string, unknown> => ({
  validator: validator_id,
  ...rest,
  stake: coins(rest.stake),
  self_bond: coins(rest.self_bond),
  delegated: coins(rest.delegated),
});

/** With the request of this wallet that is about to change it, if there is one. */
export function positionDocument(
  { position_id, principal, ...rest }: StakingPosition,
  open: Iterable<OutgoingRecord>,
): Record<string, unknown> {
  let request: string | null = null;
  for (const { operation, requestId, state } of open)
    if (operation?.position === position_id && state !== 'refused') request = requestId;
  return { position: position_id, ...rest, principal: coins(principal), request_id: request };
}

/** The operation in a result, with its original terms. `transaction` is null if nothing is signed yet. */
export function operationFields(
  operation: OperationRecord | undefined,
  transaction: string | null,
): Record<string, unknown> {
  if (operation === undefined) return {};
  const { kind, validator, position, splits } = operation;
  const made = transaction === null ? null : toHex(delegationId(fromHex(transaction)));
  const { commissionBps: commission_bps, rewardAddress: reward_address, consensusKeyIndex } = operation.terms ?? {};
  return {
    validator,
    position: kind === 'stake' ? made : position,
    ...(kind === 'unstake' && { unbonding_position: splits ? made : position }),
    ...(commission_bps !== undefined && { commission_bps }),
    ...(reward_address !== undefined && { reward_address }),
    ...(consensusKeyIndex !== undefined && { consensus_key_index: consensusKeyIndex }),
  };
}
