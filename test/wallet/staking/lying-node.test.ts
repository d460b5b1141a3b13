/** A node that names an epoch without cuts: heights follow from it, so it is refused with a code wherever it is read. */
import { expect, test } from 'vitest';
import { readValidator, readValidators, type StakingClient } from '../../../wallet/chain/staking-reads.ts';
import { quietChain } from '../fake-staking.ts';

const ID = 'ab'.repeat(48);
const quiet = quietChain(() => 5);
const client: StakingClient = {
  ...quiet,
  stakingValidators: async (ask) => ({ ...(await quiet.stakingValidators(ask)), interval_cuts: 0 }),
  stakingValidator: async ({ id }) =>
    ({ api_version: 1, finalized_height: 5, epoch: 0, interval_cuts: 0, validator: { validator_id: id } }) as never,
};

test('an epoch of 0 cuts is an answer that is not believed', async () => {
  const refusal = { code: 'node_unreachable', message: expect.stringContaining('an epoch has 0 cuts') };
  await expect(readValidators(client, undefined)).rejects.toMatchObject(refusal);
  await expect(readValidator(client, ID)).rejects.toMatchObject(refusal);
  expect(await readValidators(quiet, undefined)).toMatchObject({ interval_cuts: 24 });
});
