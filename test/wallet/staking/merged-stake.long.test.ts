/** Cuts pass between the merges of `compound_first` and the stake that follows: what was agreed to is asked again before it is signed. A real node. */
import { expect, test } from 'vitest';
import { developmentKey, TREASURY, validatorName } from '../../../node/genesis/development.ts';
import { ApiError } from '../../../protocol/api/client.ts';
import { fromHex } from '../../../protocol/bytes.ts';
import { operationTransaction } from '../../staking/signed.ts';
import { lasts } from '../../watch/limits.ts';
import { IMPATIENT, openTestWallet } from '../open-wallet.ts';
import { COIN, StakingBed, validatorAt } from './staking-bed.ts';

const params = { validator: validatorAt(0), amount: '150', request_id: 's', compound_first: true };

/** A wallet whose merges for a stake of 150 coins wait for the next cut. */
async function merging(more: { epoch?: number } = {}) {
  const bed = await StakingBed.open({ amounts: Array.from({ length: 20 }, () => 10n * COIN) });
  const { client } = bed.api;
  const node = { asked: '10', isAway: false };
  const away = () => Promise.reject(new ApiError('client_unreachable', 0, 'no answer'));
  const faulty = {
    ...client,
    manifest: async () => ({ ...(await client.manifest()), min_fee_per_mass: node.asked }),
    stakingValidator: (...words: Parameters<typeof client.stakingValidator>) =>
      node.isAway ? away() : client.stakingValidator(...words),
    nodeSync: () => (node.isAway ? away() : client.nodeSync()),
  };
  await bed.beat();
  const wallet = await openTestWallet({ client: faulty }, IMPATIENT);
  await wallet.turn();
  const order = { ...params, ...more };
  expect(await wallet.refusal('stake', order)).toMatchObject({ word: 'outcome_unknown' });
  const states = async () =>
    ((await wallet.call('pending')).transactions as { state: string }[]).map(({ state }) => state);
  await expect.poll(states).toEqual(['submitted', 'submitted']);
  const step = async () => {
    await bed.beat();
    await wallet.turn();
  };
  /** The node comes back with another fee. */
  const asks = async (fee: string) => {
    Object.assign(node, { asked: fee, isAway: true });
    await step();
    expect((await wallet.call('pending')).merging).toHaveLength(1);
    node.isAway = false;
  };
  const request = async () =>
    ((await wallet.call('requests', { prefix: 's' })).requests as Record<string, unknown>[])[0];
  const nothingStaked = async () => {
    expect((await wallet.call('positions')).positions).toEqual([]);
    const { balance, spendable } = await wallet.call('balance');
    expect(spendable).toBe(balance);
  };
  return { bed, node, ...wallet, order, step, asks, request, nothingStaked };
}

test(
  'an epoch that began meanwhile: the commission of the quote may not hold, and nothing is staked',
  lasts(120, 'hundreds of outputs are merged first'),
  async () => {
    const { bed, turn, refusal, order, nothingStaked } = await merging({ epoch: 0 });
    await bed.beat();
    await bed.sealToEpoch(1);
    await bed.beat();
    await turn();
    expect(await refusal('stake', order)).toMatchObject({ word: 'epoch_changed' });
    await nothingStaked();
  },
);

test(
  'a validator that leaves meanwhile gets no stake',
  lasts(120, 'hundreds of outputs are merged first'),
  async () => {
    const { bed, step, refusal, order, nothingStaked } = await merging();
    const exit = operationTransaction(
      bed.api.bed.node.chain,
      { key: developmentKey(TREASURY), spend: bed.api.bed.treasury(0) },
      { name: 'exit', validator: fromHex(validatorAt(0)) },
      { signer: developmentKey(validatorName(0)), feePerMass: 100n },
    );
    expect((await bed.api.bed.node.submitTransaction(exit)).status).toBe('accepted');
    await step();
    expect(await refusal('stake', order)).toMatchObject({ word: 'validator_inactive' });
    await nothingStaked();
  },
);

test(
  'a fee above the limit of the wallet ends it; one below is paid',
  lasts(120, 'hundreds of outputs are merged first'),
  async () => {
    const dear = await merging();
    await dear.asks('101');
    await dear.step();
    expect(await dear.refusal('stake', dear.order)).toMatchObject({ word: 'fee_too_high' });
    await dear.nothingStaked();

    const { asks, step, request, call, order } = await merging();
    await asks('20');
    const state = async () => {
      await step();
      return (await request())?.state;
    };
    await expect.poll(state).toBe('finalized');
    expect(await call('stake', order)).toMatchObject({ fee_per_mass: '20', duplicate: true });
    expect((await call('positions')).positions).toMatchObject([{ principal: '150.00000000' }]);
  },
);
