/**
 * Documents about supply, emission and staking rewards (specification: Supply document).
 */

import { described, type Infer, object } from './schema.ts';
import { amount, count, height, millis, version } from './values.ts';

export const supply = object(
  {
    api_version: version,
    finalized_height: height,
    max_supply: amount,
    minted: amount,
    burned: amount,
    total_supply: amount,
    circulating_supply: amount,
    bonded: amount,
    unbonding: amount,
    work_reserve: amount,
    stake_reserve: amount,
    unscheduled_emission: amount,
  },
  'Supply',
);
export type Supply = Infer<typeof supply>;

export const emission = object(
  {
    api_version: version,
    finalized_height: height,
    interval: described(count, 'running interval, from 0'),
    interval_cuts: count,
    interval_amount: amount,
    subsidy: described(amount, 'of the next cut'),
    work_half: amount,
    stake_half: amount,
    next_reduction_height: described(height, 'first cut of the next interval'),
    next_interval_amount: amount,
    next_reduction_millis: described(millis, 'estimate at the recent pace of cuts'),
    remaining: described(amount, 'emission still to come after the finalized cut'),
  },
  'Emission',
);
