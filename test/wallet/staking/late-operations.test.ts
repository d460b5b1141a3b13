/** An operation that the end of an epoch or another one overtakes between its signature and its cut: nothing is paid, nothing stays held, and the way is free. */
import { expect, test } from 'vitest';
import { toHex } from '../../../protocol/bytes.ts';
import { anEndpoint } from '../../staking/signed.ts';
import { COIN, INTERVAL, StakingBed } from './staking-bed.ts';

/** A wallet whose validator is registered. */
async function operator(amounts: readonly bigint[]) {
  const bed = await StakingBed.open({ amounts });
  const wallet = await bed.wallet();
  const register = { amount: '100000', overlay_endpoint_hex: toHex(anEndpoint(3)), request_id: 'register' };
  const { validator } = (await wallet.call('validator_register', register)) as { validator: string };
  await bed.beat();
  await wallet.turn();
  return { bed, wallet, validator };
}

test('a heartbeat that its epoch leaves behind is void with the epoch: the next one is sent at once', async () => {
  const { bed, wallet, validator } = await operator([150_000n * COIN, COIN]);
  await bed.sealToEpoch(1);
  await bed.sealTo(2 * INTERVAL - 1);
  await wallet.turn();
  const before = await wallet.call('balance');
  const late = { validator, request_id: 'late' };
  expect(await wallet.call('validator_heartbeat', late)).toMatchObject({ state: 'pending' });
  // The last cut of the epoch comes without it, and another one.
  await bed.api.bed.seal(2);
  await wallet.turn();
  expect(await wallet.call('validator_heartbeat', late)).toMatchObject({ state: 'void', reason: 'expired' });
  expect(await wallet.call('balance')).toMatchObject({ balance: before.balance, spendable: before.spendable });
  await wallet.call('validator_heartbeat', { validator, request_id: 'next' });
  await bed.beat();
  expect((await bed.api.client.stakingValidator({ id: validator })).validator.heartbeat_epoch).toBe(2);
});
