/** The draw of anchors (ledger rule 42): chances even out (blocks + 1) x work, and who uses them earns no less per hash than with the newest anchor. */
import { expect, test } from 'vitest';
import { anchorAt, anchorChances, SPREAD_BLOCKS, worthwhileAnchors } from '../../node/mining/anchor-choice.ts';
import { count, seed } from '../level.ts';
import { randomOf } from '../random.ts';
import { settling } from './anchor-plot.ts';
import { simulateAnchors } from './anchor-simulation.ts';

const sum = (values: readonly number[]): number => values.reduce((all, each) => all + each, 0);

test('chances fill up the low anchors to one level and leave the others out', () => {
  const anchors = [3, 0, 9, 40].map((blocks, height) => ({ height, blocks, work: 100 }));
  const chances = anchorChances(anchors, 16);
  // Floors of 4, 1 and 10 blocks: 16 more raise the three to 31 / 3.
  expect(chances.map((chance) => chance * 16)).toEqual([
    expect.closeTo(31 / 3 - 4),
    expect.closeTo(31 / 3 - 1),
    expect.closeTo(1 / 3),
    0,
  ]);
  expect(anchorChances([{ height: 1, blocks: 7, work: 5 }])).toEqual([1]);
});

test('whatever blocks and works: chances add up to one, and no drawn anchor is above the level of one left out', () => {
  const random = randomOf(seed);
  for (let round = 0; round < count({ full: 300, deep: 10_000 }); round++) {
    const anchors = Array.from({ length: 1 + random(81) }, (_, height) => ({
      height,
      blocks: random(70),
      work: 1 + random(round % 2 === 0 ? 2 : 1_000_000),
    }));
    const chances = anchorChances(anchors);
    expect(sum(chances)).toBeCloseTo(1, 6);
    const raised = anchors.map(({ blocks, work }, i) => (blocks + 1 + (chances[i] as number) * SPREAD_BLOCKS) * work);
    const level = Math.max(...raised.filter((_, i) => (chances[i] as number) > 0));
    for (const [i, height] of raised.entries())
      if (chances[i] === 0) expect(height).toBeGreaterThanOrEqual(level * (1 - 1e-9));
      else expect(height / level).toBeCloseTo(1, 6);
  }
});

test('a place among the chances names an anchor that has one', () => {
  const anchors = [10, 11, 12].map((height) => ({ height, blocks: 0, work: 1 }));
  const at = (place: number) => anchorAt(anchors, [0.25, 0, 0.75], place).height;
  expect([0, 0.2499, 0.25, 0.9999].map(at)).toEqual([10, 10, 12, 12]);
  // What rounding leaves over is the last one's.
  expect(anchorAt(anchors, [0.25, 0.7, 0], 0.9999).height).toBe(11);
});

test('not worth new work: an anchor with fewer than 16 cuts left, or with blocks less than half as hard as the newest', () => {
  const newest = { height: 1_080, blocks: 0, work: 1_000 };
  const anchor = (height: number, work: number) => ({ height, blocks: 0, work });
  const open = [
    anchor(999, 1_000),
    anchor(1_000, 1_000),
    anchor(1_040, 499),
    anchor(1_041, 500),
    anchor(1_042, 1e9),
    newest,
  ];
  expect(worthwhileAnchors(open).map(({ height }) => height)).toEqual([1_000, 1_041, 1_042, 1_080]);
  expect(worthwhileAnchors([newest])).toEqual([newest]);
});

test.each([1, 4])(
  '%i blocks a cut: nobody earns less per hash than with the newest anchor, however many do it',
  (perCut) => {
    for (const adoption of [0.01, 0.25, 0.75, 1]) {
      const { probe, best } = simulateAnchors({
        seed,
        adoption,
        servers: Math.max(1, Math.round(20 * adoption)),
        draws: 4,
        delay: 0.3,
        stages: [{ cuts: count({ quick: 300, full: 600, deep: 10_000 }), rate: 1e6 }],
        fixedWork: 1e6 / perCut,
      });
      expect(probe).toBeGreaterThan(0.985);
      if (adoption === 0.01) expect(best).toBeGreaterThan(1.2);
    }
  },
);

test('a hundredfold jump is followed when all mine by best', () => {
  const [up = 0, down = 0] = settling(1, seed).cuts;
  expect(up).toBeLessThan(100);
  expect(down).toBeLessThan(300);
});
