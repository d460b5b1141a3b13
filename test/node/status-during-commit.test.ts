/** While a cut is being written its transactions and blocks are not final yet for readers: the cut that they would name is not the head before the write has ended. */
import { setImmediate as turn } from 'node:timers/promises';
import { afterEach, expect, test } from 'vitest';
import type { ApiContext } from '../../node/api/api-context.ts';
import { statusJson } from '../../node/api/transaction-routes.ts';
import type { TransactionStatus } from '../../node/full-node.ts';
import { developmentKey } from '../../node/genesis/development.ts';
import { type Bytes, toHex } from '../../protocol/bytes.ts';
import { Bed } from './bed.ts';

let bed: Bed;
afterEach(() => bed.close());

test('a transaction is registered while the certified cut is written, and finalized by no cut above the head', async () => {
  bed = await Bed.open();
  const { chain } = bed.node;
  const to = developmentKey('somebody').address;
  const seen = new Set<string>();
  for (let i = 0; i < 6; i++) {
    const sent = await bed.pay([bed.treasury(i)], [{ address: to, amount: 1_000_000n }]);
    const { id } = sent as { id: Bytes };
    await bed.mine(developmentKey('miner').address);
    let isSealed = false;
    let registered: TransactionStatus | undefined;
    const context = { node: bed.node } as ApiContext;
    const sealed = bed.seal().then(() => {
      isSealed = true;
    });
    while (!isSealed) {
      // Without a pause: the batch is written by another thread meanwhile.
      for (const until = performance.now() + 5; performance.now() < until; ) {
        const status = chain.transactionStatus(id);
        seen.add(status?.lifecycle ?? 'unknown');
        expect(status?.finalizedCut?.height ?? 0).toBeLessThanOrEqual(chain.head().height);
        const isRegistered = status?.lifecycle === 'registered';
        if (isRegistered) registered = status;
        expect(status?.registeredCut?.height).toBe(isRegistered ? chain.head().height + 1 : undefined);
      }
      await turn();
    }
    await sealed;
    expect(chain.transactionStatus(id)).toMatchObject({ lifecycle: 'finalized' });
    // The document names the same cut before it can be read.
    if (registered !== undefined)
      expect(JSON.parse(statusJson(context, toHex(id), registered))).toMatchObject({
        lifecycle: 'registered',
        registered_cut: { height: chain.head().height, cut_id: toHex(chain.head().cutId) },
        finalized_cut: null,
      });
  }
  expect([...seen]).toEqual(['receiving', 'registered']);
});

test('a block was neither registered nor paid by a cut above the head', async () => {
  bed = await Bed.open();
  const { chain } = bed.node;
  const id = await bed.mine(developmentKey('miner').address);
  const seen = new Set<string>();
  const sealWatched = async (): Promise<void> => {
    let isSealed = false;
    const sealed = bed.seal().then(() => {
      isSealed = true;
    });
    while (!isSealed) {
      for (const until = performance.now() + 5; performance.now() < until; ) {
        const block = chain.block(id);
        const { height } = chain.head();
        const { state } = block?.reward ?? { state: 'unknown' };
        expect(state).toBe(height === 0 ? 'waiting' : height < 96 ? 'pending' : 'paid');
        expect(block?.registeredHeight).toBe(height === 0 ? undefined : 1);
        seen.add(state);
      }
      await turn();
    }
    await sealed;
  };
  await sealWatched();
  await bed.seal(94);
  await sealWatched();
  expect(chain.block(id)?.reward).toMatchObject({ state: 'paid', height: 96 });
  expect([...seen]).toEqual(['waiting', 'pending']);
});
