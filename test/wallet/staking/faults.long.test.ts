/** Faults between a request to stake and its cut: many small outputs, lost answers, a restart, two at once, a validator that leaves. */
import { expect, test } from 'vitest';
import { developmentKey, TREASURY, validatorName } from '../../../node/genesis/development.ts';
import { ApiError } from '../../../protocol/api/client.ts';
import { fromHex, toHex } from '../../../protocol/bytes.ts';
import { anEndpoint, operationTransaction } from '../../staking/signed.ts';
import { IMPATIENT, openTestWallet } from '../open-wallet.ts';
import { COIN, StakingBed, stakingWallet, validatorAt } from './staking-bed.ts';

const stakeOf = (amount: string, request_id: string, more: object = {}) => ({
  validator: validatorAt(0),
  amount,
  request_id,
  ...more,
});

test('compound_first merges, and then stakes once, across a restart', async () => {
  const bed = await StakingBed.open({ amounts: Array.from({ length: 20 }, () => 10n * COIN) });
  const first = await bed.wallet({ answerMillis: 200 });
  const params = stakeOf('150', 's', { compound_first: true });
  expect(await first.refusal('stake', stakeOf('150', 's'))).toMatchObject({ word: 'too_many_outputs' });
  expect(await first.refusal('stake', params)).toMatchObject({ code: -32002, word: 'outcome_unknown' });
  const states = async () =>
    ((await first.call('pending')).transactions as { state: string }[]).map(({ state }) => state);
  await expect.poll(states).toEqual(['submitted', 'submitted']);
  await first.wallet.close();
  await bed.beat();
  const second = await openTestWallet({ client: bed.api.client }, { directory: first.directory, answerMillis: 200 });
  // What the first one merged is read, and the next cuts bring the stake.
  const state = async () => {
    await second.turn();
    await bed.beat();
    return ((await second.call('requests', { prefix: 's' })).requests as { state: string }[])[0]?.state;
  };
  await expect.poll(state).toBe('finalized');
  const result = await second.call('stake', params);
  expect(result).toMatchObject({ duplicate: true, state: 'finalized', amount: '150.00000000' });
  expect((await second.call('positions')).positions).toMatchObject([
    { position: result.position, principal: '150.00000000' },
  ]);
});

test('a registration that still merges its outputs holds its validator: a second request for it has to wait', async () => {
  const bed = await StakingBed.open({ amounts: Array.from({ length: 36 }, () => 6_000n * COIN) });
  const wallet = await bed.wallet({ answerMillis: 200 });
  const order = { amount: '100000', overlay_endpoint_hex: toHex(anEndpoint(7)), compound_first: true };
  const register = (request_id: string) => wallet.refusal('validator_register', { ...order, request_id });
  expect(await register('a')).toMatchObject({ word: 'outcome_unknown' });
  expect(await register('b')).toMatchObject({ word: 'position_busy', data: { request_id: 'a' } });
  expect(await register('a')).toMatchObject({ word: 'outcome_unknown' });
  const states = async () =>
    new Set(((await wallet.call('pending')).transactions as { state: string }[]).map((one) => one.state));
  await expect.poll(states).toEqual(new Set(['submitted']));
});

test('a lost answer is unknown, and the stake happens once; the words alone find it again', async () => {
  const bed = await StakingBed.open({ amounts: [500n * COIN, 500n * COIN] });
  const { client } = bed.api;
  let lost = true;
  let submissions = 0;
  const arrived = Promise.withResolvers<void>();
  const flaky = {
    ...client,
    submitTransaction: async (wire: Uint8Array) => {
      submissions++;
      const answer = await client.submitTransaction(wire);
      arrived.resolve();
      if (lost) throw new ApiError('client_outcome_unknown', 0, 'no answer');
      return answer;
    },
  };
  await bed.beat();
  const wallet = await openTestWallet({ client: flaky }, IMPATIENT);
  await wallet.turn();
  expect(await wallet.refusal('stake', stakeOf('300', 's'))).toMatchObject({ code: -32002 });
  // Another id is another request; the same id is not.
  expect(await wallet.refusal('stake', stakeOf('300', 's'))).toMatchObject({ code: -32002 });
  await arrived.promise;
  expect(submissions).toBe(1);
  lost = false;
  await bed.beat();
  await wallet.turn();
  const result = await wallet.call('stake', stakeOf('300', 's'));
  expect(result).toMatchObject({ duplicate: true, state: 'finalized' });
  const positions = await wallet.call('positions');
  expect(positions).toMatchObject({ positions: [{ position: result.position }], bonded: '300.00000000' });
  const restored = await bed.wallet();
  expect(await restored.call('positions')).toEqual(positions);
  expect((await restored.call('balance')).balance).toBe((await wallet.call('balance')).balance);
});

test('two wishes at once on one position: one is done, the other has to wait', async () => {
  const { wallet, settle, staked, positions } = await stakingWallet();
  const position = await staked();
  const both = await Promise.allSettled(
    ['a', 'b'].map((request_id) => wallet.call('unstake', { position, amount: '300', request_id })),
  );
  expect(both.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
  const rejected = both.find(({ status }) => status === 'rejected') as PromiseRejectedResult;
  expect(String(rejected.reason)).toContain('position_busy');
  await settle();
  expect((await positions()).map(({ principal }) => principal).sort()).toEqual(['300.00000000', '700.00000000']);
});

test('a validator that leaves between signing and the cut costs the staker nothing', async () => {
  const bed = await StakingBed.open({ amounts: [500n * COIN] });
  const wallet = await bed.wallet({ validityCuts: 10 });
  const { node } = bed.api.bed;
  const exit = operationTransaction(
    node.chain,
    { key: developmentKey(TREASURY), spend: bed.api.bed.treasury(0) },
    { name: 'exit', validator: fromHex(validatorAt(0)) },
    { signer: developmentKey(validatorName(0)), feePerMass: 100n },
  );
  // It pays more, so it comes first in the block of both.
  expect((await node.submitTransaction(exit)).status).toBe('accepted');
  const result = await wallet.call('stake', stakeOf('300', 's'));
  expect(result.state).toBe('pending');
  for (let i = 0; i < 13; i++) await bed.beat();
  await wallet.turn();
  expect(await wallet.call('stake', stakeOf('300', 's'))).toMatchObject({ state: 'void', reason: 'expired' });
  expect((await wallet.call('positions')).positions).toEqual([]);
  expect(await wallet.call('balance')).toMatchObject({ balance: '500.00000000', spendable: '500.00000000' });
  expect(await wallet.refusal('stake', stakeOf('300', 't'))).toMatchObject({
    code: -32000,
    word: 'validator_inactive',
    data: { state: 'exiting' },
  });
});
