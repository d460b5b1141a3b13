/** Files that a process may have open: connections leave some for the program's own, and one that lacks them does not end. */
import { expect, test, vi } from 'vitest';
import { ClientPlaces } from '../../runtime/door/places.ts';
import { openFilesLimit, roomForConnections } from '../../runtime/files/open-files.ts';
import { giveBackIdleMemory } from '../../runtime/idle-memory.ts';

test('the limit is that of the process, and none where nothing is said', () => {
  expect(openFilesLimit()).toBe(openFilesLimit(process.pid));
  expect(openFilesLimit()).toBeGreaterThan(0);
  expect(openFilesLimit('no process')).toBe(Number.POSITIVE_INFINITY);
});

test.each([
  [400, 200],
  [1_024, 512],
  [4_096, 2_048],
  [65_536, 63_488],
  [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY],
])('of %d files %d are for connections: of miners and of the door beside them together', (limit, room) => {
  const { miners, door } = roomForConnections(limit);
  expect(miners + door).toBe(room);
  expect(door).toBe(room / 4);
});

test('a listener admits no more connections than the process has room for', () => {
  const places = new ClientPlaces({ connections: 16_384 }, undefined, roomForConnections(400).door);
  const taken = Array.from({ length: 1_000 }, (_, i) => places.take(`10.1.${i >> 8}.${i & 255}`, '10.0.0.1'));
  expect(taken.filter((name) => name !== undefined)).toHaveLength(50);
});

test('a thread that cannot read the size of its process goes on, and looks again', () => {
  vi.useFakeTimers();
  const rss = vi.spyOn(process.memoryUsage, 'rss').mockImplementation(() => {
    throw new Error('EMFILE: too many open files, uv_resident_set_memory');
  });
  try {
    giveBackIdleMemory();
    expect(() => vi.advanceTimersByTime(10_000)).not.toThrow();
    expect(rss).toHaveBeenCalledTimes(2);
  } finally {
    rss.mockRestore();
    vi.clearAllTimers();
    vi.useRealTimers();
  }
});
