/** The target follows hash rate and does not swing (ledger rule 39); days of cuts with Poisson luck, jumps of 100 both ways. */
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { initialRate, nextRate } from '../../node/ledger/retarget.ts';
import { count, seed } from '../level.ts';
import { retargetPlot } from './retarget-plot.ts';
import { simulateRetarget } from './retarget-simulation.ts';

const DAY = 34_560;

test('four blocks a cut before and after each jump, reached without overshoot', () => {
  const cuts = simulateRetarget(
    [
      { cuts: DAY / 4, rate: 1e6 },
      { cuts: DAY / 4, rate: 1e8 },
      { cuts: DAY / 2, rate: 1e6 },
      { cuts: DAY / 4, rate: 3e5 },
    ],
    seed,
  );
  let from = 0;
  for (const stage of [
    { cuts: DAY / 4, rate: 1e6 },
    { cuts: DAY / 4, rate: 1e8 },
    { cuts: DAY / 2, rate: 1e6 },
    { cuts: DAY / 4, rate: 3e5 },
  ]) {
    // Ten minutes are enough for a hundredfold jump either way.
    const settled = cuts.slice(from + 300, from + stage.cuts);
    const mean = settled.reduce((sum, cut) => sum + cut.blocks, 0) / settled.length;
    expect(mean).toBeGreaterThan(3.8);
    expect(mean).toBeLessThan(4.2);
    const ratios = settled.map((cut) => cut.work / (stage.rate / 4));
    expect(Math.min(...ratios)).toBeGreaterThan(0.6);
    expect(Math.max(...ratios)).toBeLessThan(1.6);
    from += stage.cuts;
  }
});

test('days of random jumps: settled half an hour after each', () => {
  const stages = Array.from({ length: count({ full: 8, deep: 60 }) }, (_, i) => ({
    cuts: DAY / 8,
    rate: [1e5, 1e7, 1e9, 1e7, 1e8, 1e6][i % 6] as number,
  }));
  const cuts = simulateRetarget(stages, seed + 1);
  let from = 0;
  for (const stage of stages) {
    const settled = cuts.slice(from + 720, from + stage.cuts);
    const doublings = settled.map((cut) => Math.abs(Math.log2(cut.work / (stage.rate / 4))));
    expect(Math.max(...doublings)).toBeLessThan(0.75);
    from += stage.cuts;
  }
});

test('a card hundreds of thousands of times too fast for a new chain is followed within six cuts', () => {
  for (const rate of [2.5e6, 2.5e9])
    for (const cut of simulateRetarget([{ cuts: 400, rate }], seed + 2, {
      initialWork: 4_096n,
      minimumWork: 64n,
    }).slice(6)) {
      expect(cut.work / (rate / 4)).toBeGreaterThan(0.2);
      expect(cut.work / (rate / 4)).toBeLessThan(2);
    }
});

test('one late cut, or blocks saved up for a whole window, move the target by no more than the mean does', () => {
  const rate = initialRate(1_000n);
  const most = nextRate(rate, 64_000n, { work: 0n, blocks: 0, blocksBefore: 0 }, 64n);
  expect(nextRate(rate, 64_000n, { work: 64_000n, blocks: 64, blocksBefore: 4 }, 64n)).toBe(most);
  expect(nextRate(rate, 64_000n, { work: 4_000n, blocks: 4, blocksBefore: 64 }, 64n)).toBe(most);
  expect(nextRate(rate, 64_000n, { work: 64_000n, blocks: 64, blocksBefore: 64 }, 64n)).toBe(initialRate(16_000n));
});

test('with no work at all the target falls to the least work and stays there', () => {
  const cuts = simulateRetarget([{ cuts: 2_000, rate: 0 }], seed, { initialWork: 1_000_000n, minimumWork: 64n });
  expect(cuts.at(-1)?.work).toBe(64);
});

test('the plot in docs is the one this code draws', () => {
  expect(readFileSync(new URL('../../docs/protocol/retarget.svg', import.meta.url), 'utf8')).toBe(retargetPlot());
});
