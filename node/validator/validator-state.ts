/** The state of a validator, for the API and for the operator of its node: why it has no seat, and the remedy. */
import type { VALIDATOR_STATES } from '../../protocol/api/staking-documents.ts';
import { type Bytes, equalBytes } from '../../protocol/bytes.ts';
import { MAX_COMMITTEE } from '../../protocol/ledger/cut.ts';
import { consensusKeyHash, validatorId } from '../../protocol/staking/names.ts';
import type { Staking } from '../full-node.ts';
import { isEligible } from '../ledger/staking/committee.ts';
import { asOf, type Validator } from '../ledger/staking/validator.ts';

export type ValidatorState = (typeof VALIDATOR_STATES)[number];
type Committee = Pick<Staking, 'epoch' | 'stake'>;

/** Its index in the current committee; -1 without a seat. */
export const memberIndex = ({ stake }: Pick<Staking, 'stake'>, id: Bytes): number =>
  stake.committee.members.findIndex(({ validatorId }) => equalBytes(validatorId, id));

/** From a record as of the current epoch. */
export function stateOf(staking: Committee, validator: Validator): ValidatorState {
  if (validator.slashHeight !== 0) return 'slashed';
  if (validator.exitHeight !== 0) return 'exiting';
  if (memberIndex(staking, validator.id) >= 0) return 'committee';
  if (validator.jailedUntil > staking.epoch) return 'jailed';
  // New ones wait for their seat, and are eligible for it.
  const seat = Math.max(staking.epoch + 1, validator.seatFrom);
  return isEligible(validator, seat) || validator.heartbeatEpoch >= staking.epoch - 1 ? 'eligible' : 'lapsed';
}

/** For the validator of a node that has one of its keys. `advice` is shown to the operator if action is needed. */
export const STANDINGS = {
  member: { severity: 'none', says: 'it has a seat in the committee' },
  waiting: { severity: 'none', says: 'it waits for the epoch in which its seat begins' },
  key_pending: { severity: 'none', says: 'the key of this node is announced and signs from a later epoch on' },
  exiting: { severity: 'none', says: 'it exits', advice: 'keep this node running until the epoch ends' },
  left: { severity: 'none', says: 'it has exited', advice: 'this node may be stopped' },
  rotated: {
    severity: 'none',
    says: 'its key was rotated: the key of this node signs nothing more',
    advice: 'this node may be stopped once the node with the new key signs',
  },
  retired: {
    severity: 'none',
    says: 'the key of this node was that of a validator which has rotated it away, or has ended: it signs nothing more',
    advice: 'this node may be stopped. A key is registered once: a new validator needs a new one',
  },
  unregistered: {
    severity: 'none',
    says: 'no validator is registered with this identifier or key',
    advice: 'register it with svc-wallet validator-register; if that is done, wait until this node has read the chain',
  },
  other_key: {
    severity: 'warn',
    says: 'the validator is registered with another consensus key than that of this node',
    advice:
      'if you rotate to the key of this node, send svc-wallet validator-rotate; if its key was rotated away, stop this node. Never name a key here that another node signs with: the self-bond would be burned',
  },
  other_validator: {
    severity: 'warn',
    says: 'the key of this node is that of another validator than validator_id names',
    advice: 'write the identifier of its own validator (svc-wallet validators) into validator.heartbeat.validator_id',
  },
  outbid: {
    severity: 'warn',
    says: `${MAX_COMMITTEE} validators have more stake`,
    advice: 'it gets a seat when more is delegated to it than to the last member: svc-wallet validators',
  },
  lapsed: {
    severity: 'warn',
    says: 'it lapsed: no heartbeat became final in two epochs',
    advice:
      'see that validator.heartbeat is configured, its fee address has coins and this node has a peer or a miner, or send one by hand: svc-wallet validator-heartbeat. The seat comes back with the epoch after the heartbeat',
  },
  jailed: {
    severity: 'warn',
    says: 'it is jailed: it attended fewer than 9 windows of an epoch',
    advice: 'keep it running with a right clock and connected neighbours: the seat comes back after two epochs',
  },
  slashed: {
    severity: 'warn',
    says: 'it is slashed: its key signed two different votes. Its self-bond is burned, and it has no seat ever again',
    advice: 'stop every process that has this key; a new validator needs a new key and a new self-bond',
  },
} as const satisfies Record<string, { severity: 'none' | 'warn'; says: string; advice?: string }>;
export type Standing = keyof typeof STANDINGS;

type Records = Committee & Pick<Staking, 'validator' | 'activeValidators' | 'isKeyUsed'>;

/**
 * The active validator that has the key, had it recently or is about to have it. A key is used by one validator, once.
 */
function holderOf({ activeValidators }: Pick<Records, 'activeValidators'>, key: Bytes): Bytes | undefined {
  for (const { id, key: now, nextKey, formerKeys } of activeValidators())
    if ([now, nextKey?.value, ...formerKeys.map((one) => one.key)].some((one) => one && equalBytes(one, key)))
      return id;
  return undefined;
}

/**
 * The validator of a key, if none is configured. It keeps the identifier of its first key, so rotated keys are searched
 * too.
 */
export const validatorOfKey = (staking: Pick<Records, 'stake' | 'activeValidators'>, key: Bytes): Bytes =>
  staking.stake.committee.members.find(({ publicKey }) => equalBytes(publicKey, key))?.validatorId ??
  holderOf(staking, key) ??
  validatorId(key);

/**
 * For a key that is neither the current nor the next one of the validator with this identifier. Records drop former
 * keys after a while; the set of used keys does not.
 */
function strangeKey(staking: Records, id: Bytes, record: Validator | undefined, key: Bytes): Standing {
  if (!staking.isKeyUsed(consensusKeyHash(key))) return record === undefined ? 'unregistered' : 'other_key';
  const holder = holderOf(staking, key);
  if (holder !== undefined && !equalBytes(holder, id)) return 'other_validator';
  return record === undefined ? 'retired' : 'rotated';
}

/** `id` and the consensus key come from the node's configuration. */
export function standingOf(staking: Records, id: Bytes, key: Bytes): Standing {
  const record = staking.validator(id);
  if (record === undefined) return strangeKey(staking, id, record, key);
  const validator = asOf(record, staking.epoch);
  const { nextKey } = validator;
  const state = stateOf(staking, validator);
  if (state === 'slashed') return 'slashed';
  if (!equalBytes(validator.key, key))
    return nextKey !== undefined && equalBytes(nextKey.value, key)
      ? 'key_pending'
      : strangeKey(staking, id, record, key);
  if (state === 'exiting') return memberIndex(staking, id) < 0 ? 'left' : 'exiting';
  if (state === 'committee') return 'member';
  if (state !== 'eligible') return state;
  const last = staking.stake.committee.members[MAX_COMMITTEE - 1];
  return last !== undefined && validator.stake <= last.stake ? 'outbid' : 'waiting';
}
