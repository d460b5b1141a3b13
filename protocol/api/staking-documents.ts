/** Documents about stake: positions, validators, and what an amount may earn. */
import { described, flag, type Infer, integer, list, nullable, object, oneOf, optional } from './schema.ts';
import {
  address,
  amount,
  count,
  cutReference,
  height,
  hex,
  identifier,
  MAX_BATCH_STAKES,
  nextCursor,
  version,
} from './values.ts';

export const stakingPosition = object(
  {
    position_id: identifier,
    kind: oneOf(['self_bond', 'delegation']),
    validator: described(identifier, 'validator id'),
    owner_address: address,
    reward_address: address,
    principal: amount,
    state: oneOf(['bonded', 'unbonding']),
    release_height: described(nullable(height), 'first cut that can withdraw it; null while it is bonded'),
    withdrawable: flag('the next cut could withdraw it'),
  },
  'StakingPosition',
);
export type StakingPosition = Infer<typeof stakingPosition>;

export const stakingPositions = object(
  {
    api_version: version,
    finalized_height: height,
    positions: described(list(stakingPosition), 'by owner in the order of the request, then by identifier'),
    next_cursor: nextCursor,
  },
  'StakingPositions',
);

const stakeIds = list(identifier, { maxItems: MAX_BATCH_STAKES });
export const stakingProofsBody = object(
  { api_version: optional(version), position_ids: stakeIds, validator_ids: stakeIds },
  'StakingProofsBody',
);
const path = described(hex, 'path in the set; see docs/api.md');
export const stakingProofs = object(
  {
    api_version: version,
    finalized_height: height,
    cut: cutReference,
    state_hex: described(hex, 'the state whose hash is the state root of the cut; the roots of the sets stand in it'),
    positions: list(
      object(
        {
          position_id: identifier,
          entry_hex: described(nullable(hex), 'null proves that there is none'),
          proof_hex: path,
        },
        'PositionProof',
      ),
    ),
    validators: list(
      object(
        {
          validator_id: identifier,
          record_hex: described(nullable(hex), 'null proves that there is none'),
          proof_hex: path,
        },
        'ValidatorProof',
      ),
    ),
  },
  'StakingProofs',
);

export const VALIDATOR_STATES = ['eligible', 'committee', 'lapsed', 'jailed', 'exiting', 'slashed'] as const;
export const validatorState = oneOf(VALIDATOR_STATES);

const basisPoints = integer({ maximum: 1000, description: 'basis points' });
const fromEpoch = described(count, 'in force from this epoch on');

export const validator = object(
  {
    validator_id: identifier,
    owner_address: address,
    reward_address: described(nullable(address), 'of the self-bond; null once it is withdrawn or burned'),
    state: validatorState,
    committee: flag('a member of the committee of the running epoch'),
    stake: described(amount, 'self-bond and active delegations; 0 once it exits or is slashed'),
    self_bond: amount,
    delegated: amount,
    delegations: count,
    commission_bps: basisPoints,
    pending_commission: nullable(object({ commission_bps: basisPoints, epoch: fromEpoch })),
    consensus_key_address: described(address, 'who signs its heartbeats'),
    pending_consensus_key_epoch: described(nullable(count), 'a rotated key signs from this epoch on'),
    endpoint: described(hex, 'overlay key and routes in canonical bytes'),
    pending_endpoint: nullable(object({ endpoint: hex, epoch: fromEpoch })),
    heartbeat_epoch: described(count, 'epoch of the last heartbeat; registration counts as one'),
    seat_from_epoch: described(count, 'first epoch whose committee it can sit in'),
    jailed_until_epoch: described(nullable(count), 'first epoch in which it can sit again'),
    attended_windows: described(nullable(count), 'of the 12 of the running epoch; null outside the committee'),
    exit_height: nullable(height),
    slash_height: nullable(height),
  },
  'Validator',
);
export type ValidatorDocument = Infer<typeof validator>;

const place = {
  api_version: version,
  finalized_height: height,
  epoch: described(count, 'of the next cut'),
  interval_cuts: count,
  validator_set_id: described(identifier, 'of the committee that certifies the next cut'),
};

export const stakingValidators = object(
  {
    ...place,
    validators: described(list(validator), 'in the order of their identifiers'),
    next_cursor: nextCursor,
  },
  'StakingValidators',
);
export const stakingValidator = object({ ...place, validator }, 'StakingValidator');

export const stakingEstimate = object(
  {
    api_version: version,
    finalized_height: height,
    amount,
    total_bonded: amount,
    sharing_stake: described(amount, 'stake of the committee, which alone shares the pool'),
    pool_per_day: described(amount, 'stake half of an interval at the pace of the running one, fees included'),
    reward_per_day: described(amount, 'before commission, if a member of the committee is chosen'),
  },
  'StakingEstimate',
);
