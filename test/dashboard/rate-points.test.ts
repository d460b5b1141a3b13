/** The chart of the browser miner is drawn once a second, however many shares are found. */
import { expect, test } from 'vitest';
import type { Point } from '../../dashboard/chart/chart-points.ts';
import { withPoint } from '../../dashboard/mine/rate-points.ts';

const point = (at_millis: number): Point => ({ at_millis, value: 1 });

test('a thousand figures in two seconds are two points, and the list is the same one in between', () => {
  let points: readonly Point[] = [];
  const lists = new Set<readonly Point[]>();
  for (let at = 0; at < 2_000; at += 2) {
    points = withPoint(points, point(5_000 + at));
    lists.add(points);
  }
  expect(points).toEqual([point(5_000), point(6_000)]);
  expect(lists.size).toBe(2);
});

test('the newest ten minutes are kept, and a clock that was set back does not stop the line', () => {
  let points: readonly Point[] = [];
  for (let second = 0; second < 700; second++) points = withPoint(points, point(second * 1_000));
  expect(points).toHaveLength(600);
  expect(points.at(-1)).toEqual(point(699_000));
  expect(withPoint(points, point(0)).at(-1)).toEqual(point(0));
});
