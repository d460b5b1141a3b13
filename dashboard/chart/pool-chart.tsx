/** The pool over time: hash rate, workers, shares, blocks, luck, payments, and the network's difficulty at the pool's blocks. */

import { useMemo, useRef, useState } from 'preact/hooks';
import type { ChartDocument, HistoryDocument } from '../../pool/api/documents.ts';
import { useDocument } from '../data/hooks.ts';
import { count, hashRate, percent } from '../format.ts';
import { Placeholder } from '../view/parts.tsx';
import { type WordKey, word } from '../words/language.ts';
import { Chart } from './chart.tsx';
import { type ChartValue, chartPoints, type HistoryValue, historyPoints, hoursOf, type Point } from './chart-points.ts';

const SINCE_OPENED = 360;
const HOURS = [1, 6, 24, 168, 720];

const number = (value: number): string => count(Math.round(value * 100) / 100);
/** Hashes that a block takes; the units are those of rates without the second. */
const hashes = (value: number): string => hashRate(value).replace('H/s', 'H');
const luck = (value: number): string => percent(value);

type Kind =
  | { readonly from: 'chart'; readonly what: ChartValue; readonly title: WordKey; readonly write: typeof hashRate }
  | { readonly from: 'history'; readonly what: HistoryValue; readonly title: WordKey; readonly write: typeof hashRate };

const KINDS: readonly [Kind, ...Kind[]] = [
  { from: 'chart', what: 'hash_rate', title: 'chart.rate', write: hashRate },
  { from: 'chart', what: 'workers', title: 'chart.workers', write: number },
  { from: 'chart', what: 'shares', title: 'chart.shares', write: number },
  { from: 'history', what: 'blocks', title: 'chart.blocks', write: number },
  { from: 'history', what: 'luck', title: 'chart.luck', write: luck },
  { from: 'history', what: 'paid', title: 'chart.paid', write: number },
  { from: 'history', what: 'block_work', title: 'chart.difficulty', write: hashes },
];

/** The hash rate ends with what the pool said since the page was opened: the first minutes are not an empty frame. */
export function PoolChart({ rate, since }: { rate: number; since: number | null }) {
  const [hours, setHours] = useState(() => hoursOf(since, Date.now()));
  const [kind, setKind] = useState<Kind>(KINDS[0]);
  const every = hours === 1 ? 10_000 : 60_000;
  const chart = useDocument<ChartDocument>(kind.from === 'chart' ? `pool/chart?hours=${hours}` : undefined, every);
  const history = useDocument<HistoryDocument>(
    kind.from === 'history' ? `pool/history?hours=${hours}` : undefined,
    60_000,
  );
  const seen = useRef<Point[]>([]);
  const points = useMemo(() => {
    const now = Date.now();
    seen.current = [...seen.current, { at_millis: now, value: rate }].slice(-SINCE_OPENED);
    if (kind.from === 'history') return history.data === undefined ? [] : historyPoints(history.data, now, kind.what);
    if (chart.data === undefined) return [];
    const stored = chartPoints(chart.data, now, kind.what);
    if (kind.what !== 'hash_rate') return stored;
    const newest = stored.at(-1)?.at_millis ?? 0;
    return [...stored, ...seen.current.filter(({ at_millis }) => at_millis > newest)];
  }, [chart.data, history.data, kind, rate]);
  const loaded = kind.from === 'chart' ? chart : history;
  return (
    <section class="card">
      <div class="row head">
        <h2>{word(kind.title)}</h2>
        <label class="inline">
          <span class="word-of-choice">{word('chart.show')}</span>
          <select
            value={kind.what}
            onChange={(event) => setKind(KINDS.find(({ what }) => what === event.currentTarget.value) ?? KINDS[0])}
          >
            {KINDS.map(({ what, title }) => (
              <option key={what} value={what}>
                {word(title)}
              </option>
            ))}
          </select>
        </label>
        <Hours hours={hours} onChange={setHours} />
      </div>
      {points.length === 0 || (kind.what === 'hash_rate' && rate === 0 && chart.data?.points.length === 0) ? (
        <Placeholder
          error={loaded.error}
          loading={loaded.data === undefined}
          empty={kind.from === 'chart' ? word('chart.no_shares') : word('chart.no_blocks')}
        />
      ) : (
        <Chart
          points={points}
          hours={hours}
          label={word('chart.of_pool', { figure: word(kind.title) })}
          write={kind.write}
        />
      )}
    </section>
  );
}

function rangeText(hours: number): string {
  if (hours === 1) return word('chart.hour');
  return hours < 48 ? word('chart.hours', { count: hours }) : word('chart.days', { count: hours / 24 });
}

export function Hours({ hours, onChange }: { hours: number; onChange(hours: number): void }) {
  return (
    <label class="inline">
      <span class="word-of-choice">{word('chart.range')}</span>
      <select value={hours} onChange={(event) => onChange(Number(event.currentTarget.value))}>
        {HOURS.map((value) => (
          <option key={value} value={value}>
            {rangeText(value)}
          </option>
        ))}
      </select>
    </label>
  );
}
