/** The pool over time as only its operator sees it: refused shares, the books' lag, payouts under way, the wallet's balance, connections of each front end. */
import { useMemo, useState } from 'preact/hooks';
import type { OperatorHistoryDocument } from '../../pool/api/operator/operator-documents.ts';
import { Chart } from '../chart/chart.tsx';
import { hoursOf, withGaps } from '../chart/chart-points.ts';
import { Hours } from '../chart/pool-chart.tsx';
import { count, roundedCoins, smallPercent } from '../format.ts';
import { word } from '../words/language.ts';
import { useOperated } from './operated.ts';

type Row = OperatorHistoryDocument['points'][number];
type Figure = {
  readonly title: string;
  readonly write: (value: number) => string;
  readonly value: (row: Row) => number | null;
};

/** Noted twice a minute. */
const READ_MILLIS = 30_000;
const HEIGHT = 150;
const ATOMS = 100_000_000;

const whole = (value: number): string => (Number.isInteger(value) ? count(value) : '');
const inCoins = (coins: number): string => roundedCoins(BigInt(Math.round(coins * ATOMS)));

function refusedPart({ accepted, refused }: Row): number | null {
  const all = refused.reduce((sum, one) => sum + one.count, 0);
  return all + accepted === 0 ? null : all / (all + accepted);
}

const figures = (rows: readonly Row[]): readonly Figure[] => [
  { title: word('operator.refused_shares'), write: smallPercent, value: refusedPart },
  { title: word('operator.lag'), write: whole, value: (row) => row.books_behind },
  { title: word('operator.sheet_in_flight'), write: whole, value: (row) => row.payouts_open },
  {
    title: word('operator.wallet_coins'),
    write: inCoins,
    value: (row) => (row.wallet_spendable === null ? null : Number(row.wallet_spendable) / ATOMS),
  },
  ...frontEndsOf(rows).map((name) => ({
    title: word('operator.front_end', { name }),
    write: whole,
    value: ({ front_ends: all }: Row) => all.find((one) => one.name === name)?.connections ?? null,
  })),
];

/** More would only be a long page: the newest ones. */
const MOST_FRONT_ENDS = 12;

const frontEndsOf = (rows: readonly Row[]): readonly string[] =>
  [...new Set(rows.toReversed().flatMap(({ front_ends: all }) => all.map(({ name }) => name)))]
    .slice(0, MOST_FRONT_ENDS)
    .sort();

/** Each cause as the API and the metrics call it. */
function verdictsText(rows: readonly Row[]): string {
  const totals = new Map<string, number>();
  for (const { result, count: more } of rows.flatMap(({ refused }) => refused))
    totals.set(result, (totals.get(result) ?? 0) + more);
  const accepted = rows.reduce((sum, row) => sum + row.accepted, 0);
  const refused = [...totals].sort(([, a], [, b]) => b - a);
  return [[word('state.accepted'), accepted] as const, ...refused]
    .map(([name, times]) => `${name} ${count(times)}`)
    .join('; ');
}

export function BooksOverTime({ token, since }: { token: string; since: number | null }) {
  const [hours, setHours] = useState(() => hoursOf(since, Date.now()));
  const history = useOperated<OperatorHistoryDocument>(token, `history?hours=${hours}`, 0, READ_MILLIS);
  const charts = useMemo(() => {
    if (history === undefined) return [];
    const half = history.seconds_per_point * 500;
    const now = Date.now();
    return figures(history.points).map((figure) => ({
      ...figure,
      points: withGaps(history.points, history.seconds_per_point, now, null, (row) => ({
        // The time that is not over is at its beginning.
        at_millis: Math.min(row.at_millis + half, now),
        value: figure.value(row),
      })),
    }));
  }, [history]);
  return (
    <section class="card">
      <div class="row head">
        <h2>{word('operator.history')}</h2>
        <Hours hours={hours} onChange={setHours} />
      </div>
      {history === undefined || history.points.length === 0 ? (
        <p class="note">{word(history === undefined ? 'lazy.loading' : 'operator.history_none')}</p>
      ) : (
        <>
          <div class="charts">
            {charts.map(({ title, points, write }) => (
              <div key={title}>
                <h3>{title}</h3>
                <Chart points={points} hours={hours} label={title} write={write} height={HEIGHT} />
              </div>
            ))}
          </div>
          <p class="note">{word('operator.verdicts', { list: verdictsText(history.points) })}</p>
        </>
      )}
    </section>
  );
}
