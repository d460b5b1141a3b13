import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test } from 'vitest';
import { BoundedMap } from '../../runtime/bounded-map.ts';
import { count, seed } from '../level.ts';
import { randomOf } from '../random.ts';

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

test('random sets, uses and deletions, and clearing now and then: the entries are those of a list, in its order', () => {
  const random = randomOf(seed);
  for (const limit of [1, 2, 7, 60]) {
    const map = new BoundedMap<number, number>(limit);
    let list: [number, number][] = [];
    for (let step = 0; step < count({ full: 5_000, deep: 200_000 }); step++) {
      const key = random(2 * limit + 2);
      const at = list.findIndex(([other]) => other === key);
      switch (random(9)) {
        case 0:
          map.delete(key);
          list = list.filter(([other]) => other !== key);
          break;
        case 1:
          expect(map.use(key)).toBe(list[at]?.[1]);
          if (at >= 0) list.push(...list.splice(at, 1));
          break;
        case 2:
          if (random(40) > 0) break;
          map.clear();
          list = [];
          break;
        default:
          map.set(key, step);
          if (at >= 0) list[at] = [key, step];
          else list.push([key, step]);
          if (list.length > limit) list.shift();
      }
      const entries = [...map];
      // Looked at after each of tens of thousands of steps: an expectation that compares as deep as it can is most of the time.
      const isSame =
        entries.length === list.length &&
        entries.every(([key, value], i) => list[i]?.[0] === key && list[i]?.[1] === value);
      if (!isSame) expect(entries).toEqual(list);
    }
  }
});

test('what was removed is not kept in memory, full or not', () => {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  for (const limit of [500, 1_000, 16_384]) {
    const map = new BoundedMap<number, Uint8Array>(limit);
    const held = () => {
      // The memory of buffers is given back a little after a collection, at the latest by the next.
      for (let i = 0; i < 3; i++) collect();
      return process.memoryUsage().arrayBuffers / 1024 / 1024;
    };
    const before = held();
    // Two hundred megabytes go through it; at most a few thousand entries of 4 KB are there, or were removed lately.
    for (let i = 0; i < 50_000; i++) {
      map.delete(i % 1_000);
      map.set(i % 1_000, new Uint8Array(4_096));
    }
    expect(held() - before).toBeLessThan(limit > 1_000 ? 100 : 20);
  }
});
