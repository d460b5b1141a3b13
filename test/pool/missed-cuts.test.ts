/** What the books read of a time that the stream of events does not reach back to, from a real node. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { developmentKey } from '../../node/genesis/development.ts';
import { chainOfApi } from '../../pool/accountant/chain.ts';
import { cutsThatPaid } from '../../pool/accountant/missed-cuts.ts';
import { toHex } from '../../protocol/bytes.ts';
import { workOfTarget } from '../../protocol/ledger/target.ts';
import { ApiBed, addressOf } from '../api/api-bed.ts';

let bed: ApiBed;
const found: { id: string; height: number }[] = [];
const pool = addressOf('miner');

beforeAll(async () => {
  bed = await ApiBed.open();
  for (let i = 0; i < 3; i++) {
    const height = bed.bed.node.chain.head().height + 96;
    found.push({ id: toHex(await bed.bed.mine(developmentKey('miner').address)), height });
    await bed.bed.mine(developmentKey('somebody').address);
    await bed.bed.seal(2);
  }
  await bed.bed.mine(developmentKey('somebody').address);
  await bed.bed.seal(110);
});
afterAll(() => bed.close());

const read = async (from: number, to: number) => {
  const cuts: { height: number; ids: string[] }[] = [];
  for await (const { cut, rewards } of cutsThatPaid(bed.client, pool, { from, to }))
    cuts.push({ height: cut.height, ids: rewards.map(({ block_id: id }) => id) });
  return cuts;
};

test('each cut that paid the address, once, with all that it paid; others are not asked for', async () => {
  const cuts = await read(1, 110);
  expect(cuts.map(({ height }) => height)).toEqual(found.map(({ height }) => height));
  for (const [i, { ids }] of cuts.entries()) {
    expect(ids).toContain(found[i]?.id);
    expect(ids).toHaveLength(2);
  }
  const [, second] = found;
  expect(await read(second?.height ?? 0, second?.height ?? 0)).toEqual([cuts[1]]);
});

test('a node that cannot tell the whole time, or whose pages do not end, is not believed', async () => {
  await expect(read(1, 1_000)).rejects.toThrow('indexed up to cut');
  const endless = {
    ...bed.client,
    addressChanges: async () => ({ changes: [], indexed_height: 5, next_cursor: 'ab' }),
  };
  await expect(cutsThatPaid(endless as never, pool, { from: 1, to: 5 }).next()).rejects.toThrow('do not end');
});

test('the work of a block on each cut of a range, over several pages; cuts that are not there are left out', async () => {
  const unused = { WebSocket: undefined as never, sleep: () => Promise.resolve(), random: () => 0 };
  const chain = chainOfApi(bed.client, unused);
  const head = bed.bed.node.chain.head().height;
  const works = (await chain.blockWorks?.(2, head + 5)) ?? new Map();
  expect([...works.keys()].sort((a, b) => a - b)).toEqual(Array.from({ length: head - 1 }, (_, i) => i + 2));
  expect(works.size).toBeGreaterThan(100);
  for (const height of [2, head]) expect(works.get(height)).toBe(workOfTarget(await chain.targetAt(height)));
});
