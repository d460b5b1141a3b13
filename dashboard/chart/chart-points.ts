/** The data of a chart: points in the middle of their time range, zeros where nothing happened, labels that fit. */
import type { ChartDocument, HistoryDocument } from '../../pool/api/documents.ts';
import { clock, clockSeconds, time, timeFormat } from '../format.ts';

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

const HOUR_MILLIS = 3_600_000;

/** The last hour is the most that a young pool has to show. */
export const hoursOf = (sinceMillis: number | null, now: number): number =>
  sinceMillis !== null && now - sinceMillis < HOUR_MILLIS ? 1 : 24;

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

const date = timeFormat({ day: 'numeric', month: 'short' });
const DAY_SECONDS = 86_400;
/** Pixels of a label's character, and around a label. */
const CHARACTER = 7;
const ROOM = 20;
const [CLOCK_SPACE, SECONDS_SPACE] = ['00:00', '00:00:00'].map((label) => label.length * CHARACTER + ROOM / 2) as [
  number,
  number,
];
const WIDE_SPACE = 76;
const FEWEST_LABELS = 3;

/** Pixels between two labels of the time, of `shown` seconds on `plotted` pixels: wide, but not so wide that there would be one label alone. */
export function labelSpace(shown: number, plotted: number): number {
  const minute = (60 * plotted) / shown;
  // Seconds take longer labels. Where those have no room, a label is not nearer than a minute.
  const least = minute >= 2 * SECONDS_SPACE ? SECONDS_SPACE : Math.max(CLOCK_SPACE, minute / 2 + 1);
  return Math.max(least, Math.min(WIDE_SPACE, plotted / (FEWEST_LABELS + 1)));
}

/** Pixels for the labels of the values: a narrow screen has none to spare. */
export const valueSpace = (labels: readonly string[]): number =>
  ROOM + CHARACTER * labels.reduce((longest, label) => Math.max(longest, label.length), 4);

/** Midnights by the reader's clock: days are not equally long everywhere. */
function midnights(from: number, to: number, daysApart: number): number[] {
  const ticks: number[] = [];
  const day = new Date(from * 1000);
  for (day.setHours(24, 0, 0, 0); day.getTime() <= to * 1000; day.setDate(day.getDate() + daysApart))
    ticks.push(day.getTime() / 1000);
  return ticks;
}

function roundTimes(from: number, to: number, apart: number): number[] {
  const shift = new Date(from * 1000).getTimezoneOffset() * 60;
  const first = Math.ceil((from - shift) / apart) * apart + shift;
  return Array.from({ length: Math.max(0, Math.floor((to - first) / apart) + 1) }, (_, i) => first + i * apart);
}

/** Where the two labels of a chart stand that no two round times lie in, as a part of it from either end. */
const INSET = 0.15;

/** Times to be labelled, all within the chart, and two at least. All are seconds. */
export function timeTicks(from: number, to: number, apart: number): number[] {
  const ticks =
    apart >= DAY_SECONDS ? midnights(from, to, Math.round(apart / DAY_SECONDS)) : roundTimes(from, to, apart);
  const inset = (to - from) * INSET;
  return ticks.length >= 2 ? ticks : [Math.round(from + inset), Math.round(to - inset)];
}

/** Bars to be labelled, the newest first of all: as many as have room, of `times` in seconds. */
export function barTicks(times: readonly number[], plotted: number): number[] {
  const every = Math.ceil((times.length * WIDE_SPACE) / plotted);
  return times.filter((_, i) => (times.length - 1 - i) % every === 0);
}

/** Labels of the time axis, one line each: the clock, and the date where a day begins. `ticks` and `apart` are seconds. */
export function timeLabels(ticks: readonly number[], apart: number): string[] {
  const isFine = apart < 60 || ticks.some((tick) => tick % 60 !== 0);
  return ticks.map((tick, i) => {
    const millis = tick * 1000;
    const before = ticks[i - 1];
    const isNewDay = before !== undefined && date(before * 1000) !== date(millis);
    if (apart >= DAY_SECONDS || isNewDay) return date(millis);
    return (isFine ? clockSeconds : clock)(millis);
  });
}

/** One point in words. */
export const pointText = (
  { at_millis: at, value }: Point,
  write: (value: number) => string,
  when: (millis: number) => string = time,
): string => `${when(at)}: ${value === null ? '–' : write(value)}`;

/** Of the small line below a figure. With fewer points it would say nothing. */
export const SPARK = { width: 100, height: 24, edge: 2, fewest: 6 } as const;

/** The line as SVG has it, from 0 at the bottom; gaps are passed over. Undefined where there is no line. */
export function sparkLine(points: readonly Point[]): string | undefined {
  const known = points.flatMap(({ at_millis: at, value }) => (value === null ? [] : [{ at, value }]));
  const [first, last] = [known[0]?.at ?? 0, known.at(-1)?.at ?? 0];
  const highest = Math.max(0, ...known.map(({ value }) => value));
  if (known.length < SPARK.fewest || highest === 0 || last <= first) return undefined;
  const x = (at: number) => ((at - first) / (last - first)) * SPARK.width;
  const y = (value: number) => SPARK.height - SPARK.edge - (value / highest) * (SPARK.height - 2 * SPARK.edge);
  return known.map(({ at, value }) => `${x(at).toFixed(1)},${y(value).toFixed(1)}`).join(' ');
}
