/** A miner that comes back after days finds more lists than it remembers at a time. Each of them is judged in the end, also while all look false and have to be read twice. */
import { expect, test } from 'vitest';
import { ListWatch } from '../../miner/books/list-watch.ts';
import { rewardTransaction } from '../../protocol/books/books-verdict.ts';
import { toHex } from '../../protocol/bytes.ts';
import { addressOf, poolAddress } from '../../vectors/generate/honest-books.ts';
import { pattern } from '../../vectors/generate/pattern.ts';

const CUTS = 24;
const AWAY = 450;
const FROM = 6_000;
/** When a list is due. */
const DUE = 96 + 96 + 16;
const blockOf = (slice: number) => toHex(pattern(`many lists ${slice}`, 48));

test('lists of a long absence are all judged', async () => {
  let height = FROM;
  let now = 0;
  const judged = new Map<number, number>();
  const own = { from_slice: 0, slice_cuts: CUTS, window_thousandths: 8_000, fee_ppm: 10_000 };
  const answer = (path: string): unknown => {
    if (path === 'terms')
      return { network: 'development', address: poolAddress, height, terms: { pplns: [own], solo: [own] } };
    const [, service, slice] = /^slices\/(\w+)\/(\d+)\/blocks$/.exec(path) ?? [];
    if (slice !== undefined)
      return {
        blocks: service === 'solo' ? [] : [{ block_id: blockOf(Number(slice)), credited_with: Number(slice) }],
      };
    const page = /^slices\/\w+\?limit=(\d+)(?:&cursor=(\d+)-0)?$/.exec(path);
    if (page !== null) {
      const newest = Math.min(Math.floor(height / CUTS) - 1, Number(page[2] ?? 1e9) - 1);
      const isListed = (n: number) => (n + 1) * CUTS + 96 <= height;
      const slices = Array.from({ length: Number(page[1]) }, (_, i) => newest - i).filter((n) => n >= 0);
      return { slices: slices.map((n) => ({ slice: n, total_work: '5', credits: isListed(n) ? {} : null })) };
    }
    const [, list] = /^proofs\/pplns\/(\d+)\?/.exec(path) ?? [];
    if (list === undefined) throw new Error(`status 404 ${path}`);
    judged.set(Number(list), (judged.get(Number(list)) ?? 0) + 1);
    return { nonsense: true };
  };
  const node = {
    addressChanges: async ({ after_height: after }: { after_height: number }) => {
      const first = Math.max(0, Math.floor((after - 96) / CUTS) - 1);
      const slices = Array.from({ length: 4 }, (_, i) => first + i);
      const changes = slices.map((n) => ({
        kind: 'received',
        source: 'work_reward',
        transaction_id: rewardTransaction(blockOf(n)),
        amount: '1000',
        finalized_height: n * CUTS + 1 + 96,
      }));
      return { changes: changes.filter(({ finalized_height: at }) => at > after), indexed_height: height };
    },
    cuts: async () => ({ cuts: [] }),
  };
  const watch = new ListWatch(addressOf(1), {
    pool: async (path) => answer(path),
    node: node as never,
    alarm: () => undefined,
    note: () => undefined,
    nowMillis: () => now,
    wallMillis: () => now,
  });
  watch.works('pplns');
  const round = async () => {
    now += 60_000;
    await watch.round().catch(() => undefined);
  };
  await round();
  // Of those that were there at the first look only the newest is judged.
  const first = Math.floor((FROM - 96) / CUTS) - 1;
  height = FROM + AWAY * CUTS;
  const last = Math.floor((height - DUE) / CUTS) - 1;
  let rounds = 0;
  do {
    height += CUTS;
    await round();
    rounds++;
  } while (watch.isBehind && rounds < 2_000);
  const missed = Array.from({ length: last - first + 1 }, (_, i) => first + i).filter((n) => (judged.get(n) ?? 0) < 2);
  expect(missed).toEqual([]);
  expect(rounds).toBeLessThan(2_000);
});
