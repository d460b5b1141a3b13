/** A line over time (uPlot), redrawn when data, size or theme change, with the newest figures as text for screen readers. */
import { useEffect, useRef } from 'preact/hooks';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import { hashRate, time } from '../format.ts';

export type Point = { readonly at_millis: number; readonly hash_rate: number };

const colour = (name: string) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const HEIGHT = 220;
const POINTS_TOLD = 12;

function options(width: number): uPlot.Options {
  const axis = { stroke: colour('--soft'), grid: { stroke: colour('--line'), width: 1 }, ticks: { show: false } };
  return {
    width,
    height: HEIGHT,
    cursor: { y: false },
    legend: { show: false },
    scales: { y: { range: (_, __, max) => [0, max > 0 ? max * 1.1 : 1] } },
    axes: [axis, { ...axis, size: 90, values: (_, ticks) => ticks.map((tick) => hashRate(tick)) }],
    series: [
      {},
      { stroke: colour('--chart'), fill: colour('--chart-fill'), width: 2, points: { show: false }, spanGaps: false },
    ],
  };
}

export function Chart({ points, label }: { points: readonly Point[]; label: string }) {
  const place = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const element = place.current;
    if (element === null) return;
    const data: uPlot.AlignedData = [points.map((p) => p.at_millis / 1000), points.map((p) => p.hash_rate)];
    const width = () => element.clientWidth || 300;
    let plot = new uPlot(options(width()), data, element);
    const redraw = () => {
      plot.destroy();
      plot = new uPlot(options(width()), data, element);
    };
    const size = new ResizeObserver(() => plot.setSize({ width: width(), height: HEIGHT }));
    size.observe(element);
    const theme = matchMedia('(prefers-color-scheme: dark)');
    theme.addEventListener('change', redraw);
    return () => {
      size.disconnect();
      theme.removeEventListener('change', redraw);
      plot.destroy();
    };
  }, [points]);
  return (
    <figure>
      <div class="chart" ref={place} aria-hidden="true" />
      <figcaption class="hidden-text">
        {label}:{' '}
        {points
          .slice(-POINTS_TOLD)
          .map((point) => `${time(point.at_millis)} ${hashRate(point.hash_rate)}`)
          .join('; ')}
      </figcaption>
    </figure>
  );
}
