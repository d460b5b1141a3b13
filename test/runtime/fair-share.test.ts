/** A common allowance in fair shares: whoever takes what it can leaves as much to the next one as it has itself. */
import { expect, test } from 'vitest';
import { FairShare } from '../../runtime/clients/fair-share.ts';
import { seed } from '../level.ts';
import { randomOf } from '../random.ts';

const RATE = { perSecond: 20, burst: 200 };
const drain = (share: FairShare, client: string, now: number): number => {
  let taken = 0;
  while (share.take(client, now)) taken++;
  return taken;
};

test('one that takes all it can leaves half, the next a third, and so on', () => {
  const share = new FairShare(RATE, 0);
  expect(drain(share, 'a', 0)).toBe(100);
  expect(drain(share, 'b', 0)).toBe(50);
  expect(drain(share, 'c', 0)).toBe(25);
  expect(share.take('d', 0, 12)).toBe(true);
});

test('a client alone has the whole rate; of several greedy ones each has the same', () => {
  for (const greedy of [1, 2, 5]) {
    const share = new FairShare(RATE, 0);
    const taken = new Map<number, number>();
    for (let now = 0; now < 600_000; now += 50)
      for (let i = 0; i < greedy; i++) {
        const own = drain(share, `${i}`, now);
        if (now >= 300_000) taken.set(i, (taken.get(i) ?? 0) + own);
      }
    const all = [...taken.values()].reduce((sum, own) => sum + own, 0);
    expect(all).toBeGreaterThan(300 * 20 - 10);
    expect(all).toBeLessThan(300 * 20 + 10);
    for (const own of taken.values()) expect(Math.abs(own - all / greedy)).toBeLessThan((0.05 * all) / greedy);
  }
});

test('random clients and times: never more than there is, a quiet client is served, and memory is bounded', () => {
  const draw = randomOf(seed);
  const share = new FairShare(RATE, 0);
  let [now, taken] = [0, 0];
  for (let step = 0; step < 4_000; step++) {
    now += draw(40);
    for (let i = draw(6); i > 0; i--) {
      const cost = 1 + draw(4);
      if (share.take(`greedy ${draw(5)}`, now, cost)) taken += cost;
    }
    if (step % 5 === 0 && share.take(`once ${step}`, now)) taken++;
    // Each of five has taken no more than what is left: a sixth of the allowance.
    expect(share.has(`quiet ${step}`, now, 10)).toBe(true);
    expect(share.clients).toBeLessThan(2 * RATE.burst + 10);
  }
  expect(taken).toBeLessThanOrEqual(RATE.burst + (now * RATE.perSecond) / 1000);
  // A clock that goes back adds nothing.
  const before = drain(share, 'x', now);
  expect(before).toBeGreaterThan(0);
  expect(drain(share, 'x', now - 1_000_000)).toBe(0);
});
