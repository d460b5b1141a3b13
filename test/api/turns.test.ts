/** Whose read is made next: several clients in turn, each a few units at a time, and the event loop in between. */
import { setImmediate as turn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { Turns } from '../../node/api/turns.ts';

const LIMITS = { units: 8, sliceMillis: 10 };

/** Reads that take this long of the main thread, by a clock that only they move. */
function bed(millis: number) {
  let now = 0;
  const turns = new Turns(LIMITS, () => now);
  const begun: string[] = [];
  const read = (client: string, cost = 1): Promise<void> =>
    turns.run(client, cost, () => {
      begun.push(client);
      now += millis;
    });
  return { turns, begun, read };
}

test('a read with nothing in its way is begun at once', () => {
  const { begun, read } = bed(1);
  void read('a');
  expect(begun).toEqual(['a']);
});

test('a burst is begun in slices, and who comes later does not wait for its end', async () => {
  const { turns, begun, read } = bed(4);
  const burst = Promise.all(Array.from({ length: 60 }, () => read('a')));
  // Three take 12 ms: the slice is over.
  expect(begun.length).toBe(3);
  const other = read('b');
  await turn();
  expect(begun.length).toBeLessThanOrEqual(3 + 3);
  await other;
  expect(begun.indexOf('b')).toBeLessThanOrEqual(6);
  let slices = 0;
  for (; begun.length < 61; slices++) {
    const before = begun.length;
    await turn();
    expect(begun.length - before).toBeLessThanOrEqual(3);
  }
  expect(slices).toBeGreaterThan(10);
  await burst;
  expect(turns.clients).toBe(0);
});

test('one client has a few units under way; a dear read waits until they are done and is then alone', async () => {
  const turns = new Turns(LIMITS, () => 0);
  const ends: (() => void)[] = [];
  let under = 0;
  const begin = (client: string, cost: number) =>
    turns.run(client, cost, async () => {
      under += cost;
      await new Promise<void>((resolve) => ends.push(resolve));
      under -= cost;
    });
  const all = [begin('a', 4), begin('a', 4), begin('a', 4), begin('a', 100), begin('a', 1)];
  expect(under).toBe(8);
  // Not in the way of others.
  const other = begin('b', 8);
  await turn();
  expect(under).toBe(16);
  ends.pop()?.();
  await other;
  for (const [most, left] of [
    [8, 2],
    [4, 1],
  ] as const) {
    expect(under).toBe(most);
    expect(ends.length).toBe(left);
    ends.shift()?.();
    await turn();
    await turn();
    if (left === 2) expect(under).toBe(8);
    if (left === 2) ends.shift()?.();
    await turn();
    await turn();
  }
  expect(under).toBe(100);
  ends.shift()?.();
  await turn();
  await turn();
  expect(under).toBe(1);
  ends.shift()?.();
  await Promise.all(all);
  expect(turns.clients).toBe(0);
});

test('a read that fails gives its place back, whether it throws or rejects', async () => {
  const { turns } = bed(1);
  const failing = [
    turns.run('a', 8, () => {
      throw new Error('at once');
    }),
    turns.run('a', 8, async () => Promise.reject(new Error('later'))),
  ];
  expect((await Promise.allSettled(failing)).map((end) => end.status)).toEqual(['rejected', 'rejected']);
  await expect(turns.run('a', 8, () => 7)).resolves.toBe(7);
  await turn();
  expect(turns.clients).toBe(0);
});
