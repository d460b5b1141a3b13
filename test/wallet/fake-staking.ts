/** The calls of a chain without validators, and of one without multisig addresses. Tests of both use a real node (staking/staking-bed.ts). */
import { ApiError } from '../../protocol/api/client.ts';
import type { NodeClient } from '../../wallet/chain/node-link.ts';
import type { StakingClient } from '../../wallet/chain/staking-reads.ts';

const noStaking = (height: () => number): StakingClient => ({
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

const noMultisig = (height: () => number): Pick<NodeClient, 'addressBalances' | 'addressHistory'> => ({
  addressBalances: async ({ addresses }) => ({
    api_version: 1,
    finalized_height: height(),
    indexed_height: height(),
    balances: addresses.map((address) => ({ address, balance: '0', utxos: 0 })),
  }),
  addressHistory: async ({ address }) => ({ api_version: 1, address, indexed_height: height(), events: [] }),
});

export const quietChain = (height: () => number) => ({ ...noStaking(height), ...noMultisig(height) });
