/** The specification's methods of the group Staking, one test for each, against a real node. */
import { expect, test } from 'vitest';
import { formatCoins, parseCoins } from '../../../protocol/amount.ts';
import { toHex } from '../../../protocol/bytes.ts';
import { anEndpoint } from '../../staking/signed.ts';
import { COIN, INTERVAL, ownAddress, stakingWallet, validatorAt } from './staking-bed.ts';

const RESULT = ['kind', 'amount', 'fee', 'fee_per_mass', 'transaction', 'submitted', 'duplicate', 'request_id'];
const NOBODY = 'ab'.repeat(48);
const feeOf = (result: Record<string, unknown>) => parseCoins(result.fee as string);

test('Staking: `validators`', async () => {
  const { bed, wallet } = await stakingWallet();
  const answer = await wallet.call('validators');
  expect(answer).toMatchObject({ epoch: 0, interval_cuts: INTERVAL, finalized_height: bed.height });
  const [first, second] = answer.validators as Record<string, unknown>[];
  expect([first?.validator, second?.validator].sort()).toEqual([validatorAt(0), validatorAt(1)].sort());
  expect(first).toMatchObject({ state: 'committee', commission_bps: 0, delegated: '0.00000000', delegations: 0 });
  expect(first?.stake).toMatch(/^\d+\.\d{8}$/);
  expect((await wallet.call('validators', { state: 'jailed' })).validators).toEqual([]);
  expect(await wallet.refusal('validators', { state: 'asleep' })).toMatchObject({ code: -32602 });
  expect(await wallet.refusal('validators', { surprise: 1 })).toMatchObject({ code: -32602 });
});

test('Staking: `positions`', async () => {
  const { wallet, staked, positions } = await stakingWallet();
  expect(await wallet.call('positions')).toMatchObject({ positions: [], bonded: '0.00000000' });
  const position = await staked('1000.00000001');
  expect(await positions()).toEqual([
    {
      position,
      kind: 'delegation',
      validator: validatorAt(0),
      owner_address: ownAddress('test', 'change'),
      reward_address: ownAddress('test', 'change'),
      principal: '1000.00000001',
      state: 'bonded',
      release_height: null,
      withdrawable: false,
      request_id: null,
    },
  ]);
  await wallet.call('unstake', { position, request_id: 'u' });
  expect(await positions()).toMatchObject([{ state: 'bonded', request_id: 'u' }]);
  expect(await wallet.call('positions')).toMatchObject({ bonded: '1000.00000001', unbonding: '0.00000000' });
  expect(await wallet.refusal('positions', { surprise: 1 })).toMatchObject({ code: -32602 });
});

test('Staking: `stake`', async () => {
  const { bed, wallet, settle, positions } = await stakingWallet();
  const reward = (await wallet.call('new_address', { label: 'rewards' })).address as string;
  const params = { validator: validatorAt(1), amount: '250.5', request_id: 's', reward_address: reward };
  const quote = await wallet.call('stake', { ...params, dry_run: true });
  expect(quote).toMatchObject({ submitted: false, transaction: null, position: null, amount: '250.50000000' });
  expect(quote).toMatchObject({ epoch: 0, validator_state: 'committee', commission_bps: 0, pending_commission: null });
  const result = await wallet.call('stake', { ...params, epoch: quote.epoch });
  for (const field of RESULT) expect(result).toHaveProperty(field);
  expect(result).toMatchObject({ kind: 'stake', validator: validatorAt(1), fee: quote.fee, duplicate: false });
  expect(await wallet.call('pending')).toMatchObject({
    transactions: [{ operation: 'stake', amount: '250.50000000', position: result.position, recipients: [] }],
  });
  await settle();
  expect(await positions()).toMatchObject([
    { position: result.position, validator: validatorAt(1), principal: '250.50000000', reward_address: reward },
  ]);
  // The first result again, whatever else is asked for, and after the outcome is final too.
  const again = await wallet.call('stake', { ...params, amount: '300' });
  expect(again).toEqual({ ...result, duplicate: true, state: 'finalized' });
  expect(await wallet.call('stake', { ...params, dry_run: true })).toEqual(again);
  await settle();
  expect(await positions()).toHaveLength(1);
  expect((await wallet.call('balance')).balance).toBe(formatCoins(5_020n * COIN - 25_050_000_000n - feeOf(result)));
  expect((await wallet.call('history')).entries).toMatchObject([{ kind: 'staked', fee: result.fee }, {}, {}, {}]);
  expect((await wallet.call('requests', { prefix: 's' })).requests).toMatchObject([
    { kind: 'stake', amount: '250.50000000', position: result.position, state: 'finalized' },
  ]);
  expect(bed.height).toBe(3);
});

test('Staking: `stake` and `unstake` refuse before anything is signed', async () => {
  const { bed, wallet, staked } = await stakingWallet();
  const stake = (more: object) =>
    wallet.refusal('stake', { validator: validatorAt(0), amount: '1000', request_id: 'r', ...more });
  expect(await stake({ validator: NOBODY })).toMatchObject({ code: -32602, word: 'validator_unknown' });
  expect(await stake({ validator: 'xyz' })).toMatchObject({ code: -32602, word: 'params_invalid' });
  expect(await stake({ amount: '99.99999999' })).toMatchObject({
    code: -32602,
    word: 'stake_below_minimum',
    data: { minimum: '100.00000000' },
  });
  expect(await stake({ amount: '0' })).toMatchObject({ word: 'amount_invalid' });
  expect(await stake({ reward_address: 'nonsense' })).toMatchObject({ word: 'address_invalid' });
  expect(await stake({ surprise: 1 })).toMatchObject({ word: 'params_invalid' });
  // The epoch of the quote is over: the caller must decide again.
  await bed.sealToEpoch(1);
  await wallet.turn();
  expect(await stake({ epoch: 0 })).toMatchObject({ code: -32000, word: 'epoch_changed', data: { epoch: 1 } });
  expect((await wallet.call('pending')).transactions).toEqual([]);
  expect((await wallet.call('requests', { prefix: 'r' })).requests).toEqual([]);
  bed.api.api.serve(undefined);
  expect(await stake({})).toMatchObject({ code: -32001, word: 'node_unreachable' });
  bed.api.api.serve(bed.api.bed.node);
  await wallet.turn();
  // Nothing was kept of all that: the id is free.
  const position = await staked('1000', 'r');
  expect(position).toMatch(/^[0-9a-f]{96}$/);
  const unstake = (more: object) => wallet.refusal('unstake', { position, request_id: 'v', ...more });
  expect(await unstake({ position: NOBODY })).toMatchObject({ code: -32602, word: 'position_unknown' });
  for (const amount of ['99.99999999', '900.00000001', '1000.00000001'])
    expect(await unstake({ amount })).toMatchObject({
      code: -32602,
      word: 'unstake_amount',
      data: { principal: '1000.00000000', minimum: '100.00000000' },
    });
  expect(await unstake({ amount: '-1' })).toMatchObject({ word: 'amount_invalid' });
  expect(await unstake({ surprise: 1 })).toMatchObject({ word: 'params_invalid' });
  expect((await wallet.call('requests', { prefix: 'v' })).requests).toEqual([]);
});

test('Staking: `stake` with exactly enough, and with one atom less', async () => {
  const { wallet, settle, positions } = await stakingWallet([200n * COIN]);
  const params = { validator: validatorAt(0), amount: '100', request_id: 'q', dry_run: true };
  // All of the output is stake and fee: there is no change to pay for.
  const { needed } = (await wallet.refusal('stake', { ...params, amount: '200' })).data as { needed: string };
  const most = 200n * COIN - (parseCoins(needed) - 200n * COIN);
  const stake = (amount: bigint) => ({ validator: validatorAt(0), amount: formatCoins(amount), request_id: 'all' });
  expect(await wallet.refusal('stake', stake(most + 1n))).toMatchObject({
    code: -32000,
    word: 'insufficient_funds',
    data: { needed: '200.00000001', spendable: '200.00000000' },
  });
  const result = await wallet.call('stake', stake(most));
  expect(most + feeOf(result)).toBe(200n * COIN);
  await settle();
  expect(await positions()).toMatchObject([{ principal: formatCoins(most) }]);
  expect(await wallet.call('balance')).toMatchObject({ balance: '0.00000000', outputs: 0 });
  // Nothing is left for the fee of going back.
  const [{ position }] = (await positions()) as [{ position: string }];
  expect(await wallet.refusal('unstake', { position, request_id: 'u' })).toMatchObject({ word: 'insufficient_funds' });
});

test('Staking: `unstake`', async () => {
  const { bed, wallet, settle, staked, positions } = await stakingWallet();
  const position = await staked();
  expect(await wallet.call('unstake', { position, amount: '400', request_id: 'part', dry_run: true })).toMatchObject({
    submitted: false,
    amount: '400.00000000',
    unbonding_position: null,
  });
  const part = await wallet.call('unstake', { position, amount: '400', request_id: 'part' });
  for (const field of RESULT) expect(part).toHaveProperty(field);
  expect(part).toMatchObject({ kind: 'unstake', amount: '400.00000000', position, validator: validatorAt(0) });
  expect(part.unbonding_position).not.toBe(position);
  expect(await wallet.refusal('unstake', { position, request_id: 'other' })).toMatchObject({
    code: -32003,
    word: 'position_busy',
    data: { request_id: 'part' },
  });
  await settle();
  const rest = await wallet.call('unstake', { position, request_id: 'rest' });
  expect(rest).toMatchObject({ amount: '600.00000000', unbonding_position: position });
  await settle();
  const release = bed.height + 10 * INTERVAL;
  expect((await positions()).map(({ principal, state, release_height }) => [principal, state, release_height])).toEqual(
    expect.arrayContaining([
      ['400.00000000', 'unbonding', release - 1],
      ['600.00000000', 'unbonding', release],
    ]),
  );
  expect(await wallet.call('unstake', { position, request_id: 'part' })).toEqual({
    ...part,
    duplicate: true,
    state: 'finalized',
  });
  expect(await wallet.refusal('unstake', { position, request_id: 'third' })).toMatchObject({
    code: -32000,
    word: 'position_unbonding',
    data: { release_height: release },
  });
});

test('Staking: `withdraw`', async () => {
  const { bed, wallet, settle, staked, positions } = await stakingWallet();
  const position = await staked();
  const withdraw = (request_id: string) => wallet.refusal('withdraw', { position, request_id });
  expect(await withdraw('early')).toMatchObject({ code: -32000, word: 'position_bonded' });
  await wallet.call('unstake', { position, request_id: 'u' });
  await settle();
  const release = bed.height + 10 * INTERVAL;
  await bed.sealTo(release - 1);
  await wallet.turn();
  expect(await withdraw('early')).toMatchObject({
    code: -32000,
    word: 'position_locked',
    data: { release_height: release },
  });
  await bed.sealTo(release);
  await wallet.turn();
  expect(await wallet.call('positions')).toMatchObject({ withdrawable: '1000.00000000' });
  const before = parseCoins((await wallet.call('balance')).balance as string);
  const result = await wallet.call('withdraw', { position, request_id: 'w' });
  for (const field of RESULT) expect(result).toHaveProperty(field);
  expect(result).toMatchObject({ kind: 'withdraw', amount: '1000.00000000', position, validator: validatorAt(0) });
  expect(await withdraw('another')).toMatchObject({ code: -32003, word: 'position_busy' });
  await settle();
  expect(await positions()).toEqual([]);
  expect((await wallet.call('balance')).balance).toBe(formatCoins(before - feeOf(result) + 1_000n * COIN));
  expect(await wallet.call('withdraw', { position, request_id: 'w' })).toEqual({
    ...result,
    duplicate: true,
    state: 'finalized',
  });
  expect(await withdraw('another')).toMatchObject({ code: -32602, word: 'position_unknown' });
  expect(await wallet.refusal('withdraw', { position, request_id: 'x', surprise: 1 })).toMatchObject({ code: -32602 });
  // Money that was this wallet's before is no payment that a service would credit.
  const { entries } = (await wallet.call('history', { limit: 2 })) as { entries: { kind: string; amount: string }[] };
  expect(entries.find(({ kind }) => kind === 'withdrawn')?.amount).toBe('1000.00000000');
  const { payments } = (await wallet.call('received', { since_height: bed.height - 1 })) as { payments: unknown[] };
  expect(payments).toEqual([]);
});

test('whatever is no endpoint is refused with the command that prints one', async () => {
  const { wallet } = await stakingWallet();
  const hex = toHex(anEndpoint(7));
  for (const wrong of ['', 'no hex', hex.slice(1), hex.slice(2), '00', hex.repeat(40)])
    for (const [method, params] of [
      ['validator_register', { amount: '100000' }],
      ['validator_rotate', { validator: NOBODY, consensus_key_index: 2_147_483_646 }],
      ['validator_endpoint', { validator: NOBODY, consensus_key_index: 2_147_483_647 }],
    ] as const)
      expect(
        await wallet.refusal(method, { ...params, overlay_endpoint_hex: wrong, request_id: 'r' }),
        `${method} ${wrong}`,
      ).toMatchObject({
        message: expect.stringContaining("'svcd validator-endpoint'"),
        data: { code: 'endpoint_invalid', field: 'overlay_endpoint_hex' },
      });
});
