/** What a client's allowance buys is bounded in entries, whatever page sizes it asks for: large pages are not cheaper than small ones. */
import { expect, test } from 'vitest';
import { type Caller, dispatch } from '../../node/api/dispatch.ts';
import { silentLog } from '../node/bed.ts';

/** What a call takes. There is no node behind it: the price is known before one is asked. */
async function priceOf(method: string, target: string, document?: unknown): Promise<number> {
  let price = 0;
  const body = document === undefined ? new Uint8Array(0) : Buffer.from(JSON.stringify(document));
  const caller: Caller = {
    allow: (cost) => {
      price += cost;
    },
    turn: async (_cost, work) => await work(),
  };
  const { status } = await dispatch({ method, target, body }, caller, { context: () => undefined, log: silentLog });
  expect(status).toBe(503);
  return price;
}

test('a page of thousands of changes costs what as many small pages cost', async () => {
  const changes = (limit: number) =>
    priceOf('POST', '/v1/address/changes', { addresses: ['x'.repeat(90)], after_height: 0, limit });
  const listed = [
    (limit: number) => priceOf('GET', `/v1/cuts/1/changes?limit=${limit}`),
    (limit: number) => priceOf('GET', `/v1/transactions/recent?limit=${Math.min(500, limit)}`),
    changes,
  ];
  for (const price of listed) {
    expect(await price(1)).toBeLessThanOrEqual(32);
    for (const limit of [500, 1_024, 2_048, 4_096]) {
      const entries = price === listed[1] ? Math.min(500, limit) : limit;
      expect(entries / (await price(limit)), `${limit} entries`).toBeLessThanOrEqual(64);
    }
  }
});

test('nor are blocks, cuts and outputs cheaper in large pages', async () => {
  const address = 'x'.repeat(90);
  const listed: readonly (readonly [perUnit: number, path: (limit: number) => string, limits: readonly number[]])[] = [
    [8, (limit) => `/v1/blocks/recent?limit=${limit}`, [50, 100, 500]],
    [8, (limit) => `/v1/cuts?limit=${limit}`, [20, 100]],
    [32, (limit) => `/v1/address/${address}/utxos?limit=${limit}`, [100, 512]],
    [64, (limit) => `/v1/address/${address}/history?limit=${limit}`, [100, 256]],
    [8, (limit) => `/v1/staking/validators?limit=${limit}`, [64, 256]],
  ];
  for (const [perUnit, path, limits] of listed)
    for (const limit of limits)
      expect(limit / (await priceOf('GET', path(limit))), path(limit)).toBeLessThanOrEqual(perUnit);
});
