/** Anybody with the bond can register a validator: a list of them is a page, and reads as many records as the page may have. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { ApiContext } from '../../node/api/api-context.ts';
import { stakingRoutes } from '../../node/api/staking-routes.ts';
import type { Chain } from '../../node/full-node.ts';
import type { Validator } from '../../node/ledger/staking/validator.ts';
import type { ValidatorDocument } from '../../protocol/api/documents.ts';
import { compareBytes, toHex } from '../../protocol/bytes.ts';
import { pattern } from '../../vectors/generate/pattern.ts';
import { Bed } from '../node/bed.ts';

const MANY = 1_000;
let bed: Bed;
let all: Validator[];
beforeAll(async () => {
  bed = await Bed.open();
  const [first] = (await bed.node.chain.validators({ limit: 1 })) as [Validator];
  const made = Array.from({ length: MANY }, (_, i) => ({
    ...first,
    id: pattern(`validator ${i}`, 48),
    ...(i % 10 === 0 ? { exitHeight: 1 } : {}),
  }));
  all = made.sort((a, b) => compareBytes(a.id, b.id));
});
afterAll(() => bed.close());

type Query = { state?: ValidatorDocument['state']; cursor?: string; limit?: number };
type Page = { readonly validators: readonly ValidatorDocument[]; readonly next_cursor?: string };

/** All pages, and the most records that one of them read. */
async function pages(query: Query): Promise<{ ids: string[]; most: number; pages: number }> {
  const result = { ids: [] as string[], most: 0, pages: 0 };
  const chain = {
    network: bed.node.chain.network,
    head: () => bed.node.chain.head(),
    staking: () => bed.node.chain.staking(),
    validators: async ({ after, limit }: Parameters<Chain['validators']>[0]) => {
      const page = all.filter(({ id }) => after === undefined || compareBytes(id, after) > 0).slice(0, limit);
      result.most = Math.max(result.most, page.length);
      return page;
    },
  };
  for (let cursor: string | undefined; ; ) {
    const asked = { ...query, ...(cursor === undefined ? {} : { cursor }) };
    const context = { node: { chain } } as unknown as ApiContext;
    const page = (await stakingRoutes.stakingValidators(context, { params: {}, query: asked, body: {} })) as Page;
    result.ids.push(...page.validators.map(({ validator_id }) => validator_id));
    result.pages++;
    cursor = page.next_cursor;
    if (cursor === undefined) return result;
  }
}

test('each is listed once, a page at a time', async () => {
  const { ids, most, pages: count } = await pages({ limit: 64 });
  expect(ids).toEqual(all.map(({ id }) => toHex(id)));
  expect(most).toBeLessThanOrEqual(65);
  expect(count).toBe(Math.ceil(MANY / 64));
  expect((await pages({})).most).toBeLessThanOrEqual(65);
});

test('those in one state are found without reading all others for a page', async () => {
  const { ids, most } = await pages({ state: 'exiting', limit: 256 });
  expect(ids).toEqual(all.filter(({ exitHeight }) => exitHeight > 0).map(({ id }) => toHex(id)));
  expect(most).toBeLessThanOrEqual(257);
  expect((await pages({ state: 'slashed' })).ids).toEqual([]);
});

test('the store gives those after an identifier, as many as asked for', async () => {
  const [only] = (await bed.node.chain.validators({ limit: 8 })) as [Validator];
  expect(await bed.node.chain.validators({ after: only.id, limit: 8 })).toEqual([]);
  expect((await bed.node.chain.validators({ after: new Uint8Array(48), limit: 8 })).length).toBe(1);
});
