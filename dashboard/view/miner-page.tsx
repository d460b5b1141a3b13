/** One miner by address: workers, chart, balance, payments, and the check of its share of each credit list. */

import { useMemo, useState } from 'preact/hooks';
import type {
  ChartDocument,
  CreditDocument,
  CreditsDocument,
  MinerDocument,
  NotificationsDocument,
  PoolDocument,
  RatesDocument,
  WorkerDocument,
  WorkersDocument,
} from '../../pool/api/documents.ts';
import { formatCoins } from '../../protocol/amount.ts';
import { Chart } from '../chart/chart.tsx';
import { chartPoints, hoursOf } from '../chart/chart-points.ts';
import { Earnings } from '../chart/earnings-chart.tsx';
import { Hours } from '../chart/pool-chart.tsx';
import { query } from '../data/client.ts';
import { type CsvColumn, csvTime } from '../data/csv.ts';
import { type Loaded, useDocument, useNow } from '../data/hooks.ts';
import { knownAddress } from '../data/known-address.ts';
import { usePace } from '../data/pace.ts';
import { payoutProgress, secondsToPayout } from '../earnings.ts';
import {
  ago,
  coins,
  count,
  DAY_SECONDS,
  duration,
  HOUR_SECONDS,
  hashes,
  hashRate,
  MODES,
  overTime,
  percent,
  precise,
  roundedCoins,
  shortName,
  smallPercent,
} from '../format.ts';
import { NotifyMe } from '../notify/notifications.tsx';
import { linkTo, MINER_TABS, type MinerTab, minerLink } from '../router.ts';
import { MailForm } from '../threshold/mail-form.tsx';
import { ThresholdForm } from '../threshold/threshold-form.tsx';
import { WebhookForm } from '../threshold/webhook-form.tsx';
import { word, wordAround } from '../words/language.ts';
import { CsvButton } from './csv-button.tsx';
import { countedOf, longRate, perDayOf } from './miner-figures.ts';
import { BestShares, Leaders, Miners, partOfBlock, useBlockWork } from './miner-lists.tsx';
import {
  Amount,
  type Column,
  Figure,
  Pager,
  Placeholder,
  RoundedAmount,
  StartMining,
  Table,
  When,
  WholeName,
} from './parts.tsx';
import { Payments } from './payments-page.tsx';
import { CheckNode, ShareCheck } from './share-check.tsx';
import { AddressForm } from './start-mining.tsx';

const TEN_MINUTES = 600;
export function MinerPage({ address, tab = 'overview' }: { address: string | undefined; tab: MinerTab | undefined }) {
  const [typed, setTyped] = useState(address ?? knownAddress());
  return (
    <>
      <h1>{word('nav.miner')}</h1>
      <AddressForm typed={typed} onType={setTyped} label={word('place.address')} />
      {address === undefined ? (
        <>
          <p class="note">{word('miner.enter')}</p>
          <Miners />
          <Leaders />
          <BestShares />
        </>
      ) : (
        <Miner key={address} address={address} tab={tab} />
      )}
    </>
  );
}

function BestShare({ best, now }: { best: MinerDocument['best_share']; now: number }) {
  const blockWork = useBlockWork();
  if (best === null) return <Figure label={word('miner.best')} value="–" note={word('miner.best_none')} />;
  const part = partOfBlock(best.work, blockWork);
  return (
    <Figure
      label={word('miner.best')}
      value={hashes(best.work)}
      note={word('miner.best_note', {
        part,
        worker: best.worker || word('miner.no_name'),
        ago: ago(best.at_millis, now),
      })}
    />
  );
}

function Luck({ luck }: { luck: MinerDocument['luck'] }) {
  const own = luck.find(({ expected }) => expected > 0);
  if (own === undefined) return <Figure label={word('chart.luck')} value="–" note={word('miner.luck_none')} />;
  const { service, expected, found, probability } = own;
  return (
    <Figure
      label={word('chart.luck')}
      value={percent(found / expected)}
      note={word('miner.luck_note', {
        mode: MODES[service],
        found: count(found),
        expected: precise(expected, 3),
        // What is too small for a number is not impossible.
        part: smallPercent(Math.max(probability, Number.MIN_VALUE)),
      })}
    />
  );
}

const Tabs = ({ address, tab }: { address: string; tab: MinerTab }) => (
  <nav class="tabs" aria-label={word('miner.tabs')}>
    <ul>
      {MINER_TABS.map((one) => (
        <li key={one}>
          <a href={minerLink(address, one)} aria-current={one === tab ? 'page' : undefined}>
            {word(`tab.${one}`)}
          </a>
        </li>
      ))}
    </ul>
  </nav>
);

function Miner({ address, tab }: { address: string; tab: MinerTab }) {
  const path = `miners/${encodeURIComponent(address)}`;
  const { data: miner, error, reload } = useDocument<MinerDocument>(path, 10_000);
  const [cursor, setCursor] = useState<string>();
  const workers = useDocument<WorkersDocument>(`${path}/workers${query({ cursor, limit: 50 })}`, 10_000);
  const now = useNow();
  const perDay = usePerDay(miner);
  if (miner === undefined)
    return error?.status === 404 ? (
      <p role="status">
        {wordAround('miner.unknown', { connect: <a href={linkTo('connect')}>{word('miner.connect')}</a> })}
      </p>
    ) : (
      <Placeholder error={error} loading empty="" />
    );
  const counted = countedOf(miner, workers.data, cursor === undefined);
  return (
    <>
      <WholeName text={miner.address} label={word('miner.address')} />
      <Tabs address={address} tab={tab} />
      {tab === 'overview' ? (
        <>
          <div class="grid fours">
            <Figure
              label={word('figure.rate')}
              value={hashRate(counted.hash_rate.ten_minutes)}
              note={ratesNote(counted.hash_rate, miner.since_millis, now)}
            />
            <NextPayout miner={miner} perDay={perDay} />
            <Figure
              label={word('miner.earns')}
              value={perDay === undefined ? '–' : roundedCoins(perDay)}
              note={
                miner.online
                  ? word('miner.earns_note')
                  : word('miner.earns_offline', { ago: ago(counted.last_share_millis, now) })
              }
            />
            <Figure
              label={word('miner.paid')}
              value={<RoundedAmount atoms={miner.paid} />}
              note={word('miner.paid_note', {
                sent: roundedCoins(miner.in_flight),
                pending: roundedCoins(miner.pending_estimate),
              })}
            />
            <Figure
              label={word('miner.shares')}
              value={count(counted.accepted)}
              note={word('miner.shares_note', {
                stale: count(counted.stale),
                rejected: count(counted.rejected),
                ago: ago(counted.last_share_millis, now),
              })}
            />
            <BestShare best={miner.best_share} now={now} />
            <Luck luck={miner.luck} />
          </div>
          <RateChart path={path} since={miner.since_millis} title={word('chart.rate')} />
          <Earnings path={path} />
        </>
      ) : null}
      {tab === 'workers' ? (
        <Workers
          path={path}
          since={miner.since_millis}
          now={now}
          workers={workers}
          cursor={cursor}
          onMove={setCursor}
        />
      ) : null}
      {tab === 'payments' ? <Payments address={address} own /> : null}
      {tab === 'credits' ? <Credits path={path} address={address} /> : null}
      {tab === 'settings' ? (
        <>
          <NotifyMe address={miner.address} />
          <ThresholdForm address={miner.address} minimum={miner.payout_minimum} onChange={reload} />
          <NewsForms address={miner.address} now={now} />
        </>
      ) : null}
    </>
  );
}

/** The kinds of messages that the pool sends to miners. */
function NewsForms({ address, now }: { address: string; now: number }) {
  const { data } = useDocument<NotificationsDocument>(`miners/${encodeURIComponent(address)}/notifications`, 60_000);
  if (data === undefined) return null;
  return (
    <>
      {data.webhooks ? <WebhookForm address={address} states={data} now={now} /> : null}
      {data.mail ? <MailForm address={address} /> : null}
    </>
  );
}

function ratesNote(hash_rate: RatesDocument, since_millis: number, now: number): string {
  const [hour, day] = [
    overTime(word('miner.over_hour'), HOUR_SECONDS, since_millis, now),
    overTime(word('miner.over_day'), DAY_SECONDS, since_millis, now),
  ];
  return hour === day
    ? `${hashRate(hash_rate.hour)} ${hour}`
    : `${hashRate(hash_rate.hour)} ${hour}, ${hashRate(hash_rate.day)} ${day}`;
}

/** Atoms that the miner earns in a day, on average, with its rate of the last hour at the network's present pace. */
function usePerDay(miner: MinerDocument | undefined): bigint | undefined {
  const pace = usePace();
  const pool = useDocument<PoolDocument>('pool', 60_000).data;
  const fee = pool?.services.find(({ service }) => service === 'pplns')?.fee_ppm ?? 0;
  return pace === undefined || miner === undefined ? undefined : perDayOf(miner, fee, pace);
}

/** The balance on its way to the payout minimum, and when it gets there at that pace. */
function NextPayout({ miner, perDay }: { miner: MinerDocument; perDay: bigint | undefined }) {
  const [balance, minimum] = [BigInt(miner.balance), BigInt(miner.payout_minimum)];
  const seconds = secondsToPayout(balance, minimum, perDay);
  const part = payoutProgress(balance, minimum);
  const when = seconds === undefined ? 'miner.paid_at' : seconds === 0 ? 'miner.paid_at_next' : 'miner.paid_at_in';
  return (
    <Figure
      label={word('miner.balance')}
      value={<RoundedAmount atoms={miner.balance} />}
      note={
        <>
          <progress value={part} max={100} aria-label={word('miner.way', { part })} />{' '}
          {word(when, { coins: coins(miner.payout_minimum), time: duration(seconds ?? 0) })}
        </>
      }
    />
  );
}

/** `path` is that of a miner, or of one of its workers. */
function RateChart({ path, since, title }: { path: string; since: number; title: string }) {
  const [hours, setHours] = useState(() => hoursOf(since, Date.now()));
  const chart = useDocument<ChartDocument>(`${path}/chart?hours=${hours}`, hours === 1 ? 10_000 : 60_000);
  const points = useMemo(
    () => (chart.data === undefined ? [] : chartPoints(chart.data, Date.now(), 'hash_rate')),
    [chart.data],
  );
  return (
    <section class="card">
      <div class="row head">
        <h2>{title}</h2>
        <Hours hours={hours} onChange={setHours} />
      </div>
      {points.length === 0 ? (
        <Placeholder error={chart.error} loading={chart.data === undefined} empty={word('miner.no_shares')} />
      ) : (
        <Chart points={points} hours={hours} label={title} />
      )}
    </section>
  );
}

const workerPath = ({ service, name }: WorkerDocument): string =>
  `workers/${service}/${encodeURIComponent(name === '' ? '-' : name)}`;

type WorkersParts = {
  readonly path: string;
  readonly since: number;
  readonly now: number;
  readonly workers: Loaded<WorkersDocument>;
  readonly cursor: string | undefined;
  readonly onMove: (cursor: string | undefined) => void;
};

function Workers({ path, since, now, workers, cursor, onMove }: WorkersParts) {
  const [shown, setShown] = useState<WorkerDocument>();
  const columns: Column<WorkerDocument>[] = [
    {
      title: word('blocks.worker'),
      cell: (worker) => (
        <button
          type="button"
          class="link"
          aria-controls="worker-chart"
          aria-expanded={shown !== undefined && workerPath(shown) === workerPath(worker)}
          onClick={() =>
            setShown((now) => (now !== undefined && workerPath(now) === workerPath(worker) ? undefined : worker))
          }
        >
          {worker.name || word('miner.no_name')}
        </button>
      ),
    },
    { title: word('blocks.mode'), minor: true, cell: (worker) => MODES[worker.service] },
    {
      title: word('blocks.state'),
      cell: (worker) => (
        <span class={worker.online ? 'good' : 'warn'}>{word(worker.online ? 'worker.online' : 'worker.offline')}</span>
      ),
    },
    { title: word('worker.ten_minutes'), number: true, cell: (worker) => hashRate(worker.hash_rate.ten_minutes) },
    {
      title: word('worker.hour'),
      number: true,
      minor: true,
      cell: (worker) => longRate(worker.hash_rate.hour, TEN_MINUTES, since, now),
    },
    {
      title: word('worker.day'),
      number: true,
      minor: true,
      cell: (worker) => longRate(worker.hash_rate.day, HOUR_SECONDS, since, now),
    },
    { title: word('worker.accepted'), number: true, minor: true, cell: (worker) => count(worker.accepted) },
    { title: word('worker.stale'), number: true, minor: true, cell: (worker) => count(worker.stale) },
    { title: word('worker.rejected'), number: true, minor: true, cell: (worker) => count(worker.rejected) },
    { title: word('worker.last'), cell: (worker) => ago(worker.last_share_millis, now) },
  ];
  const rows = workers.data?.workers ?? [];
  return (
    <section class="card">
      <h2>{word('chart.workers')}</h2>
      {rows.length === 0 ? (
        <Placeholder
          error={workers.error}
          loading={workers.data === undefined}
          empty={
            <>
              {word('worker.none')} <StartMining />
            </>
          }
        />
      ) : (
        <Table
          caption={word('chart.workers')}
          columns={columns}
          rows={rows}
          keyOf={(worker) => `${worker.service}/${worker.name}`}
        />
      )}
      <Pager cursor={cursor} next={workers.data?.next_cursor} onMove={onMove} />
      <div id="worker-chart">
        {shown === undefined ? (
          <p class="note">{word('worker.select')}</p>
        ) : (
          <RateChart
            key={workerPath(shown)}
            path={`${path}/${workerPath(shown)}`}
            since={since}
            title={word('worker.rate_of', { name: shown.name || word('miner.no_name') })}
          />
        )}
      </div>
    </section>
  );
}

const CREDITS_CSV: CsvColumn<CreditDocument>[] = [
  ['credited', (credit) => csvTime(credit.made_millis)],
  ['mode', (credit) => credit.service],
  ['slice', (credit) => credit.slice],
  ['blocks', (credit) => credit.blocks],
  ['rewards_coins', (credit) => formatCoins(BigInt(credit.reward))],
  ['amount_coins', (credit) => formatCoins(BigInt(credit.amount))],
];

function Credits({ path, address }: { path: string; address: string }) {
  const [cursor, setCursor] = useState<string>();
  const credits = useDocument<CreditsDocument>(`${path}/credits${query({ cursor, limit: 20 })}`);
  const columns: Column<CreditDocument>[] = [
    { title: word('credit.credited'), minor: true, cell: (credit) => <When millis={credit.made_millis} /> },
    { title: word('blocks.mode'), minor: true, cell: (credit) => MODES[credit.service] },
    { title: word('blocks.slice'), number: true, cell: (credit) => count(credit.slice) },
    { title: word('nav.blocks'), number: true, minor: true, cell: (credit) => count(credit.blocks) },
    { title: word('credit.rewards'), number: true, minor: true, cell: (credit) => <Amount atoms={credit.reward} /> },
    { title: word('credit.yours'), number: true, cell: (credit) => <Amount atoms={credit.amount} /> },
    { title: word('credit.proof'), wide: true, cell: (credit) => <ShareCheck address={address} credit={credit} /> },
  ];
  const rows = credits.data?.credits ?? [];
  return (
    <section class="card">
      <div class="row head">
        <h2>{word('tab.credits')}</h2>
        <CsvButton
          name={`credits-${shortName(address)}`}
          columns={CREDITS_CSV}
          pathOf={(cursor) => `${path}/credits${query({ cursor, limit: 200 })}`}
          rowsOf={(document: CreditsDocument) => document.credits}
        />
      </div>
      <p class="note">{word('credit.explained', { origin: location.origin })}</p>
      <p>
        <CheckNode />
      </p>
      {rows.length === 0 ? (
        <Placeholder error={credits.error} loading={credits.data === undefined} empty={word('credit.none')} />
      ) : (
        <Table caption={word('credit.newest')} columns={columns} rows={rows} keyOf={(c) => `${c.service}/${c.slice}`} />
      )}
      <Pager cursor={cursor} next={credits.data?.next_cursor} onMove={setCursor} />
    </section>
  );
}
