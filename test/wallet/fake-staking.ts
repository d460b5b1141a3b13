/** The staking calls of a chain without validators. Tests of staking use a real node (staking/staking-bed.ts). */
import { ApiError } from '../../protocol/api/client.ts';
import type { StakingClient } from '../../wallet/chain/staking-reads.ts';

export const noStaking = (height: () => number): StakingClient => ({
  stakingPositions: async () => ({ api_version: 1, finalized_height: height(), positions: [] }),
  stakingValidators: async () => ({
    api_version: 1,
    finalized_height: height(),
    epoch: 0,
    interval_cuts: 24,
    validator_set_id: '00'.repeat(48),
    validators: [],
  }),
  stakingValidator: () => Promise.reject(new ApiError('validator_unknown', 404, 'no validator has this identifier')),
});
