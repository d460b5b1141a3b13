/** Operations of a validator's owner through restarts of the wallet: the request that was made is found again, and nothing is done twice. */
import { expect, test } from 'vitest';
import { toHex } from '../../../protocol/bytes.ts';
import { anEndpoint } from '../../staking/signed.ts';
import { COIN, INTERVAL, StakingBed } from './staking-bed.ts';

test('a wallet that was closed after each operation answers with the same transaction, before and after it is final', async () => {
  const bed = await StakingBed.open({ amounts: [150_000n * COIN, 10n * COIN, 10n * COIN, 10n * COIN] });
  let wallet = await bed.wallet();
  const { directory } = wallet;
  const endpoint = toHex(anEndpoint(3));
  const registered = await wallet.call('validator_register', {
    amount: '100000',
    overlay_endpoint_hex: endpoint,
    request_id: 'register',
  });
  await bed.beat();
  await bed.sealToEpoch(1);
  await wallet.turn();
  const validator = registered.validator as string;
  const index = { consensus_key_index: 2_147_483_646, overlay_endpoint_hex: toHex(anEndpoint(4)) };
  const wishes: [string, Record<string, unknown>][] = [
    ['validator_heartbeat', {}],
    ['validator_commission', { commission_bps: 300 }],
    ['validator_rotate', index],
    ['validator_exit', {}],
  ];
  for (const [method, more] of wishes) {
    const params = { validator, ...more, request_id: method };
    const first = await wallet.call(method, params);
    await wallet.wallet.close();
    wallet = await bed.wallet({ directory });
    // Before and after it is final.
    expect(await wallet.call(method, params)).toMatchObject({ transaction: first.transaction, duplicate: true });
    await bed.beat();
    await wallet.turn();
    expect(await wallet.call(method, params)).toMatchObject({
      transaction: first.transaction,
      duplicate: true,
      state: 'finalized',
      fee: first.fee,
    });
  }
  const { validator: left } = await bed.api.client.stakingValidator({ id: validator });
  expect(left).toMatchObject({ state: 'exiting', heartbeat_epoch: 1, pending_commission: { commission_bps: 300 } });
  expect(left.pending_consensus_key_epoch).toBe(3);
  const { requests } = (await wallet.call('requests', { prefix: 'validator_' })) as { requests: { state: string }[] };
  expect(requests.map(({ state }) => state)).toEqual(new Array(4).fill('finalized'));
  expect(bed.height).toBe(INTERVAL + 3);
});

test('a node that is away: nothing is kept of the request; later one of a kind at a time', async () => {
  const bed = await StakingBed.open({ amounts: [150_000n * COIN, 10n * COIN] });
  const wallet = await bed.wallet();
  const params = { amount: '100000', overlay_endpoint_hex: toHex(anEndpoint(3)), request_id: 'register' };
  const { validator } = (await wallet.call('validator_register', params)) as { validator: string };
  await bed.beat();
  await wallet.turn();
  const commission = { validator, commission_bps: 100, request_id: 'c' };
  bed.api.api.serve(undefined);
  expect(await wallet.refusal('validator_commission', commission)).toMatchObject({ word: 'node_unreachable' });
  bed.api.api.serve(bed.api.bed.node);
  await wallet.turn();
  expect((await wallet.call('requests', { prefix: 'c' })).requests).toEqual([]);
  expect(await wallet.call('validator_commission', commission)).toMatchObject({ duplicate: false });
  expect(await wallet.refusal('validator_commission', { ...commission, request_id: 'd' })).toMatchObject({
    code: -32003,
    word: 'validator_busy',
    data: { request_id: 'c' },
  });
});
