/** What a miner was credited, a bar for each day. */

import { useMemo } from 'preact/hooks';
import type { EarningsDocument } from '../../pool/api/documents.ts';
import { useDocument } from '../data/hooks.ts';
import { date, roundedCoins } from '../format.ts';
import { Placeholder } from '../view/parts.tsx';
import { word } from '../words/language.ts';
import { Chart } from './chart.tsx';

const ATOMS = 100_000_000;
/** The middle of a day in UTC is the same date for nearly all readers. */
const HALF_DAY = 43_200_000;

const inCoins = (coins: number): string => roundedCoins(BigInt(Math.round(coins * ATOMS)));

export function Earnings({ path }: { path: string }) {
  const { data, error } = useDocument<EarningsDocument>(`${path}/earnings`, 60_000);
  const points = useMemo(
    () =>
      (data?.days ?? []).map(({ at_millis, amount }) => ({
        at_millis: at_millis + HALF_DAY,
        value: Number(amount) / ATOMS,
      })),
    [data],
  );
  const isEmpty = points.every(({ value }) => value === 0);
  return (
    <section class="card">
      <h2>{word('earned.title')}</h2>
      {isEmpty ? (
        <Placeholder error={error} loading={data === undefined} empty={word('earned.none')} />
      ) : (
        <>
          <Chart points={points} label={word('earned.label')} write={inCoins} when={date} bars />
          <p class="note">{word('earned.note')}</p>
        </>
      )}
    </section>
  );
}
