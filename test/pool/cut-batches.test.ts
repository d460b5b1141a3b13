/** Reading ahead: everything once and in order, bounded, and an end or a failure comes after what was read before it. */
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { inBatches } from '../../pool/accountant/cut-batches.ts';

async function* numbers(to: number, seen: { last: number }, end?: Error): AsyncGenerator<number> {
  for (let n = 1; n <= to; n++) {
    seen.last = n;
    yield n;
  }
  if (end !== undefined) throw end;
}

test('what came while the reader was busy comes at once, in order and within the bound', async () => {
  const seen = { last: 0 };
  const read: number[] = [];
  const sizes: number[] = [];
  for await (const batch of inBatches(numbers(1_000, seen), 100)) {
    read.push(...batch);
    sizes.push(batch.length);
    await sleep(1);
    expect(seen.last - read.length).toBeLessThanOrEqual(100);
  }
  expect(read).toEqual(Array.from({ length: 1_000 }, (_, i) => i + 1));
  expect(Math.max(...sizes)).toBe(100);
});

test('a failure comes after what was read before it', async () => {
  const read: number[] = [];
  const reading = (async () => {
    for await (const batch of inBatches(numbers(5, { last: 0 }, new Error('gone')), 100)) read.push(...batch);
  })();
  await expect(reading).rejects.toThrow('gone');
  expect(read).toEqual([1, 2, 3, 4, 5]);
});

test('who leaves early lets the source end', async () => {
  const seen = { last: 0 };
  for await (const batch of inBatches(numbers(1_000, seen), 10)) {
    expect(batch[0]).toBe(1);
    break;
  }
  await sleep(5);
  expect(seen.last).toBeLessThan(1_000);
});

test('nothing is no batch', async () => {
  for await (const batch of inBatches(numbers(0, { last: 0 }), 10)) expect(batch).toBe('never');
});
