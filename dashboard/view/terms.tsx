/** The pool's terms, a calculator, and explanations of the terms used. */

import { useRef, useState } from 'preact/hooks';
import type { PoolDocument } from '../../pool/api/documents.ts';
import { usePace } from '../data/pace.ts';
import { earnedPerDay, RATE_UNITS, type RateUnit } from '../earnings.ts';
import { FactList, type Facts } from '../explorer/links.tsx';
import { count, duration, feeText, MODES, minimumText, roundedCoins, windowText } from '../format.ts';
import { linkTo } from '../router.ts';
import { type WordKey, word } from '../words/language.ts';

export function Terms({ pool }: { pool: PoolDocument }) {
  const pace = usePace();
  const facts: Facts = [
    ...pool.services.map(
      (one) => [word('terms.fee', { mode: MODES[one.service] }), feeText(one, pool, pace)] as [string, string],
    ),
    ...pool.services
      .filter(({ service }) => service === 'pplns')
      .flatMap((one): [string, string][] => {
        const text = windowText(one, pool, pace);
        return text === undefined ? [] : [[word('terms.window', { mode: MODES[one.service] }), text]];
      }),
    [word('terms.minimum'), minimumText(pool)],
    [word('terms.payouts'), word('terms.every', { time: duration(pool.payouts.interval_seconds) })],
    [word('terms.credited'), word('terms.credited_how', { count: count(pool.slice_cuts) })],
    [word('terms.account'), word('terms.no_account')],
  ];
  return (
    <section class="card">
      <h2>{word('terms.title')}</h2>
      <FactList facts={facts} />
    </section>
  );
}

const DAYS = [
  ['earn.day', 1n],
  ['earn.week', 7n],
  ['earn.month', 30n],
] as const;

export function Calculator({ pool }: { pool: PoolDocument }) {
  const latest = usePace();
  // The result is read aloud when it changes, so it changes with what is entered, not with each reading of the pace.
  const used = useRef(latest);
  used.current ??= latest;
  const pace = used.current;
  const entered =
    <V,>(set: (value: V) => void) =>
    (value: V) => {
      used.current = latest;
      set(value);
    };
  const [rate, setRate] = useState('10');
  const [unit, setUnit] = useState<RateUnit>('MH/s');
  const [service, setService] = useState('pplns');
  const fee = pool.services.find((one) => one.service === service)?.fee_ppm ?? 0;
  const hashes = Number(rate.replace(',', '.')) * RATE_UNITS[unit];
  const perDay = pace === undefined || !(hashes > 0) ? undefined : earnedPerDay(hashes, fee, pace);
  return (
    <section class="card">
      <h2>{word('earn.title')}</h2>
      <form class="row" onSubmit={(event) => event.preventDefault()}>
        <label class="grow">
          {word('earn.rate')}
          <input
            inputMode="decimal"
            value={rate}
            aria-invalid={!(hashes > 0)}
            aria-describedby={hashes > 0 ? undefined : 'earned'}
            onInput={(event) => entered(setRate)(event.currentTarget.value)}
          />
        </label>
        <label>
          {word('earn.unit')}
          <select value={unit} onChange={(event) => entered(setUnit)(event.currentTarget.value as RateUnit)}>
            {Object.keys(RATE_UNITS).map((name) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        </label>
        <label>
          {word('earn.mode')}
          <select value={service} onChange={(event) => entered(setService)(event.currentTarget.value)}>
            {pool.services.map((one) => (
              <option key={one.service} value={one.service}>
                {MODES[one.service]}
              </option>
            ))}
          </select>
        </label>
      </form>
      <div id="earned" role="status">
        {perDay === undefined ? (
          <p class="note">{word(hashes > 0 ? 'earn.no_figures' : 'earn.enter')}</p>
        ) : (
          <FactList
            facts={DAYS.map(([name, days]) => [word(name), word('earn.about', { coins: roundedCoins(perDay * days) })])}
          />
        )}
      </div>
      <p class="note">{word('earn.average')}</p>
    </section>
  );
}

/** Terms used on the pages, each explained in two sentences. */
const QUESTIONS: readonly (readonly [WordKey, WordKey])[] = [
  ['ask.start', 'ask.start_answer'],
  ['ask.share', 'ask.share_answer'],
  ['ask.modes', 'ask.modes_answer'],
  ['ask.luck', 'ask.luck_answer'],
  ['ask.slice', 'ask.slice_answer'],
  ['ask.paid', 'ask.paid_answer'],
  ['ask.rate', 'ask.rate_answer'],
  ['ask.honest', 'ask.honest_answer'],
];

export const Questions = () => (
  <section class="card">
    <h2>{word('ask.title')}</h2>
    {QUESTIONS.map(([question, answer]) => (
      <details key={question}>
        <summary>{word(question)}</summary>
        <p>{word(answer)}</p>
      </details>
    ))}
    <p>
      <a href={linkTo('connect')}>{word('connect.title')}</a>
    </p>
  </section>
);
