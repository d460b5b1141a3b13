/**
 * Slots of waiting operations (ledger rule 55): one of a kind per validator, one per position, one per new consensus
 * key. A bond takes no slot: a stranger's bond must not block a heartbeat or an exit.
 */
import type { Bytes } from '../../protocol/bytes.ts';
import { consensusKeyHash } from '../../protocol/staking/names.ts';
import type { StakingOperation } from '../../protocol/staking/operation.ts';
import { nameOf } from '../ledger/registration.ts';

const keySlot = (consensusKey: Bytes): string => `key ${nameOf(consensusKeyHash(consensusKey))}`;

export function slotsOf(operation: StakingOperation | undefined): string[] {
  if (operation === undefined) return [];
  switch (operation.name) {
    case 'bond':
      return [];
    case 'register':
      return [keySlot(operation.consensusKey)];
    case 'unbond':
    case 'withdraw':
    case 'reward_address':
      return [`position ${nameOf(operation.position)}`];
    case 'rotate':
      return [`rotate ${nameOf(operation.validator)}`, keySlot(operation.consensusKey)];
    default:
      return [`${operation.name} ${nameOf(operation.validator)}`];
  }
}

/** Operations with reserved space: the committee depends on them, so higher fees of others must not evict them. */
export const hasRoomKept = (operation: StakingOperation | undefined): boolean =>
  operation?.name === 'heartbeat' || operation?.name === 'evidence';
