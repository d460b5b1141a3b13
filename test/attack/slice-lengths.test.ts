/**
 * A pool whose slices change their length, to put off what is due, and one with so many terms that a check of it would hang. S never changes in a pool (books
 * rule 3).
 */
import { expect, test } from 'vitest';
import { auditPublic } from '../../pool/audit/public.ts';
import { FIRST_CHAIN, type SliceRecord, sliceChain, windowWork } from '../../protocol/books/books-slice.ts';
import { recordsFault } from '../../protocol/books/books-verdict.ts';
import { toHex } from '../../protocol/bytes.ts';
import { EMPTY_ROOT } from '../../protocol/crypto/sum-tree.ts';
import { targetOfWork, targetToBytes } from '../../protocol/ledger/target.ts';
import { poolAddress } from '../../vectors/generate/honest-books.ts';

const target = targetOfWork(9_000n);
const targetHex = toHex(targetToBytes(target));
const from = (from_slice: number, slice_cuts: number) => ({
  from_slice,
  slice_cuts,
  window_thousandths: 8_000,
  fee_ppm: 10_000,
});

/** Closed slices without work, from slice 0 on, each with the given length. */
function records(service: 'pplns' | 'solo', lengths: readonly number[]): SliceRecord[] {
  let previous = FIRST_CHAIN;
  return lengths.map((slice_cuts, slice) => {
    const { from_slice: _, ...terms } = from(0, slice_cuts);
    const body = {
      network: 'development' as const,
      service,
      slice,
      ...terms,
      target: targetHex,
      window_work: String(windowWork(target, 8_000n, [])),
      accounts: 0,
      total_work: '0',
      root: toHex(EMPTY_ROOT.hash),
      previous,
    };
    previous = sliceChain(body);
    return { ...body, chain: previous };
  });
}

const publishedWith = (list: readonly ReturnType<typeof from>[]) => ({
  network: 'development' as const,
  address: poolAddress,
  terms: { pplns: list, solo: list },
});

test('a record of another length than the first one’s is false, whatever the terms say', () => {
  expect(recordsFault(records('solo', [240, 240, 240]), 'solo', publishedWith([from(0, 240)]))).toBeUndefined();
  const changed = publishedWith([from(0, 100_080), from(1, 240)]);
  for (const terms of [changed, null])
    expect(recordsFault(records('solo', [100_080, 240, 240]), 'solo', terms)).toBe('terms');
  for (const cuts of [0, -0]) expect(recordsFault(records('solo', [cuts]), 'solo', null)).toBe('terms');
});

/** The public audit of a pool that has credited nobody anything, at a cut where all of it is overdue. */
async function audited(list: readonly ReturnType<typeof from>[], lengths: readonly number[], height = 400_000) {
  const reward = (at: number) => ({
    kind: 'received',
    source: 'work_reward',
    transaction_id: at.toString(16).padStart(96, '0'),
    amount: '1000',
    address: poolAddress,
    finalized_height: at,
    outpoint: { transaction_id: 'aa'.repeat(48), output_index: at },
  });
  const node = {
    addressChanges: async ({ after_height: after }: { after_height: number }) => ({
      changes: [100_500, 100_700, 101_000].filter((at) => at > after).map(reward),
      indexed_height: height,
    }),
    cuts: async ({ before }: { before: number }) => ({ cuts: [{ height: before - 1, target: targetHex }] }),
  };
  const pool = async (path: string): Promise<unknown> => {
    if (path === 'terms') return { ...publishedWith(list), height };
    const [, service] = path.split(/[/?]/);
    if (/^slices\/\w+\?/.test(path))
      return {
        slices: records(service as 'pplns', lengths)
          .map((each) => ({ ...each, credits: null }))
          .reverse(),
      };
    return { payments: [], commitments: [], leaves: [], blocks: [] };
  };
  return auditPublic({ pool, node: node as never });
}

test('a pool that credits nobody and changes the length of its slices does not hold', async () => {
  const changed = [from(0, 100_080), from(1, 240)];
  const lengths = Array.from({ length: 150 }, (_, slice) => (slice === 0 ? 100_080 : 240));
  expect(await audited(changed, lengths)).toMatchObject({ verdict: 'false' });
  expect((await audited([...changed, from(1e9, 1e15)], lengths)).verdict).toBe('false');
});

test('terms that no pool can have are false, without any record of such a length', async () => {
  const first = from(0, 1_000_000);
  for (const [list, fault] of [
    [[first, from(1, 240)], 'slice_cuts_changed'],
    [[first, from(7, 1_000_000)], 'not_open'],
    [[first, from(0, 1_000_000)], 'order'],
    [[], 'empty'],
  ] as const)
    expect((await audited(list, [])).findings, fault).toContainEqual(
      expect.objectContaining({ what: 'terms', computed: `false: ${fault}` }),
    );
});

test('one whose slices are so long that none ever closes is suspicious', async () => {
  const report = await audited([from(0, 1_000_000)], []);
  expect(report).toMatchObject({ verdict: 'suspicious', suspicions: [{ name: 'rewards_withheld' }], findings: [] });
});

test('many terms and many records cost no more than both are long', () => {
  const size = 2_000;
  let reads = 0;
  const list = Array.from({ length: size }, (_, i) => ({
    ...from(0, 240),
    get from_slice() {
      reads++;
      return i === 0 ? 0 : 1e9 + i;
    },
  }));
  expect(recordsFault(records('pplns', Array(size).fill(240)), 'pplns', publishedWith(list))).toBeUndefined();
  expect(reads).toBeLessThan(10 * size);
});
