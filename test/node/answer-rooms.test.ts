/** Memory of answers is used again only when it was given back, and never too small. */
import { expect, test } from 'vitest';
import { AnswerRooms } from '../../node/mining/answer-rooms.ts';

test('a room is handed out to one at a time, large enough, and used again', () => {
  const rooms = new AnswerRooms();
  const large = rooms.take(2_000_000);
  const other = rooms.take(2_000_000);
  expect(other.buffer).not.toBe(large.buffer);
  rooms.giveBack(large);
  expect(rooms.take(3_000_000).buffer).not.toBe(large.buffer);
  expect(rooms.take(100).buffer).toBe(large.buffer);
  expect(rooms.take(100).buffer).not.toBe(large.buffer);
});

test('only a few are kept, the largest', () => {
  const rooms = new AnswerRooms();
  const taken = [1, 2, 3, 4, 5, 6].map((n) => rooms.take(n * 100_000));
  for (const room of taken) rooms.giveBack(room);
  expect(rooms.take(1).buffer).toBe(taken[2]?.buffer);
});
