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
import { partOfBlock, useBlockWork } from '../data/block-work.ts';
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
  roundedCoins,
  shortName,
} from '../format.ts';
import { NotifyMe } from '../notify/notifications.tsx';
import { linkTo, MINER_TABS, type MinerTab, minerLink } from '../router.ts';
import { MailForm } from '../threshold/mail-form.tsx';
import { ThresholdForm } from '../threshold/threshold-form.tsx';
import { WebhookForm } from '../threshold/webhook-form.tsx';
import { CsvButton } from './csv-button.tsx';
import { countedOf, longRate, perDayOf } from './miner-figures.ts';
import { BestShares, Leaders, Miners } from './miner-lists.tsx';
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
      <h1>Miner</h1>
      <AddressForm typed={typed} onType={setTyped} label="Address" />
      {address === undefined ? (
        <>
          <p class="note">Enter the address you mine to. There is no account and no password.</p>
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
  if (best === null) return <Figure label="Best share" value="–" note="after the first share" />;
  const part = partOfBlock(best.work, blockWork);
  return (
    <Figure
      label="Best share"
      value={hashes(best.work)}
      note={`hashes; ${part} of a block; ${best.worker || '(no name)'}, ${ago(best.at_millis, now)}`}
    />
  );
}

function Luck({ luck }: { luck: MinerDocument['luck'] }) {
  const own = luck.find(({ expected }) => expected > 0);
  if (own === undefined) return <Figure label="Luck" value="–" note="after its first counted slice" />;
  const { service, expected, found, probability } = own;
  return (
    <Figure
      label="Luck"
      value={`${((100 * found) / expected).toFixed(0)} %`}
      note={`${service}: ${count(found)} blocks, ${expected.toPrecision(3)} expected; so far off by chance in ${(100 * probability).toPrecision(2)} %`}
    />
  );
}

const TABS: Readonly<Record<MinerTab, string>> = {
  overview: 'Overview',
  workers: 'Workers',
  payments: 'Payments',
  credits: 'Credits',
  settings: 'Settings',
};

const Tabs = ({ address, tab }: { address: string; tab: MinerTab }) => (
  <nav class="tabs" aria-label="Parts of this page">
    <ul>
      {MINER_TABS.map((one) => (
        <li key={one}>
          <a href={minerLink(address, one)} aria-current={one === tab ? 'page' : undefined}>
            {TABS[one]}
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
        This pool has never received a share from that address. Check the address, or{' '}
        <a href={linkTo('connect')}>connect a miner</a>.
      </p>
    ) : (
      <Placeholder error={error} loading empty="" />
    );
  const counted = countedOf(miner, workers.data, cursor === undefined);
  return (
    <>
      <WholeName text={miner.address} label="address" />
      <Tabs address={address} tab={tab} />
      {tab === 'overview' ? (
        <>
          <div class="grid">
            <Figure
              label="Hash rate, 10 min"
              value={hashRate(counted.hash_rate.ten_minutes)}
              note={ratesNote(counted.hash_rate, miner.since_millis, now)}
            />
            <NextPayout miner={miner} perDay={perDay} />
            <Figure
              label="Earns about"
              value={perDay === undefined ? '–' : roundedCoins(perDay)}
              note={
                miner.online
                  ? 'coins a day, with its hash rate of the last hour at the network’s present pace'
                  : `coins a day: it is offline, its last share came ${ago(counted.last_share_millis, now)}`
              }
            />
            <Figure
              label="Paid, coins"
              value={<RoundedAmount atoms={miner.paid} />}
              note={`${roundedCoins(miner.in_flight)} on its way, about ${roundedCoins(miner.pending_estimate)} pending`}
            />
            <Figure
              label="Shares"
              value={count(counted.accepted)}
              note={`${count(counted.stale)} stale, ${count(counted.rejected)} rejected; last ${ago(counted.last_share_millis, now)}`}
            />
            <BestShare best={miner.best_share} now={now} />
            <Luck luck={miner.luck} />
          </div>
          <RateChart path={path} since={miner.since_millis} title="Hash rate" />
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
    overTime('over an hour', HOUR_SECONDS, since_millis, now),
    overTime('over a day', DAY_SECONDS, since_millis, now),
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
  const when = seconds === undefined ? '' : seconds === 0 ? '; in the next round' : `; in about ${duration(seconds)}`;
  return (
    <Figure
      label="Balance, coins"
      value={<RoundedAmount atoms={miner.balance} />}
      note={
        <>
          <progress value={part} max={100} aria-label={`${part} % of the way to the next payout`} /> paid out at{' '}
          {coins(miner.payout_minimum)}
          {when}
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
        <Placeholder
          error={chart.error}
          loading={chart.data === undefined}
          empty="No shares in this period. Choose a longer range."
        />
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
      title: 'Worker',
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
          {worker.name || '(no name)'}
        </button>
      ),
    },
    { title: 'Mode', minor: true, cell: (worker) => MODES[worker.service] },
    {
      title: 'State',
      cell: (worker) => <span class={worker.online ? 'good' : 'warn'}>{worker.online ? 'online' : 'offline'}</span>,
    },
    { title: '10 min', number: true, cell: (worker) => hashRate(worker.hash_rate.ten_minutes) },
    {
      title: '1 h',
      number: true,
      minor: true,
      cell: (worker) => longRate(worker.hash_rate.hour, TEN_MINUTES, since, now),
    },
    {
      title: '24 h',
      number: true,
      minor: true,
      cell: (worker) => longRate(worker.hash_rate.day, HOUR_SECONDS, since, now),
    },
    { title: 'Accepted', number: true, minor: true, cell: (worker) => count(worker.accepted) },
    { title: 'Stale', number: true, minor: true, cell: (worker) => count(worker.stale) },
    { title: 'Rejected', number: true, minor: true, cell: (worker) => count(worker.rejected) },
    { title: 'Last share', cell: (worker) => ago(worker.last_share_millis, now) },
  ];
  const rows = workers.data?.workers ?? [];
  return (
    <section class="card">
      <h2>Workers</h2>
      {rows.length === 0 ? (
        <Placeholder
          error={workers.error}
          loading={workers.data === undefined}
          empty={
            <>
              No workers yet. <StartMining />
            </>
          }
        />
      ) : (
        <Table caption="Workers" columns={columns} rows={rows} keyOf={(worker) => `${worker.service}/${worker.name}`} />
      )}
      <Pager cursor={cursor} next={workers.data?.next_cursor} onMove={onMove} />
      <div id="worker-chart">
        {shown === undefined ? (
          <p class="note">Select a worker’s name to see its own chart.</p>
        ) : (
          <RateChart
            key={workerPath(shown)}
            path={`${path}/${workerPath(shown)}`}
            since={since}
            title={`Hash rate of ${shown.name || '(no name)'}`}
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
    { title: 'Credited', minor: true, cell: (credit) => <When millis={credit.made_millis} /> },
    { title: 'Mode', minor: true, cell: (credit) => MODES[credit.service] },
    { title: 'Slice', number: true, cell: (credit) => count(credit.slice) },
    { title: 'Blocks', number: true, minor: true, cell: (credit) => count(credit.blocks) },
    { title: 'Rewards', number: true, minor: true, cell: (credit) => <Amount atoms={credit.reward} /> },
    { title: 'Yours', number: true, cell: (credit) => <Amount atoms={credit.amount} /> },
    { title: 'Proof', wide: true, cell: (credit) => <ShareCheck address={address} credit={credit} /> },
  ];
  const rows = credits.data?.credits ?? [];
  return (
    <section class="card">
      <div class="row head">
        <h2>Credits</h2>
        <CsvButton
          name={`credits-${shortName(address)}`}
          columns={CREDITS_CSV}
          pathOf={(cursor) => `${path}/credits${query({ cursor, limit: 200 })}`}
          rowsOf={(document: CreditsDocument) => document.credits}
        />
      </div>
      <p class="note">
        Each row is your share of the blocks of one slice. ‘Check my share’ downloads the pool’s proof and checks it
        here, in your browser: your work in each slice of the window, the window itself, the fee, and your credit to the
        atom. It says ‘Proven’ only when your own node confirms the rewards: run svcd on this computer with the option
        --browser-origin {location.origin} and enter its address here.
      </p>
      <p>
        <CheckNode />
      </p>
      {rows.length === 0 ? (
        <Placeholder
          error={credits.error}
          loading={credits.data === undefined}
          empty="No credits yet: the first one comes when the chain has paid for a block of this pool."
        />
      ) : (
        <Table caption="Credits, newest first" columns={columns} rows={rows} keyOf={(c) => `${c.service}/${c.slice}`} />
      )}
      <Pager cursor={cursor} next={credits.data?.next_cursor} onMove={setCursor} />
    </section>
  );
}
