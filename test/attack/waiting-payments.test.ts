/** Asking for one's waiting payments costs what is one's own, a page at a time: a mempool full of others' transactions is passed over without reading their state. */
import { expect, test } from 'vitest';
import { addressRoutes } from '../../node/api/address-routes.ts';
import type { ApiContext } from '../../node/api/api-context.ts';
import { stakingRoutes } from '../../node/api/staking-routes.ts';
import { formatAddress } from '../../protocol/address.ts';
import type { PendingPayment } from '../../protocol/api/documents.ts';
import { toHex } from '../../protocol/bytes.ts';
import { pattern } from '../../vectors/generate/pattern.ts';

const WAITING = 2_000;
const payload = (name: string): Uint8Array => Uint8Array.of(0, ...pattern(name, 48));

test('others’ waiting transactions are passed over', async () => {
  const waiting = Array.from({ length: WAITING }, (_, i) => ({
    id: pattern(`transaction ${i}`, 48),
    seenMillis: i,
    body: {
      outputs: [
        { address: payload(`to ${i}`), amount: 1n },
        { address: payload(`back ${i}`), amount: 2n },
      ],
    },
    spends: [
      {
        address: payload(`from ${i}`),
        amount: 4n,
        outpoint: { transactionId: pattern(`before ${i}`, 48), outputIndex: 1 },
      },
    ],
  }));
  let looked = 0;
  const node = {
    mempool: { list: () => waiting.values() },
    chain: {
      network: { name: 'development' },
      head: () => ({ height: 7 }),
      transactionStatus: () => {
        looked++;
        return { lifecycle: 'processing' };
      },
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

const bodyOf = (names: readonly string[]) => names.map((name) => formatAddress(payload(name), 'development'));

/** A mempool whose entries arrive a few in a millisecond and pay one address eight times each. */
function dustedBed(count: number) {
  const waiting = new Map(
    Array.from({ length: count }, (_, i) => {
      const id = pattern(`dust ${i}`, 48);
      const outputs = Array.from({ length: 8 }, () => ({ address: payload('victim'), amount: 1n }));
      return [toHex(id), { id, seenMillis: i >> 2, body: { outputs }, spends: [] }] as const;
    }),
  );
  const node = {
    mempool: { list: () => waiting.values(), get: (id: Uint8Array) => waiting.get(toHex(id)) },
    chain: {
      network: { name: 'development' },
      head: () => ({ height: 7 }),
      transactionStatus: () => ({ lifecycle: 'processing' }),
    },
  };
  type Page = { readonly pending: readonly PendingPayment[]; readonly next_cursor?: string };
  const page = async (cursor: string | undefined, limit?: number, addresses = bodyOf(['victim'])): Promise<Page> => {
    const body = { addresses, ...(cursor === undefined ? {} : { cursor }), ...(limit === undefined ? {} : { limit }) };
    const answer = addressRoutes.mempoolPending({ node } as unknown as ApiContext, { params: {}, query: {}, body });
    return (await answer) as Page;
  };
  return { waiting, page };
}

test('what waits for an address comes in pages, each once, and a cursor is of its own list', async () => {
  const { page } = dustedBed(300);
  const seen: string[] = [];
  for (let cursor: string | undefined; ; ) {
    const { pending, next_cursor } = await page(cursor);
    expect(pending.length).toBeLessThanOrEqual(512);
    seen.push(...pending.map(({ outpoint }) => `${outpoint.transaction_id}:${outpoint.output_index}`));
    cursor = next_cursor;
    if (cursor === undefined) break;
  }
  expect(seen.length).toBe(300 * 8);
  expect(new Set(seen).size).toBe(300 * 8);
  const { next_cursor } = await page(undefined);
  await expect(page(next_cursor, 512, bodyOf(['another']))).rejects.toMatchObject({ status: 400 });
});

test('a transaction that leaves between two pages hides none that came with it', async () => {
  const { waiting, page } = dustedBed(40);
  const first = await page(undefined, 16);
  const [, second, third] = [...waiting.keys()] as [string, string, string];
  expect(first.pending.at(-1)?.transaction_id).toBe(second);
  waiting.delete(second);
  const { pending } = await page(first.next_cursor, 64);
  expect(pending.map(({ transaction_id }) => transaction_id)).toContain(third);
});

test('addresses that look alike cost no reads of the store', async () => {
  const alike = Uint8Array.from(payload('victim'));
  alike.set(pattern('other tail', 44), 5);
  let looked = 0;
  const waiting = Array.from({ length: 100 }, (_, i) => ({
    id: pattern(`alike ${i}`, 48),
    seenMillis: i,
    spends: [],
    body: { outputs: [{ address: alike, amount: 1n }] },
  }));
  const node = {
    mempool: { list: () => waiting.values() },
    chain: {
      network: { name: 'development' },
      head: () => ({ height: 7 }),
      transactionStatus: () => void looked++,
    },
  };
  const request = { params: {}, query: {}, body: { addresses: bodyOf(['victim']) } };
  expect(await addressRoutes.mempoolPending({ node } as unknown as ApiContext, request)).toMatchObject({ pending: [] });
  expect(looked).toBe(0);
});

test('positions of many owners come in pages, each once', async () => {
  const owners = ['one', 'two', 'three'].map((name) => payload(name));
  const ids = Array.from({ length: 300 }, (_, i) => pattern(`position ${i}`, 48)).sort(Buffer.compare);
  let asked = 0;
  const chain = {
    network: { name: 'development' },
    head: () => ({ height: 7 }),
    staking: () => ({ intervalCuts: 24, stake: { sweeps: [] }, validator: () => ({ exitHeight: 0, slashHeight: 0 }) }),
    positionsOf: async (owner: Uint8Array, page?: { after?: Uint8Array; limit: number }) => {
      const { after, limit } = page ?? { limit: ids.length };
      const left = after === undefined ? ids : ids.filter((id) => Buffer.compare(id, after) > 0);
      asked += Math.min(left.length, limit);
      const common = { kind: 'delegation', validator: owner, owner, rewardAddress: owner, principal: 1n };
      return left.slice(0, limit).map((id) => ({ ...common, id, unbondHeight: 0 }));
    },
  };
  type Page = { readonly positions: readonly { position_id: string }[]; readonly next_cursor?: string };
  const seen: string[] = [];
  for (let cursor: string | undefined; ; ) {
    asked = 0;
    const addresses = owners.map((owner) => formatAddress(owner, 'development'));
    const body = { addresses, ...(cursor === undefined ? {} : { cursor }) };
    const answer = stakingRoutes.stakingPositions({ node: { chain } } as unknown as ApiContext, {
      params: {},
      query: {},
      body,
    });
    const { positions, next_cursor } = (await answer) as Page;
    expect(positions.length).toBeLessThanOrEqual(256);
    expect(asked).toBeLessThanOrEqual(257);
    seen.push(...positions.map(({ position_id }) => position_id));
    cursor = next_cursor;
    if (cursor === undefined) break;
  }
  const texts = ids.map((id) => toHex(id));
  expect(seen).toEqual([...texts, ...texts, ...texts]);
});
