/** A queue against an array, and with so many entries that an array takes minutes to give them. */
import { expect, test } from 'vitest';
import { Queue } from '../../runtime/queue.ts';

test('a queue gives its entries in their order, whatever comes between', () => {
  const [queue, array] = [new Queue<number>(), [] as number[]];
  for (let i = 0; i < 2_000; i++) {
    // Fills and empties it several times.
    if ((i * 7) % 11 < (i % 400 < 200 ? 8 : 3)) {
      queue.push(i);
      array.push(i);
    } else expect(queue.shift()).toBe(array.shift());
    expect(queue.length).toBe(array.length);
  }
  while (array.length > 0) expect(queue.shift()).toBe(array.shift());
  expect([queue.shift(), queue.length]).toEqual([undefined, 0]);
});

test('a queue of 300,000 entries is emptied at once', () => {
  const queue = new Queue<number>();
  for (let i = 0; i < 300_000; i++) queue.push(i);
  let sum = 0;
  while (queue.length > 0) sum += queue.shift() ?? 0;
  expect(sum).toBe(44_999_850_000);
});
