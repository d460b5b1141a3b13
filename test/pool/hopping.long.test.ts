/**
 * Income per hash of a loyal miner and of hoppers with every strategy we could think of, under the rules of the books.
 * Strategies see blocks that are drawn. Rewards are taken in expectation: what a part of a slice finds is drawn after everybody chose
 * how much to hash in it, so the mean over its luck is exact, and a small advantage does not drown in the luck of few blocks.
 * The figures are printed; docs/protocol/books.md quotes them.
 */
import { describe, expect, test } from 'vitest';
import { divideWindow, type SliceWork, windowOf } from '../../protocol/books/pplns.ts';
import { count, seed } from '../level.ts';
import { fractionsOf } from '../random.ts';

const REWARD = 10n ** 12n;
/** Expected blocks per unit of work. */
const BLOCK_WORK = 1_000_000;

type Hasher = (slice: number, seen: { blocksLastSlice: number; blocksThisSlice: number; part: number }) => number;
type Incomes = { readonly [name: string]: { readonly perHash: number; readonly hashes: number } };

/** Slices before and after the measured ones: the window fills in the first, and pays the last of them out in the second. */
const EDGE = 400;

/**
 * Plays slices of ten parts each. A miner's strategy is asked at every part how much it hashes here, and sees the luck so
 * far: a strategy inside a slice can stop right after a block or run away from a dry spell. Work of the measured slices
 * is kept under its own name, so that incomes per hash are exact, with no advantage at either end.
 */
function play(
  slices: number,
  windowWork: (recent: readonly bigint[]) => bigint,
  miners: { readonly [name: string]: Hasher },
  draw: (() => number) | undefined,
  withholder?: string,
): Incomes {
  const closed = new Map<number, SliceWork>();
  const income = new Map<string, number>();
  const hashes = new Map<string, number>();
  const add = (map: Map<string, number>, name: string, amount: number) => map.set(name, (map.get(name) ?? 0) + amount);
  let blocksLastSlice = 0;
  for (let slice = 0; slice < slices + 2 * EDGE; slice++) {
    const measured = slice >= EDGE && slice < EDGE + slices;
    const work = new Map<string, bigint>();
    let [blocks, expected] = [0, 0];
    for (let part = 0; part < 10; part++) {
      let total = 0;
      for (const [miner, hasher] of Object.entries(miners)) {
        const amount = Math.round(hasher(slice, { blocksLastSlice, blocksThisSlice: blocks, part }));
        if (amount === 0) continue;
        if (miner !== withholder) total += amount;
        const name = measured ? miner : `${miner}, not measured`;
        work.set(name, (work.get(name) ?? 0n) + BigInt(amount));
        add(hashes, name, amount);
      }
      expected += total / BLOCK_WORK;
      blocks += draw === undefined ? total / BLOCK_WORK : poisson(total / BLOCK_WORK, draw);
    }
    const recent = [...closed.values()].slice(-12).map((one) => one.total);
    const window = windowOf(windowWork(recent), [...closed.values()].reverse());
    if (window.parts.length > 0 && expected > 0)
      for (const [name, credit] of divideWindow(REWARD, window, closed))
        add(income, name, (Number(credit) / Number(REWARD)) * expected);
    blocksLastSlice = blocks;
    closed.set(slice, { slice, work, total: [...work.values()].reduce((sum, one) => sum + one, 0n) });
    if (closed.size > EDGE) closed.delete(closed.keys().next().value as number);
  }
  return Object.fromEntries(
    Object.keys(miners).map((name) => [
      name,
      { perHash: ((income.get(name) ?? 0) * BLOCK_WORK) / (hashes.get(name) ?? 1), hashes: hashes.get(name) ?? 0 },
    ]),
  );
}

function poisson(mean: number, draw: () => number): number {
  const wait = () => -Math.log(1 - draw());
  let events = 0;
  for (let at = wait(); at < mean; at += wait()) events++;
  return events;
}

/** The rule of the pool: W expected blocks, but never less than the twelve newest slices hold. */
const rule = (blocks: number) => (recent: readonly bigint[]) => {
  const floor = recent.reduce((sum, one) => sum + one, 0n);
  const wanted = BigInt(blocks * BLOCK_WORK);
  return floor > wanted ? floor : wanted;
};

/** A large pool finds some 100 blocks a slice, a small one a block in 50 slices. */
const POOLS = { large: 10_000_000, small: 2_000 } as const;

const steady =
  (part: number): Hasher =>
  () =>
    part;

describe.each(Object.entries(POOLS))('in a %s pool', (name, others) => {
  const hopper = others / 4;
  const strategies: Record<string, Hasher> = {
    'every second slice': (slice) => (slice % 2 === 0 ? hopper : 0),
    'one slice in ten': (slice) => (slice % 10 === 0 ? hopper : 0),
    'only the first tenth of a slice': (_, { part }) => (part === 0 ? hopper : 0),
    'only the last tenth of a slice': (_, { part }) => (part === 9 ? hopper : 0),
    'until the first block of a slice': (_, { blocksThisSlice }) => (blocksThisSlice === 0 ? hopper : 0),
    'after the first block of a slice': (_, { blocksThisSlice }) => (blocksThisSlice > 0 ? hopper : 0),
    'after a lucky slice': (_, { blocksLastSlice }) =>
      blocksLastSlice > ((others + hopper) * 10) / BLOCK_WORK ? hopper : 0,
    'after an unlucky slice': (_, { blocksLastSlice }) =>
      blocksLastSlice < ((others + hopper) * 10) / BLOCK_WORK ? hopper : 0,
  };

  test.each(Object.entries(strategies))('a hopper that mines %s earns no more per hash', (what, strategy) => {
    const luck = what.includes('lucky') || what.includes('block');
    const slices = luck ? count({ quick: 2000, full: 6000, deep: 60_000 }) : 1000;
    const draw = luck ? fractionsOf(seed) : undefined;
    const result = play(slices, rule(4), { loyal: steady(others), hopper: strategy }, draw);
    const ratio = (result.hopper?.perHash ?? 0) / (result.loyal?.perHash ?? 1);
    console.log(`hopping, ${name} pool, ${what}: ${ratio.toFixed(4)} of the loyal miner's income per hash`);
    expect(ratio).toBeLessThan(luck ? 1.01 : 1.001);
  });

  test('who follows the tides of others gains nothing to speak of, but would without the floor of twelve slices', () => {
    const tides: Hasher = (slice) => (slice % 2 === 0 ? others / 4 : others);
    const surfer: Hasher = (slice) => (slice % 2 === 0 ? others / 100 : 0);
    const miners = { tides, loyal: steady(others / 100), surfer };
    const ratio = (rules: (recent: readonly bigint[]) => bigint) => {
      const result = play(1000, rules, miners, undefined);
      return (result.surfer?.perHash ?? 0) / (result.loyal?.perHash ?? 1);
    };
    const guarded = ratio(rule(4));
    const bare = ratio(() => BigInt(4 * BLOCK_WORK));
    console.log(
      `hopping, ${name} pool, with known tides of 4 to 1: ${guarded.toFixed(4)}; without the floor ${bare.toFixed(4)}`,
    );
    expect(guarded).toBeLessThan(1.01);
    if (name === 'large') expect(bare).toBeGreaterThan(1.5);
  });
});

test('who withholds its blocks lowers its own income with everybody else’s, and gains nothing by it', () => {
  const others = POOLS.large;
  const miners = { loyal: steady(others), other: steady(others / 9) };
  const honest = play(500, rule(4), miners, undefined);
  const withheld = play(500, rule(4), miners, undefined, 'other');
  const of = (result: Incomes, name: string) => result[name]?.perHash ?? 0;
  console.log(
    `withholding by a tenth of the pool: it keeps ${of(withheld, 'other').toFixed(4)} of its income per hash`,
  );
  expect(of(withheld, 'other')).toBeLessThan(0.91 * of(honest, 'other'));
  expect(of(withheld, 'other')).toBeCloseTo(of(withheld, 'loyal'), 6);
});
