/**
 * What waiting operations must not share (ledger rule 55): one of a kind for a validator, one for a position, one for a new consensus key. A bond takes no
 * slot: a stranger's must block nobody's heartbeat or exit.
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
