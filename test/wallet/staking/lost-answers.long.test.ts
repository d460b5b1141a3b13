/** Every staking operation with a node that is away when it is asked for, and whose answer to the submission is lost: nothing is kept of the first, and the second happens once. */
import { expect, test } from 'vitest';
import { formatCoins, parseCoins } from '../../../protocol/amount.ts';
import { ApiError, createApiClient } from '../../../protocol/api/client.ts';
import { toHex } from '../../../protocol/bytes.ts';
import { apiClientDependencies } from '../../../runtime/node-client/api-client.ts';
import { anEndpoint } from '../../staking/signed.ts';
import { IMPATIENT, openTestWallet } from '../open-wallet.ts';
import { COIN, INTERVAL, ownAddress, StakingBed, validatorAt } from './staking-bed.ts';

const LAST_INDEX = 2_147_483_647;
const FUNDS = [100_100n * COIN, ...Array.from({ length: 12 }, () => 200n * COIN)];

test('ten operations, each asked for while the node is away, then with its answer lost', async () => {
  const bed = await StakingBed.open({ amounts: FUNDS }, { name: 'cold', amounts: [] });
  const { bed: node, api } = bed.api;
  // Without tries that wait for the node.
  const client = createApiClient({ baseUrl: bed.api.base, attempts: 1 }, apiClientDependencies());
  let submissions = 0;
  const arrived: (() => void)[] = [];
  const forgetful = {
    ...client,
    submitTransaction: async (wire: Uint8Array) => {
      await client.submitTransaction(wire);
      submissions++;
      arrived.splice(0).forEach((told) => {
        told();
      });
      throw new ApiError('client_outcome_unknown', 0, 'no answer');
    },
  };
  await bed.beat();
  const wallet = await openTestWallet({ client: forgetful }, IMPATIENT);
  await wallet.turn();
  let fees = 0n;

  /** The result, once it is final. */
  async function operate(method: string, wish: Record<string, unknown>): Promise<Record<string, unknown>> {
    const params = { ...wish, request_id: method };
    api.serve(undefined);
    expect(await wallet.refusal(method, params)).toMatchObject({ code: -32001, word: 'node_unreachable' });
    api.serve(node.node);
    await wallet.turn();
    expect((await wallet.call('requests', { prefix: method })).requests).toEqual([]);

    const submitted = new Promise<void>((resolve) => void arrived.push(resolve));
    const before = submissions;
    expect(await wallet.refusal(method, params)).toMatchObject({ code: -32002, word: 'outcome_unknown' });
    await submitted;
    // The same id again is the same wish: it waits for the same answer.
    expect(await wallet.refusal(method, params)).toMatchObject({ code: -32002 });
    expect(submissions).toBe(before + 1);
    await bed.beat();
    await wallet.turn();
    const result = await wallet.call(method, params);
    expect({ method, ...result }).toMatchObject({ duplicate: true, state: 'finalized' });
    fees += parseCoins(result.fee as string);
    return result;
  }

  const registered = await operate('validator_register', {
    amount: '100000',
    overlay_endpoint_hex: toHex(anEndpoint(3)),
  });
  const validator = registered.validator as string;
  const shown = async () => (await client.stakingValidator({ id: validator })).validator;
  await bed.sealToEpoch(1);
  await wallet.turn();
  await operate('validator_heartbeat', { validator });
  await operate('validator_commission', { validator, commission_bps: 300 });
  const endpoint = { consensus_key_index: LAST_INDEX, overlay_endpoint_hex: toHex(anEndpoint(4)) };
  await operate('validator_endpoint', { validator, ...endpoint });
  expect(await shown()).toMatchObject({ heartbeat_epoch: 1, pending_commission: { commission_bps: 300, epoch: 15 } });
  await bed.sealToEpoch(3);
  await wallet.turn();
  const rotated = { consensus_key_index: LAST_INDEX - 1, overlay_endpoint_hex: toHex(anEndpoint(5)) };
  await operate('validator_rotate', { validator, ...rotated });
  await operate('reward_address', { position: registered.position, to: ownAddress('cold') });
  expect(await shown()).toMatchObject({
    endpoint: endpoint.overlay_endpoint_hex,
    pending_consensus_key_epoch: 5,
    reward_address: ownAddress('cold'),
  });
  const staked = await operate('stake', { validator: validatorAt(0), amount: '150' });
  const unstaked = await operate('unstake', { position: staked.position });
  await operate('validator_exit', { validator });
  await bed.sealTo(bed.height + 10 * INTERVAL + 1);
  await wallet.turn();
  await operate('withdraw', { position: unstaked.unbonding_position });
  expect((await wallet.call('positions')).positions).toMatchObject([
    { position: registered.position, state: 'unbonding', withdrawable: true },
  ]);
  expect(submissions).toBe(10);
  let left = -100_000n * COIN - fees;
  for (const amount of FUNDS) left += amount;
  const { entries } = (await wallet.call('history', { limit: 1000 })) as {
    entries: { kind: string; amount: string }[];
  };
  for (const { kind, amount } of entries) if (kind === 'reward') left += parseCoins(amount);
  expect((await wallet.call('balance')).balance).toBe(formatCoins(left));
});
