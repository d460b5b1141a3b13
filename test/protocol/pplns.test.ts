import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  divideRanked,
  divideWindow,
  feeOf,
  leavesOf,
  type RankedSlice,
  rankedWeights,
  type SliceWork,
  weightOf,
  weightTotal,
  windowOf,
} from '../../protocol/books/pplns.ts';
import { compareBytes, fromHex } from '../../protocol/bytes.ts';
import { type SumLeaf, sumBranch, sumTree, verifySumBranch } from '../../protocol/crypto/sum-tree.ts';
import { count, seed } from '../level.ts';

const runs = { seed, numRuns: count({ quick: 100, full: 500, deep: 20_000 }) };
const account = fc.integer({ min: 0, max: 30 }).map((i) => i.toString(16).padStart(98, '0'));
const work = fc.bigInt({ min: 0n, max: 1n << 70n });
const slice = fc.dictionary(account, work, { maxKeys: 8 }).map((row) => new Map(Object.entries(row)));

function slicesOf(rows: Map<string, bigint>[]): Map<number, SliceWork> {
  return new Map(
    rows.map((row, slice) => [slice, { slice, work: row, total: [...row.values()].reduce((sum, v) => sum + v, 0n) }]),
  );
}

const rankedBy = (names: readonly string[], slices: Map<number, SliceWork>) =>
  new Map(
    [...slices].map(([slice, { total, work }]): [number, RankedSlice] => [
      slice,
      { total, each: (tell) => work.forEach((value, name) => void tell(names.indexOf(name), value)) },
    ]),
  );

const newestFirst = (slices: Map<number, SliceWork>) => [...slices.values()].reverse();

describe('a window', () => {
  test('nothing is divided by a slice that is missing, or has another total than the window says', () => {
    const slices = slicesOf([new Map([['aa', 30n]]), new Map([['bb', 40n]])]);
    const window = windowOf(60n, newestFirst(slices));
    const [first, second] = [...slices.values()] as [SliceWork, SliceWork];
    const divided = (...known: readonly SliceWork[]) =>
      [...divideWindow(1_000n, window, new Map(known.map((each) => [each.slice, each])))].length;
    expect(divided(first, second)).toBe(2);
    for (const known of [[second], [first], [first, { ...second, total: 41n }]])
      expect(() => divided(...known)).toThrow('is not the one the window names');
  });

  test('by hand: the oldest slice counts in part, and an account is paid for that part alone', () => {
    const slices = slicesOf([
      new Map([
        ['aa', 30n],
        ['bb', 70n],
      ]),
      new Map([['bb', 40n]]),
      new Map([['aa', 10n]]),
    ]);
    const window = windowOf(100n, newestFirst(slices));
    expect(window.parts.map((part) => [part.slice, part.counted])).toEqual([
      [2, 10n],
      [1, 40n],
      [0, 50n],
    ]);
    // aa: 10 + 30 * 50/100 = 25; bb: 40 + 70 * 50/100 = 75
    const credits = divideWindow(1001n, window, slices);
    expect(credits.get('aa')).toBe(250n);
    expect(credits.get('bb')).toBe(751n);
  });

  test('weights add up, and one account computes its own from its own work alone', () => {
    fc.assert(
      fc.property(fc.array(slice, { maxLength: 6 }), fc.bigInt({ min: 1n, max: 1n << 72n }), (rows, windowWork) => {
        const slices = slicesOf(rows);
        const window = windowOf(windowWork, newestFirst(slices));
        const names = [...new Set(rows.flatMap((row) => [...row.keys()]))].sort();
        const weights = rankedWeights(window, rankedBy(names, slices), names.length);
        expect(weights.reduce((sum, weight) => sum + weight, 0n)).toBe(weightTotal(window));
        expect(window.counted <= windowWork).toBe(true);
        for (const [rank, name] of names.entries())
          expect(weightOf(window, (slice) => slices.get(slice)?.work.get(name) ?? 0n)).toBe(weights[rank]);
      }),
      runs,
    );
  });
});

test('a division loses no atom and gives nobody more than one above the floor; the largest remainders get them', () => {
  // Small weights among large ones, so that many remainders are equal and many differ only in their last bits.
  const weights = fc.array(fc.oneof(fc.bigInt({ min: 0n, max: 3n }), fc.bigInt({ min: 1n, max: 1n << 100n })), {
    minLength: 1,
    maxLength: 40,
  });
  fc.assert(
    fc.property(fc.bigInt({ min: 0n, max: 10n ** 17n }), weights, (amount, row) => {
      const total = row.reduce((sum, weight) => sum + weight, 0n);
      fc.pre(total > 0n);
      const credits = divideRanked(amount, row);
      const places = row.map((weight, rank) => {
        const credit = credits[rank] as bigint;
        const floor = (amount * weight) / total;
        expect(credit === floor || credit === floor + 1n).toBe(true);
        return { rank, isMore: credit > floor, remainder: (amount * weight) % total };
      });
      expect(credits.reduce((sum, credit) => sum + credit, 0n)).toBe(amount);
      // Accounts that got an atom more come before all others, by remainder and then by rank.
      for (const more of places.filter(({ isMore }) => isMore))
        for (const less of places.filter(({ isMore }) => !isMore))
          expect(more.remainder > less.remainder || (more.remainder === less.remainder && more.rank < less.rank)).toBe(
            true,
          );
    }),
    runs,
  );
});

test('ties go to the smaller account', () => {
  expect(divideRanked(2n, [1n, 1n, 1n])).toEqual([1n, 1n, 0n]);
  const work = new Map([
    ['cc', 1n],
    ['aa', 1n],
    ['bb', 1n],
  ]);
  const slices = new Map([[0, { slice: 0, total: 3n, work }]]);
  expect([...divideWindow(2n, windowOf(3n, newestFirst(slices)), slices)]).toEqual([
    ['aa', 1n],
    ['bb', 1n],
    ['cc', 0n],
  ]);
});

test('remainders that differ only in their last bit are distinguished', () => {
  const large = 1n << 60n;
  expect(divideRanked(2n, [large, large + 1n, large + 2n])).toEqual([0n, 1n, 1n]);
  expect(divideRanked(2n, [large + 2n, large + 1n, large])).toEqual([1n, 1n, 0n]);
});

test('the fee is rounded in favour of the miners', () => {
  expect(feeOf(999_999n, 10_000n)).toBe(9_999n);
});

describe('a sum tree', () => {
  const leaves = fc
    .uniqueArray(fc.tuple(fc.uint8Array({ minLength: 1, maxLength: 49 }), work), {
      selector: ([key]) => key.join(),
      minLength: 1,
      maxLength: 40,
    })
    .map((rows) => rows.map(([key, value]): SumLeaf => ({ key, value })).sort((a, b) => compareBytes(a.key, b.key)));

  test('proves every leaf and its total, and no other leaf, place, sum or sibling', () => {
    fc.assert(
      fc.property(leaves, fc.nat(), (list, pick) => {
        const tree = sumTree(list);
        expect(tree.root.sum).toBe(list.reduce((sum, leaf) => sum + leaf.value, 0n));
        const index = pick % list.length;
        const leaf = list[index] as SumLeaf;
        const branch = sumBranch(tree, index);
        expect(verifySumBranch(tree.root, leaf, branch)).toBe(true);
        expect(verifySumBranch(tree.root, { ...leaf, value: leaf.value + 1n }, branch)).toBe(false);
        expect(verifySumBranch({ ...tree.root, sum: tree.root.sum + 1n }, leaf, branch)).toBe(false);
        expect(verifySumBranch(tree.root, leaf, { ...branch, siblings: [...branch.siblings, tree.root] })).toBe(false);
        branch.siblings.forEach((sibling, i) => {
          const forged = [...branch.siblings];
          forged[i] = { ...sibling, sum: sibling.sum + 1n };
          expect(verifySumBranch(tree.root, leaf, { ...branch, siblings: forged })).toBe(false);
        });
      }),
      runs,
    );
  });

  test('refuses leaves that are out of order or repeated', () => {
    const leaf = { key: fromHex('aa'), value: 1n };
    expect(() => sumTree([leaf, leaf])).toThrow(/ascending/);
    expect(
      leavesOf(
        new Map([
          ['bb', 1n],
          ['aa', 2n],
          ['cc', 0n],
        ]),
        (key) => fromHex(key),
      ).map((l) => l.value),
    ).toEqual([2n, 1n]);
  });
});
