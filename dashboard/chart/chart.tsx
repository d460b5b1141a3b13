/** A line over time (uPlot), redrawn when data, size or theme change, with the newest figures as text for screen readers. */
import { useEffect, useRef } from 'preact/hooks';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import { DAY_SECONDS, hashRate, time } from '../format.ts';
import { THEME_EVENT } from '../theme.ts';
import { barTicks, labelSpace, type Point, pointText, timeLabels, timeTicks, valueSpace } from './chart-points.ts';

const colour = (name: string) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const HEIGHT = 220;
const POINTS_TOLD = 12;

/** With fewer points than this a line alone would be invisible or mislead: the points themselves are drawn. */
const FEW = 30;

/** How much of its room a bar takes, and its most pixels. */
const BAR = { part: 0.7, widest: 60 } as const;

type Range = { readonly from: number; readonly to: number };
type Look = {
  readonly width: number;
  readonly height: number;
  readonly few: boolean;
  readonly range: Range | undefined;
  readonly bars: boolean;
};

function options(
  { width, height, few, range, bars }: Look,
  write: (value: number) => string,
  onPoint: (index: number | null | undefined) => void,
): uPlot.Options {
  const axis = { stroke: colour('--soft'), grid: { stroke: colour('--line'), width: 1 }, ticks: { show: false } };
  return {
    width,
    height,
    cursor: { y: false },
    hooks: { setCursor: [(plot) => onPoint(plot.cursor.idx)] },
    legend: { show: false },
    scales: {
      ...(range === undefined ? {} : { x: { range: () => [range.from, range.to] } }),
      y: { range: (_, __, max) => [0, max > 0 ? max * 1.1 : 1] },
    },
    axes: [
      {
        ...axis,
        size: 30,
        splits: (plot, __, from, to, apart) =>
          bars ? barTicks([...plot.data[0]], plot.width) : timeTicks(from, to, apart),
        space: (_, __, from, to, plotted) => labelSpace(to - from, plotted),
        values: (_, ticks, __, ___, apart) => onlyOnce(timeLabels(ticks, bars ? DAY_SECONDS : apart)),
      },
      {
        ...axis,
        size: (_, labels) => valueSpace(labels ?? []),
        space: 40,
        values: (_, ticks) => onlyOnce(ticks.map((tick) => write(tick))),
      },
    ],
    series: [
      {},
      {
        stroke: colour('--chart'),
        fill: colour('--chart-fill'),
        width: 2,
        points: { show: few && !bars, size: 6 },
        spanGaps: false,
        ...(bars && uPlot.paths.bars ? { paths: uPlot.paths.bars({ size: [BAR.part, BAR.widest] }) } : {}),
      },
    ],
  };
}

/** Small values, and times within a second, round to the same text: the first line of each has it. */
const onlyOnce = (labels: readonly string[]): string[] =>
  labels.map((label, i) => (i > 0 && labels[i - 1] === label ? '' : label));

/** Seconds shown before the first point of a chart that is younger than its range. */
const YOUNG = 60;

/** From half a bar's room before the first to half of it after the last: neither is cut off. */
function aroundBars(points: readonly Point[]): Range {
  const [first, second] = points.map(({ at_millis }) => at_millis / 1000);
  const [from, half] = [first ?? 0, ((second ?? (first ?? 0) + DAY_SECONDS) - (first ?? 0)) / 2];
  return { from: from - half, to: (points.at(-1)?.at_millis ?? 0) / 1000 + half };
}

/** `hours`: the axis ends now and reaches back that far, or to the first point; without it, it fits the points. */
export function Chart({
  points,
  label,
  hours,
  write = hashRate,
  when = time,
  bars = false,
  height = HEIGHT,
}: {
  points: readonly Point[];
  label: string;
  hours?: number;
  write?: (value: number) => string;
  /** The time of a point in words. */
  when?: (millis: number) => string;
  /** For sums of times that are apart, such as days. */
  bars?: boolean;
  height?: number;
}) {
  const place = useRef<HTMLDivElement>(null);
  const told = useRef<HTMLParagraphElement>(null);
  useEffect(() => {
    const element = place.current;
    if (element === null) return;
    const data: uPlot.AlignedData = [points.map((p) => p.at_millis / 1000), points.map((p) => p.value)];
    const width = () => element.clientWidth || 300;
    const to = Date.now() / 1000;
    const from = Math.max(to - (hours ?? 0) * 3600, (points[0]?.at_millis ?? 0) / 1000 - YOUNG);
    const range = bars ? aroundBars(points) : hours === undefined ? undefined : { from, to };
    const look = { height, few: points.length < FEW, range, bars };
    // The point below the pointer or finger, else the newest.
    const tell = (index: number | null | undefined) => {
      const point = points[index ?? points.length - 1];
      if (told.current !== null) told.current.textContent = point === undefined ? '' : pointText(point, write, when);
    };
    tell(null);
    const draw = () => new uPlot(options({ width: width(), ...look }, write, tell), data, element);
    let plot = draw();
    const redraw = () => {
      plot.destroy();
      plot = draw();
    };
    const size = new ResizeObserver(() => plot.setSize({ width: width(), height }));
    size.observe(element);
    const theme = matchMedia('(prefers-color-scheme: dark)');
    theme.addEventListener('change', redraw);
    addEventListener(THEME_EVENT, redraw);
    return () => {
      size.disconnect();
      theme.removeEventListener('change', redraw);
      removeEventListener(THEME_EVENT, redraw);
      plot.destroy();
    };
  }, [points, hours, write, when, bars, height]);
  return (
    <figure>
      <p class="note told" ref={told} aria-hidden="true" />
      <div class="chart" ref={place} aria-hidden="true" />
      <figcaption class="hidden-text">
        {label}:{' '}
        {points
          .slice(-POINTS_TOLD)
          .map((point) => `${when(point.at_millis)} ${point.value === null ? '–' : write(point.value)}`)
          .join('; ')}
      </figcaption>
    </figure>
  );
}
