/** The pool's terms, a calculator, and explanations of the terms used. */
import { useRef, useState } from 'preact/hooks';
import type { PoolDocument } from '../../pool/api/documents.ts';
import { usePace } from '../data/pace.ts';
import { earnedPerDay, RATE_UNITS, type RateUnit } from '../earnings.ts';
import { FactList, type Facts } from '../explorer/links.tsx';
import { count, duration, feeText, MODES, minimumText, roundedCoins, windowText } from '../format.ts';
import { linkTo } from '../router.ts';

export function Terms({ pool }: { pool: PoolDocument }) {
  const pace = usePace();
  const facts: Facts = [
    ...pool.services.map((one) => [`Fee, ${MODES[one.service]}`, feeText(one, pool, pace)] as [string, string]),
    ...pool.services
      .filter(({ service }) => service === 'pplns')
      .flatMap((one): [string, string][] => {
        const text = windowText(one, pool, pace);
        return text === undefined ? [] : [[`Window, ${MODES[one.service]}`, text]];
      }),
    ['Minimum payout', minimumText(pool)],
    ['Payouts', `every ${duration(pool.payouts.interval_seconds)}`],
    ['Credited', `one slice of ${count(pool.slice_cuts)} cuts at a time, once the chain has paid for its blocks`],
    ['Account', 'none: all you need is the address you mine to'],
  ];
  return (
    <section class="card">
      <h2>Terms</h2>
      <FactList facts={facts} />
    </section>
  );
}

const DAYS = [
  ['a day', 1n],
  ['a week', 7n],
  ['30 days', 30n],
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
      <h2>What would I earn?</h2>
      <form class="row" onSubmit={(event) => event.preventDefault()}>
        <label class="grow">
          Hash rate
          <input
            inputMode="decimal"
            value={rate}
            aria-invalid={!(hashes > 0)}
            aria-describedby={hashes > 0 ? undefined : 'earned'}
            onInput={(event) => entered(setRate)(event.currentTarget.value)}
          />
        </label>
        <label>
          Unit
          <select value={unit} onChange={(event) => entered(setUnit)(event.currentTarget.value as RateUnit)}>
            {Object.keys(RATE_UNITS).map((name) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        </label>
        <label>
          Mode
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
          <p class="note">
            {hashes > 0 ? 'The network’s figures are not available yet.' : 'Enter a hash rate, such as 10.'}
          </p>
        ) : (
          <FactList facts={DAYS.map(([name, days]) => [`In ${name}`, `about ${roundedCoins(perDay * days)} coins`])} />
        )}
      </div>
      <p class="note">
        At the current difficulty, after the fee. This is an average: solo pays rarely but in full, PPLNS often and in
        small parts.
      </p>
    </section>
  );
}

/** Terms used on the pages, each explained in two sentences. */
const QUESTIONS: readonly (readonly [string, string])[] = [
  [
    'What do I need to start?',
    'An address on this network and the miner program, or just this browser: the page ‘Mine here’ makes an address and mines with it. There is no account and no password.',
  ],
  [
    'What is a share?',
    'A hash that is good enough to prove work, but usually not good enough for a block. Shares are how the pool measures each miner’s work.',
  ],
  [
    'What is PPLNS, and what is solo?',
    'With PPLNS the reward of each block, less the fee, is divided among recent miners in proportion to their work. With solo the finder gets the whole reward, less the fee.',
  ],
  [
    'What are effort and luck?',
    'Effort is the work since the last block, compared with what a block takes on average. Luck is the number of blocks found divided by the number expected: above 100 % is more than expected.',
  ],
  [
    'What is a slice?',
    'A cut is one step of the chain, like a block of other chains. A slice is a run of cuts whose blocks are credited together, once the chain has paid for them.',
  ],
  [
    'When am I paid?',
    'In the next round of payouts after your balance has reached the minimum. The miner’s page shows how close it is.',
  ],
  [
    'Why does my miner show a different hash rate?',
    'The pool sees only shares, and counts their work over ten minutes, an hour or a day. Over ten minutes, chance alone can change the figure by a tenth or more.',
  ],
  [
    'How do I know that the pool pays what it owes?',
    'Every credit has a proof, which ‘Check my share’ on the miner’s page checks in your browser. The miner program also checks the books while it runs.',
  ],
];

export const Questions = () => (
  <section class="card">
    <h2>Questions</h2>
    {QUESTIONS.map(([question, answer]) => (
      <details key={question}>
        <summary>{question}</summary>
        <p>{answer}</p>
      </details>
    ))}
    <p>
      <a href={linkTo('connect')}>Connect a miner</a>
    </p>
  </section>
);
