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
  await expect(wallet.call('validator_heartbeat', { validator, request_id: 'more' })).rejects.toThrow(
    'already sent this epoch',
  );
  // The last cut of the epoch comes without it, and another one.
  await bed.api.bed.seal(2);
  await wallet.turn();
  expect(await wallet.call('validator_heartbeat', late)).toMatchObject({ state: 'void', reason: 'expired' });
  expect(await wallet.call('balance')).toMatchObject({ balance: before.balance, spendable: before.spendable });
  await wallet.call('validator_heartbeat', { validator, request_id: 'next' });
  await bed.beat();
  expect((await bed.api.client.stakingValidator({ id: validator })).validator.heartbeat_epoch).toBe(2);
});

test('an epoch that begins between quote and call: the change is in force as many epochs after it as the rules say', async () => {
  const { bed, wallet, validator } = await operator([150_000n * COIN, COIN, COIN, COIN]);
  const commission = { validator, commission_bps: 100, request_id: 'commission' };
  const rotate = { validator, consensus_key_index: 2_147_483_646, overlay_endpoint_hex: toHex(anEndpoint(4)) };
  const quotes = [
    await wallet.call('validator_commission', { ...commission, dry_run: true }),
    await wallet.call('validator_rotate', { ...rotate, request_id: 'rotate', dry_run: true }),
  ];
  expect(quotes.map(({ from_epoch }) => from_epoch)).toEqual([14, 2]);
  await bed.sealToEpoch(1);
  await wallet.turn();
  await wallet.call('validator_commission', commission);
  // Signed in one epoch, executed in the next: what counts is the cut.
  await bed.sealTo(2 * INTERVAL);
  await wallet.turn();
  await bed.beat();
  await wallet.turn();
  await wallet.call('validator_rotate', { ...rotate, request_id: 'rotate' });
  await bed.beat();
  expect((await bed.api.client.stakingValidator({ id: validator })).validator).toMatchObject({
    commission_bps: 500,
    pending_commission: { commission_bps: 100, epoch: 16 },
    pending_consensus_key_epoch: 4,
  });
});
