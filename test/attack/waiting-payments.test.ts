/** Asking for one's waiting payments costs what is one's own: a mempool full of others' transactions is passed over without reading their state or making text of them. */
import { expect, test } from 'vitest';
import { addressRoutes } from '../../node/api/address-routes.ts';
import type { ApiContext } from '../../node/api/api-context.ts';
import { formatAddress } from '../../protocol/address.ts';
import type { PendingPayment } from '../../protocol/api/documents.ts';
import { pattern } from '../../vectors/generate/pattern.ts';

const WAITING = 2_000;
const payload = (name: string): Uint8Array => Uint8Array.of(0, ...pattern(name, 48));

test('others’ waiting transactions are passed over', async () => {
  const waiting = Array.from({ length: WAITING }, (_, i) => ({
    ...{ id: pattern(`transaction ${i}`, 48), seenMillis: i },
    body: {
      outputs: [
        { address: payload(`to ${i}`), amount: 1n },
        { address: payload(`back ${i}`), amount: 2n },
      ],
    },
    spends: [
      {
        ...{ address: payload(`from ${i}`), amount: 4n },
        outpoint: { transactionId: pattern(`before ${i}`, 48), outputIndex: 1 },
      },
    ],
  }));
  let looked = 0;
  const node = {
    network: { name: 'development' },
    mempool: { list: () => waiting.values() },
    head: () => ({ height: 7 }),
    transactionStatus: () => {
      looked++;
      return { lifecycle: 'processing' };
    },
  };
  const ask = async (...names: string[]) => {
    const addresses = names.map((name) => formatAddress(payload(name), 'development'));
    looked = 0;
    const answer = await addressRoutes.mempoolPending({ node } as unknown as ApiContext, {
      params: {},
      query: {},
      body: { addresses },
    });
    const { pending } = answer as { readonly pending: readonly PendingPayment[] };
    return { looked, pending: pending.map(({ direction, amount }) => `${direction} ${amount}`) };
  };
  expect(await ask('a stranger')).toEqual({ looked: 0, pending: [] });
  expect(await ask('to 5', 'back 5')).toEqual({ looked: 1, pending: ['incoming 1', 'incoming 2'] });
  expect(await ask('from 1999', 'to 3')).toEqual({ looked: 2, pending: ['incoming 1', 'outgoing 4'] });
});
