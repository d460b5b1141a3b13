/** The data of a chart: points in the middle of their time range, zeros where nothing happened, labels that fit. */
import type { ChartDocument, HistoryDocument } from '../../pool/api/documents.ts';

/** `value` null is a gap in the line. */
export type Point = { readonly at_millis: number; readonly value: number | null };

/** More than any chart has: a pool's answer cannot make the page work for long. */
const MOST_POINTS = 5_000;

/** Milliseconds after which the work of a time that is over has reached the pool's answer. */
const LATEST = 30_000;

type Row = { readonly at_millis: number };

/**
 * Times without a row have nothing to show: `absent`, up to the last one that is over. A line from the point before to the point after
 * would claim that work went on.
 */
export function withGaps<R extends Row>(
  rows: readonly R[],
  secondsPerPoint: number,
  nowMillis: number,
  absent: number | null,
  value: (row: R) => Point,
): Point[] {
  const step = secondsPerPoint * 1000;
  const first = rows[0];
  if (first === undefined || step <= 0) return [];
  const byStart = new Map(rows.map((row) => [row.at_millis, row]));
  const last = rows.at(-1)?.at_millis ?? 0;
  const points: Point[] = [];
  for (
    let at = first.at_millis;
    points.length < MOST_POINTS && (at <= last || at + step + LATEST <= nowMillis);
    at += step
  ) {
    const row = byStart.get(at);
    points.push(row === undefined ? { at_millis: at + step / 2, value: absent } : value(row));
  }
  return points;
}

export type ChartValue = 'hash_rate' | 'workers' | 'shares';

/** Shares are those a minute, so that a point of seconds and one of an hour can be compared. */
export const chartPoints = (chart: ChartDocument, nowMillis: number, what: ChartValue): Point[] =>
  withGaps(chart.points, chart.seconds_per_point, nowMillis, 0, (row) => ({
    at_millis: row.at_millis + row.seconds * 500,
    value: what === 'shares' ? ((row.shares ?? 0) * 60) / Math.max(1, row.seconds) : (row[what] ?? 0),
  }));

export type HistoryValue = 'blocks' | 'luck' | 'block_work' | 'paid';

const ATOMS = 100_000_000;
/** Luck and difficulty are known where there are blocks: elsewhere the line has a gap. */
const ABSENT: Readonly<Record<HistoryValue, number | null>> = { blocks: 0, paid: 0, luck: null, block_work: null };

export const historyPoints = (history: HistoryDocument, nowMillis: number, what: HistoryValue): Point[] =>
  withGaps(history.points, history.seconds_per_point, nowMillis, ABSENT[what], (row) => {
    const value = row[what];
    return {
      at_millis: row.at_millis + history.seconds_per_point * 500,
      value: value === null ? null : what === 'paid' ? Number(value) / ATOMS : Number(value),
    };
  });

const CLOCK = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit' });
const SECONDS = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit', second: '2-digit' });
const DATE = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short' });
const DAY_SECONDS = 86_400;
/** Pixels between two labels of the time: the longest of them and room around it. */
export const LABEL_SPACE = 76;

/** Labels of the time axis, one line each: the clock, and the date where a day begins. `ticks` and `apart` are seconds. */
export function timeLabels(ticks: readonly number[], apart: number): string[] {
  return ticks.map((tick, i) => {
    const millis = tick * 1000;
    const before = ticks[i - 1];
    const isNewDay = before !== undefined && DATE.format(before * 1000) !== DATE.format(millis);
    if (apart >= DAY_SECONDS || isNewDay) return DATE.format(millis);
    return (apart < 60 ? SECONDS : CLOCK).format(millis);
  });
}
