import { expect, test } from 'vitest';
import { BoundedMap } from '../../runtime/bounded-map.ts';

test('the oldest entry goes, and only when there is one more than fits', () => {
  const map = new BoundedMap<string, number>(2).set('a', 1).set('b', 2).set('a', 3);
  expect([...map]).toEqual([
    ['a', 3],
    ['b', 2],
  ]);
  map.set('c', 4);
  expect([...map.keys()]).toEqual(['b', 'c']);
});

test('what is used stays', () => {
  const map = new BoundedMap<string, number>(2).set('a', 1).set('b', 2);
  expect(map.use('a')).toBe(1);
  expect(map.use('x')).toBeUndefined();
  map.set('c', 3);
  expect([...map.keys()]).toEqual(['a', 'c']);
});
