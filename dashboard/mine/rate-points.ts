/** The points of the chart of this browser's rate: one a second, however often the miner reports. */
import type { Point } from '../chart/chart-points.ts';

const APART_MILLIS = 1_000;
/** Ten minutes. */
const POINTS = 600;

/**
 * Figures come with every share, hundreds a second where shares are easy. Each change of the points draws the chart anew, so the list
 * stays the same where the last point is fresh.
 */
export function withPoint(points: readonly Point[], point: Point): readonly Point[] {
  const last = points.at(-1);
  // A clock that was set back begins the next second too.
  if (last !== undefined && Math.abs(point.at_millis - last.at_millis) < APART_MILLIS) return points;
  return [...points, point].slice(-POINTS);
}
