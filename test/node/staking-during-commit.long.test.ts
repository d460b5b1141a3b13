/** Lists of positions and validators are read while cuts are written: whatever comes between, an answer is of the one height that it names. */
import { setImmediate as turn } from 'node:timers/promises';
import { afterEach, expect, test } from 'vitest';
import type { ApiContext } from '../../node/api/api-context.ts';
import { stakingRoutes } from '../../node/api/staking-routes.ts';
import { type DevelopmentKey, developmentKey, TREASURY, validatorName } from '../../node/genesis/development.ts';
import { formatAddress, keyAddressPayload } from '../../protocol/address.ts';
import { validatorId } from '../../protocol/staking/names.ts';
import { operationTransaction } from '../staking/signed.ts';
import { Bed } from './bed.ts';

const COIN = 100_000_000n;
let bed: Bed;
afterEach(() => bed.close());

const textOf = (payload: Uint8Array): string => formatAddress(payload, 'development');

test('positions and validators are those of the height that the answer names', async () => {
  bed = await Bed.open();
  const context = { node: bed.node } as ApiContext;
  const validator = validatorId(developmentKey(validatorName(0)).publicKey);
  const [first, last] = [developmentKey('first'), developmentKey('last')];
  // Each owner is a read of its own: those between give cuts the time to come.
  const between = Array.from({ length: 62 }, (_, i) => keyAddressPayload(new Uint8Array(1_952).fill(i)));
  const addresses = [first.address, ...between, last.address].map(textOf);
  const stakes = new Map([[0, 1_000_000n * COIN]]);
  const bond = async (owner: DevelopmentKey, output: number, amount: bigint): Promise<void> => {
    const spend = { key: developmentKey(TREASURY), spend: bed.treasury(output) };
    const to = { owner: owner.address, rewardAddress: owner.address };
    const operation = { name: 'bond' as const, validator, ...to, amount };
    const wire = operationTransaction(bed.node.chain, spend, operation, { signer: owner });
    expect((await bed.node.submitTransaction(wire)).status).toBe('accepted');
  };
  let isDone = false;
  let answers = 0;
  const ask = async (): Promise<void> => {
    while (!isDone) {
      const request = { params: {}, query: {} };
      const held = await stakingRoutes.stakingPositions(context, { ...request, body: { addresses } });
      const shown = await stakingRoutes.stakingValidators(context, { ...request, body: {} });
      if (!('positions' in held) || !('validators' in shown)) throw new Error('an answer of another kind');
      // One more for each of the two with every cut.
      expect(held.positions.length).toBe(2 * held.finalized_height);
      expect(BigInt(shown.validators[0]?.stake as string)).toBe(stakes.get(shown.finalized_height));
      answers++;
    }
  };
  const asking = [ask(), ask()];
  let isBroken = false;
  for (const each of asking)
    each.catch(() => {
      isBroken = true;
    });
  for (let cut = 1; cut <= 12; cut++) {
    await bond(first, 2 * cut, 100n * COIN);
    await bond(last, 2 * cut + 1, 100n * COIN);
    stakes.set(cut, (stakes.get(cut - 1) as bigint) + 200n * COIN);
    await bed.mine(developmentKey('miner').address);
    await bed.seal();
    // Cuts come seldom enough that a list can be read between two of them.
    for (const before = answers; answers < before + 2 && !isBroken; ) await turn();
  }
  isDone = true;
  await Promise.all(asking);
  expect(answers).toBeGreaterThan(12);
});
