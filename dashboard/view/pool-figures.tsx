/** The pool's main figures, which stand on top of the first page. */

import { useEffect, useMemo, useState } from 'preact/hooks';
import type { ChartDocument, HistoryDocument, PoolDocument, ServiceDocument } from '../../pool/api/documents.ts';
import {
  type ChartValue,
  chartPoints,
  type HistoryValue,
  historyPoints,
  hoursOf,
  type Point,
  SPARK,
  sparkLine,
} from '../chart/chart-points.ts';
import { useDocument } from '../data/hooks.ts';
import { count, counted, DAY_SECONDS, duration, hashRate, overTime } from '../format.ts';
import { word } from '../words/language.ts';
import { Figure, RoundedAmount } from './parts.tsx';

export const sum = (services: readonly ServiceDocument[], of: (service: ServiceDocument) => number): number =>
  services.reduce((total, service) => total + of(service), 0);

/** The lines below the figures, as far back as the chart: they come after the figures. */
function useTrends(since: number | null) {
  const [isDrawn, setDrawn] = useState(false);
  useEffect(() => setDrawn(true), []);
  const [hours] = useState(() => hoursOf(since, Date.now()));
  const chart = useDocument<ChartDocument>(isDrawn ? `pool/chart?hours=${hours}` : undefined, 60_000).data;
  const history = useDocument<HistoryDocument>(isDrawn ? `pool/history?hours=${hours}` : undefined, 60_000).data;
  return useMemo(() => {
    const now = Date.now();
    const ofChart = (what: ChartValue) => (chart === undefined ? [] : chartPoints(chart, now, what));
    // Blocks and payments of a time that is not over are fewer: that is no fall.
    const ofHistory = (what: HistoryValue) =>
      history === undefined
        ? []
        : historyPoints(history, now, what).filter(
            ({ at_millis }) => at_millis + history.seconds_per_point * 500 <= now,
          );
    return {
      rate: ofChart('hash_rate'),
      workers: ofChart('workers'),
      blocks: ofHistory('blocks'),
      paid: ofHistory('paid'),
      difficulty: ofHistory('block_work'),
    };
  }, [chart, history]);
}

/** The node measures over fewer minutes than the pool: without its time this rate can look lower than the pool’s own. */
const networkLabel = (millis: number): string =>
  millis > 0 ? word('figure.network_over', { span: duration(millis / 1000) }) : word('figure.network');

/** A younger pool has no line to show. */
const YOUNG_MILLIS = 10 * 60_000;

/** A small line without numbers below a figure: whether what it names rises or falls. The chart of the page has the numbers. */
function Spark({ points, what }: { points: readonly Point[]; what: string }) {
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

export function PoolFigures({ pool, now }: { pool: PoolDocument; now: number }) {
  const trends = useTrends(pool.since_millis);
  const isYoung = pool.since_millis === null || now - pool.since_millis < YOUNG_MILLIS;
  const spark = (points: readonly Point[], what: string) =>
    isYoung ? undefined : <Spark points={points} what={what} />;
  const { services, network_figures: network } = pool;
  return (
    <div class="grid">
      <Figure
        label={word('figure.rate')}
        value={hashRate(sum(services, (service) => service.hash_rate.ten_minutes))}
        note={`${hashRate(sum(services, (service) => service.hash_rate.day))} ${overTime(word('figure.day'), DAY_SECONDS, pool.since_millis, now)}`}
        spark={spark(trends.rate, word('figure.trend_rate'))}
      />
      <Figure
        label={word('figure.miners')}
        value={count(sum(services, (service) => service.miners))}
        note={counted(
          sum(services, (service) => service.workers),
          'worker',
        )}
        spark={spark(trends.workers, word('figure.trend_workers'))}
      />
      <Figure
        label={word('figure.blocks')}
        value={count(sum(services, (service) => service.blocks_found))}
        note={word('figure.paid_blocks', { count: count(sum(services, (service) => service.blocks_paid)) })}
        spark={spark(trends.blocks, word('figure.trend_blocks'))}
      />
      <Figure
        label={word('figure.paid')}
        value={<RoundedAmount atoms={pool.paid_atoms} />}
        note={word('figure.coins')}
        spark={spark(trends.paid, word('figure.trend_paid'))}
      />
      <Figure
        label={networkLabel(network.hash_rate_millis)}
        value={hashRate(network.hash_rate)}
        note={word(network.synced ? 'figure.height' : 'figure.not_synced', { height: count(network.height) })}
        spark={spark(trends.difficulty, word('figure.trend_difficulty'))}
      />
    </div>
  );
}
