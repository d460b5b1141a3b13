/** A node that lies about positions and validators: what the wallet signs is what was asked for, and its answers are about that. */
import { expect, test } from 'vitest';
import { toHex } from '../../protocol/bytes.ts';
import type { NodeClient } from '../../wallet/chain/node-link.ts';
import { anEndpoint } from '../staking/signed.ts';
import { openTestWallet } from '../wallet/open-wallet.ts';
import { COIN, StakingBed, validatorAt } from '../wallet/staking/staking-bed.ts';

async function liar(amounts: readonly bigint[], lies: (real: NodeClient) => Partial<NodeClient>) {
  const bed = await StakingBed.open({ amounts });
  const real = bed.api.client;
  const honest = await bed.wallet();
  const client: NodeClient = { ...real, ...lies(real) };
  const settle = async (wallet: typeof honest) => {
    await bed.beat();
    await wallet.turn();
  };
  /** The same wallet with its state, at the node that lies. */
  const lied = async () => {
    await honest.wallet.close();
    const wallet = await openTestWallet({ client } as never, { answerMillis: 10_000, directory: honest.directory });
    await wallet.turn();
    return wallet;
  };
  return { bed, honest, lied, settle };
}

test('a part of a position that a node calls the whole does not become all of it', async () => {
  const { bed, honest, lied, settle } = await liar([5_000n * COIN, 10n * COIN, 10n * COIN], (real) => ({
    stakingPositions: async (input) => {
      const page = await real.stakingPositions(input);
      return { ...page, positions: page.positions.map((one) => ({ ...one, principal: String(300n * COIN) })) };
    },
  }));
  const made = await honest.call('stake', { validator: validatorAt(0), amount: '1000', request_id: 's' });
  await settle(honest);
  const wallet = await lied();
  expect(await wallet.refusal('unstake', { position: made.position, amount: '300', request_id: 'u' })).toMatchObject({
    word: 'unstake_amount',
    message: expect.stringContaining('leave the amount out'),
  });
  await settle(wallet);
  const owners = [...wallet.wallet.book.addresses()].map(({ address }) => address).slice(0, 64);
  const { positions } = await bed.api.client.stakingPositions({ addresses: owners });
  expect(positions).toMatchObject([{ state: 'bonded', principal: String(1_000n * COIN) }]);
});

test('a node that answers about another validator is not believed', async () => {
  const { honest, lied, settle } = await liar([150_000n * COIN, 10n * COIN, 10n * COIN], (real) => ({
    stakingValidator: async (input) => {
      const answer = await real.stakingValidator(input);
      return { ...answer, validator: { ...answer.validator, validator_id: 'cd'.repeat(48) } };
    },
  }));
  const terms = { amount: '100000', overlay_endpoint_hex: toHex(anEndpoint(7)), request_id: 'r' };
  const { validator } = await honest.call('validator_register', terms);
  await settle(honest);
  const wallet = await lied();
  const change = { validator, commission_bps: 100, request_id: 'c' };
  expect(await wallet.refusal('validator_commission', change)).toMatchObject({ word: 'node_unreachable' });
  const stake = { validator: validatorAt(0), amount: '100', request_id: 's' };
  expect(await wallet.refusal('stake', stake)).toMatchObject({ word: 'node_unreachable' });
});
