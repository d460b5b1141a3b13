/** What a client's allowance buys is bounded in entries, whatever page sizes it asks for: large pages are not cheaper than small ones. */
import { expect, test } from 'vitest';
import { dispatch } from '../../node/api/dispatch.ts';
import { silentLog } from '../node/bed.ts';

/** What a call takes. There is no node behind it: the price is known before one is asked. */
async function priceOf(method: string, target: string, document?: unknown): Promise<number> {
  let price = 0;
  const body = document === undefined ? new Uint8Array(0) : Buffer.from(JSON.stringify(document));
  const allow = (cost: number): void => {
    price += cost;
  };
  const { status } = await dispatch({ method, target, body }, allow, { context: () => undefined, log: silentLog });
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
    expect(await price(1)).toBeLessThanOrEqual(16);
    for (const limit of [500, 1_024, 2_048, 4_096]) {
      const entries = price === listed[1] ? Math.min(500, limit) : limit;
      expect(entries / (await price(limit)), `${limit} entries`).toBeLessThanOrEqual(64);
    }
  }
});
