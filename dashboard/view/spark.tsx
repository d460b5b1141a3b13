/** A small line without numbers below a figure: whether it rises or falls. The chart of the page has the numbers. */
import { type Point, SPARK, sparkLine } from './chart-points.ts';

export function Spark({ points }: { points: readonly Point[] }) {
  const line = sparkLine(points);
  return (
    <svg class="spark" viewBox={`0 0 ${SPARK.width} ${SPARK.height}`} preserveAspectRatio="none" aria-hidden="true">
      {line === undefined ? null : <polyline points={line} vector-effect="non-scaling-stroke" />}
    </svg>
  );
}
