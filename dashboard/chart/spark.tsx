/** A small line without numbers below a figure: whether what it names rises or falls. The chart of the page has the numbers. */
import { type Point, SPARK, sparkLine } from './chart-points.ts';

export function Spark({ points, what }: { points: readonly Point[]; what: string }) {
  const line = sparkLine(points);
  return (
    <>
      <svg class="spark" viewBox={`0 0 ${SPARK.width} ${SPARK.height}`} preserveAspectRatio="none" aria-hidden="true">
        {line === undefined ? null : <polyline points={line} vector-effect="non-scaling-stroke" />}
      </svg>
      <span class="what" aria-hidden="true">
        {line === undefined ? '' : what}
      </span>
    </>
  );
}
