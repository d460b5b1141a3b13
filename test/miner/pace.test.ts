/** How many shares are sent, however easy the target: simulated devices under targets from sensible to absurd. */
import { expect, test } from 'vitest';
import { PACE, Pace } from '../../miner/work/pace.ts';

/** Hits of each second at a hash rate; the device does no more hits at one look than a dispatch brings home. */
function simulate(
  rate: number,
  shareWork: bigint,
  seconds: number,
  act: (pace: Pace, second: number) => void = () => {},
) {
  const pace = new Pace();
  const sent: number[] = [];
  for (let second = 0; second < seconds; second++) {
    let [hits, done] = [0, 0];
    while (done < 100) {
      // A hundredth of a second at a time, as batches come.
      const work = pace.workFor(shareWork);
      const found = Math.round(rate / 100 / Number(work));
      for (let i = 0; i < found; i++) pace.hit(work);
      hits += found;
      done++;
    }
    sent.push(hits);
    act(pace, second);
    pace.look(second < 1 ? undefined : rate, 0);
  }
  return sent;
}

test.each([
  [1_000, 1n],
  [300_000, 1n],
  [1e9, 1n],
  [1e9, 1_000_000n],
  [5e8, 1_000n],
] as const)('%d H/s at a share work of %d: soon within what a server takes', (rate, work) => {
  const sent = simulate(rate, work, 20);
  for (const count of sent.slice(2)) expect(count).toBeLessThanOrEqual(PACE.sharesPerSecond * 1.3);
});

test('a sensible target is left alone', () => {
  const pace = new Pace();
  pace.look(1e9, 0);
  expect(pace.workFor(10_000_000_000n)).toBe(10_000_000_000n);
  expect(simulate(1e6, 100_000n, 20).every((count) => count === 0 || count === 100 || count <= 20)).toBe(true);
});

test('a server that takes less gets less, and more again later', () => {
  const sent = simulate(1e6, 1n, 120, (pace, second) => {
    if (second >= 5 && second < 10) pace.refused();
  });
  expect(Math.max(...sent.slice(10, 13))).toBeLessThan(20);
  expect(Math.min(...sent.slice(100))).toBeGreaterThan(50);
});
