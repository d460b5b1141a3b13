/** Vardiff under a fake clock and simulated Poisson miners, over hours. */
import { describe, expect, test } from 'vitest';
import {
  hashRate,
  newVardiff,
  onShare,
  retarget,
  VARDIFF_DEFAULTS,
  type Vardiff,
} from '../../bridge/session/vardiff.ts';
import { count, seed } from '../level.ts';
import { fractionsOf } from '../random.ts';

type Run = { shares: number; changes: { at: number; work: number }[]; state: Vardiff; shareTimes: number[] };

/** A miner whose hash rate is `rate(t)`; the next share is drawn anew whenever the work changes. */
function simulate(seconds: number, rate: (t: number) => number, draw: () => number, from?: Vardiff): Run {
  const options = VARDIFF_DEFAULTS;
  let state = from ?? newVardiff(options, 0);
  const run: Run = { shares: 0, changes: [], state, shareTimes: [] };
  let t = 0;
  let tick = 1;
  while (t < seconds) {
    const gap = (-Math.log(1 - draw()) * Number(state.work)) / Math.max(rate(t), 1e-9);
    const before = state.work;
    const next = Math.min(t + Math.max(gap, 0.001), tick);
    if (next < tick) {
      state = retarget(onShare(state, state.work, next * 1000, options), next * 1000, options);
      run.shares++;
      run.shareTimes.push(next);
    } else {
      state = retarget(state, tick * 1000, options);
      tick++;
    }
    t = next;
    if (state.work !== before) run.changes.push({ at: t, work: Number(state.work) });
  }
  return { ...run, state };
}

const perShare = (state: Vardiff, rate: number) => Number(state.work) / rate;

describe('a newcomer', () => {
  test.each([1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9])('of %d H/s is at its place within a minute', (rate) => {
    const draw = fractionsOf(seed + rate);
    const far: number[] = [];
    const runs = 60;
    for (let i = 0; i < runs; i++) {
      const { state, shares } = simulate(60, () => rate, draw);
      const seconds = perShare(state, rate);
      if (seconds < 2.5 || seconds > 40) far.push(seconds);
      expect(shares).toBeLessThan(1000);
    }
    expect(far.length).toBeLessThanOrEqual(runs * 0.1);
  });
});

test('a steady miner sees few changes over hours and stays near one share in ten seconds', () => {
  const hours = count({ quick: 2, full: 6, deep: 48 });
  for (const rate of [2e3, 1e6, 5e8]) {
    const { changes, state, shares } = simulate(hours * 3600, () => rate, fractionsOf(seed));
    const late = changes.filter((change) => change.at > 600);
    expect(late.length / hours).toBeLessThan(4);
    expect(perShare(state, rate)).toBeGreaterThan(4);
    expect(perShare(state, rate)).toBeLessThan(25);
    expect(shares / (hours * 360)).toBeGreaterThan(0.5);
    expect(shares / (hours * 360)).toBeLessThan(2);
    expect(hashRate(state) / rate).toBeGreaterThan(0.5);
    expect(hashRate(state) / rate).toBeLessThan(2);
  }
});

describe('a change of hash rate', () => {
  test.each([0.01, 0.1, 0.5, 2, 10, 100])('by %d is followed within ten minutes and without a cycle', (factor) => {
    const draw = fractionsOf(seed + factor * 1000);
    const slow: number[] = [];
    for (let i = 0; i < 30; i++) {
      const { changes, state } = simulate(3600, (t) => (t < 1200 ? 1e6 : 1e6 * factor), draw);
      const settled = simulate(900, () => 1e6 * factor, draw, state);
      const ratio = perShare(settled.state, 1e6 * factor) / 10;
      if (ratio < 0.4 || ratio > 2.5) slow.push(ratio);
      expect(changes.filter((change) => change.at > 1800).length).toBeLessThan(8);
    }
    expect(slow.length).toBeLessThanOrEqual(1);
  });
});

test('a clock that jumps back or far ahead does no harm', () => {
  const options = VARDIFF_DEFAULTS;
  let state = simulate(1800, () => 1e6, fractionsOf(seed)).state;
  const before = state.work;
  state = retarget(state, -1e12, options);
  expect(state.work).toBe(before);
  state = retarget(onShare(state, state.work, 1e15, options), 1e15, options);
  expect(state.work > 0n && Number.isFinite(hashRate(state))).toBe(true);
  expect(perShare(simulate(900, () => 1e6, fractionsOf(seed), { ...state, atMillis: 0 }).state, 1e6)).toBeLessThan(30);
});

test('work stays within its bounds', () => {
  const options = { ...VARDIFF_DEFAULTS, minWork: 1000n, maxWork: 2000n };
  let state = newVardiff(options, 0);
  for (let t = 0; t < 1000; t++) {
    state = retarget(t < 500 ? onShare(state, state.work, t * 10, options) : state, t * 1000, options);
    expect(state.work >= 1000n && state.work <= 2000n).toBe(true);
  }
});
