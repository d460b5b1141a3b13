/** `staking` events of the daemon: rewards, unbonding that ended, and validators whose state changes. */
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import type { StakingPosition } from '../../../protocol/api/staking-documents.ts';
import { type StakingView, stakingNews } from '../../../wallet/chain/staking-watch.ts';
import type { WalletEvent } from '../../../wallet/event-hub.ts';
import { WalletServer } from '../../../wallet/rpc/server.ts';
import { readOrCreateToken } from '../../../wallet/rpc/token.ts';
import { temporaryDirectory } from '../../temporary.ts';
import type { TestWallet } from '../open-wallet.ts';
import { walletEvents } from '../wallet-events.ts';
import { INTERVAL, ownAddress, stakingWallet, validatorAt } from './staking-bed.ts';

/** The `staking` events of a daemon, from its answer to the subscription on. */
async function served({ wallet }: TestWallet): Promise<{ params?: Record<string, unknown> }[]> {
  const file = join(temporaryDirectory(), 'wallet');
  const token = await readOrCreateToken(`${file}.token`);
  const server = new WalletServer(wallet, { listen: { host: '127.0.0.1', port: 0 }, allowRemote: false, token });
  onTestFinished(() => server.close());
  const { port } = await server.start();
  return walletEvents(`127.0.0.1:${port}`, file, ['staking']);
}

test('rewards as they come, and a release once', async () => {
  const { bed, wallet, settle, staked } = await stakingWallet();
  const events: WalletEvent[] = [];
  const stop = wallet.wallet.events.listen(
    (event) => void (event.name === 'staking' && events.push(event)),
    (name) => name === 'staking',
  );
  const position = await staked();
  await bed.sealTo(3 * INTERVAL);
  await wallet.turn();
  const rewards = events.filter(({ params }) => params.kind === 'reward');
  expect(rewards).toHaveLength(1);
  const { entries } = (await wallet.call('history')) as { entries: { kind: string; amount: string; height: number }[] };
  const entry = entries.find(({ kind }) => kind === 'reward');
  expect(rewards[0]?.params).toEqual({
    indexed_height: entry?.height,
    kind: 'reward',
    address: ownAddress('test', 'change'),
    amount: entry?.amount,
  });

  await wallet.call('unstake', { position, request_id: 'u' });
  await settle();
  const release = bed.height + 10 * INTERVAL;
  await bed.sealTo(release - 1);
  await wallet.turn();
  expect(events.filter(({ params }) => params.kind === 'released')).toEqual([]);
  stop();
  // Nobody listens at this cut; who subscribes before the next one hears of it.
  await wallet.turn();
  const heard = await served(wallet);
  for (let i = 0; i < 2; i++) {
    await bed.sealTo(release + i);
    await wallet.turn();
    await expect
      .poll(() => heard.map(({ params }) => params))
      .toMatchObject([
        { kind: 'released', indexed_height: release - 1, position, validator: validatorAt(0), amount: '1000.00000000' },
      ]);
  }
});

test('validators that are jailed, lapse or come back; what is new to the first look is none', () => {
  const at = (height: number, states: Record<string, string>, withdrawable = false): StakingView => ({
    height,
    positions: [{ position_id: 'p', validator: 'a', principal: '100', withdrawable } as StakingPosition],
    validators: Object.entries(states).map(([validator_id, state]) => ({
      validator_id,
      state: state as 'jailed',
      jailed_until_epoch: state === 'jailed' ? 7 : null,
    })),
  });
  const first = at(1, { a: 'committee', b: 'eligible' });
  expect(stakingNews(first, at(2, { a: 'committee', b: 'eligible', c: 'jailed' }))).toEqual([]);
  expect(stakingNews(first, at(2, { a: 'jailed', b: 'lapsed' }, true))).toEqual([
    { kind: 'released', position: 'p', validator: 'a', amount: '0.00000100' },
    { kind: 'validator_state', validator: 'a', state: 'jailed', was: 'committee', jailed_until_epoch: 7 },
    { kind: 'validator_state', validator: 'b', state: 'lapsed', was: 'eligible', jailed_until_epoch: null },
  ]);
  expect(stakingNews(at(2, { a: 'jailed' }), at(3, { a: 'eligible' }))).toMatchObject([{ state: 'eligible' }]);
});
