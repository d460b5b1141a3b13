/** The first page: what the pool does now, its chart, its newest blocks, and the network. */
import { useMemo, useRef, useState } from 'preact/hooks';
import type {
  BlocksDocument,
  ChartDocument,
  PoolBlock,
  PoolDocument,
  ServiceDocument,
} from '../../pool/api/documents.ts';
import { useDocument, useLive, useNow } from '../data/hooks.ts';
import { ago, coins, count, duration, hashRate, percent, plural } from '../format.ts';
import { linkTo } from '../router.ts';
import { blockColumns } from './blocks-page.tsx';
import { Chart, type Point } from './chart.tsx';
import { Figure, Placeholder, Table } from './parts.tsx';
import { Calculator, Questions, Terms } from './terms.tsx';

const NEWEST = 12;
const NEWS_KEPT = 100;
const SINCE_OPENED = 360;
const HOURS = [6, 24, 168, 720];

const sum = (services: readonly ServiceDocument[], of: (service: ServiceDocument) => number): number =>
  services.reduce((total, service) => total + of(service), 0);

export function PoolPage() {
  const first = useDocument<PoolDocument>('pool');
  const [live, setLive] = useState<PoolDocument>();
  const newest = useDocument<BlocksDocument>(`blocks?limit=${NEWEST}`);
  const [news, setNews] = useState<readonly PoolBlock[]>([]);
  useLive((frame) => {
    if (frame.type === 'pool') setLive(frame.data);
    if (frame.type === 'block')
      setNews((before) =>
        [frame.data, ...before.filter((block) => block.block_id !== frame.data.block_id)].slice(0, NEWS_KEPT),
      );
  });
  const pool = live ?? first.data;
  const now = useNow();
  if (pool === undefined) return <Placeholder error={first.error} loading empty="" />;
  const ids = new Set(news.map((block) => block.block_id));
  // News of an older block, such as its payment, replaces its line and does not put it on top.
  const blocks = [...news, ...(newest.data?.blocks ?? []).filter((block) => !ids.has(block.block_id))]
    .sort((a, b) => b.found_millis - a.found_millis)
    .slice(0, NEWEST);
  return (
    <>
      <h1 class="hidden-text">{pool.name}</h1>
      <div class="grid">
        <Figure
          label="Hash rate, 10 min"
          value={hashRate(sum(pool.services, (service) => service.hash_rate.ten_minutes))}
          note={`${hashRate(sum(pool.services, (service) => service.hash_rate.day))} over a day`}
        />
        <Figure
          label="Miners"
          value={count(sum(pool.services, (service) => service.miners))}
          note={plural(
            sum(pool.services, (service) => service.workers),
            'worker',
          )}
        />
        <Figure
          label="Blocks found"
          value={count(sum(pool.services, (service) => service.blocks_found))}
          note={`${count(sum(pool.services, (service) => service.blocks_paid))} paid`}
        />
        <Figure label="Paid to miners" value={coins(pool.paid_atoms)} note="coins" />
        <Figure
          label="Network"
          value={hashRate(pool.network_figures.hash_rate)}
          note={`height ${count(pool.network_figures.height)}${pool.network_figures.synced ? '' : ', node not synced'}`}
        />
      </div>
      <PoolChart rate={sum(pool.services, (service) => service.hash_rate.ten_minutes)} />
      <div class="grid cards">
        {pool.services.map((service) => (
          <ServiceCard key={service.service} service={service} blockWork={pool.network_figures.block_work} now={now} />
        ))}
      </div>
      <section class="card">
        <h2>Newest blocks</h2>
        {blocks.length === 0 ? (
          <Placeholder error={newest.error} loading={newest.data === undefined} empty="No block found yet." />
        ) : (
          <Table
            caption="Newest blocks first"
            columns={blockColumns(now)}
            rows={blocks}
            keyOf={(block) => block.block_id}
          />
        )}
        <p>
          <a href={linkTo('blocks')}>All blocks</a>
        </p>
      </section>
      <div class="grid cards">
        <Terms pool={pool} />
        <Calculator pool={pool} />
      </div>
      <Questions />
    </>
  );
}

function ServiceCard({ service, blockWork, now }: { service: ServiceDocument; blockWork: string; now: number }) {
  const rate = service.hash_rate.ten_minutes;
  const expected = rate > 0 ? Number(blockWork) / rate : Number.POSITIVE_INFINITY;
  return (
    <section class="card">
      <h2>{service.service === 'pplns' ? 'PPLNS' : 'Solo'}</h2>
      <p class="note">
        Fee {percent(service.fee_ppm / 1e6, 2)}, {plural(service.miners, 'miner')}, {hashRate(rate)}
      </p>
      <p>
        Effort since the last block: <strong>{percent(service.effort)}</strong>
        <br />
        Luck of the last hundred blocks: {service.luck.hundred === null ? '–' : percent(service.luck.hundred)}; of a
        day: {service.luck.day === null ? '–' : percent(service.luck.day)}
        <br />A block every {duration(expected)} on average; the last one{' '}
        {service.last_block_millis === null ? 'is still to come' : ago(service.last_block_millis, now)}
      </p>
    </section>
  );
}

/** The chart ends with what the pool said since the page was opened: the first minutes are not an empty frame. */
function PoolChart({ rate }: { rate: number }) {
  const [hours, setHours] = useState(24);
  const chart = useDocument<ChartDocument>(`pool/chart?hours=${hours}`, 60_000);
  const since = useRef<Point[]>([]);
  const points = useMemo(() => {
    since.current = [...since.current, { at_millis: Date.now(), hash_rate: rate }].slice(-SINCE_OPENED);
    const stored = chart.data?.points ?? [];
    const newest = stored.at(-1)?.at_millis ?? 0;
    return [...stored, ...since.current.filter(({ at_millis }) => at_millis > newest)];
  }, [chart.data, rate]);
  return (
    <section class="card">
      <div class="row head">
        <h2>Hash rate</h2>
        <Hours hours={hours} onChange={setHours} />
      </div>
      {chart.data === undefined || (chart.data.points.length === 0 && rate === 0) ? (
        <Placeholder
          error={chart.error}
          loading={chart.data === undefined}
          empty="The chart begins with the first share."
        />
      ) : (
        <Chart points={points} hours={hours} label="Hash rate of the pool" />
      )}
    </section>
  );
}

export function Hours({ hours, onChange }: { hours: number; onChange(hours: number): void }) {
  return (
    <label class="inline">
      Range
      <select value={hours} onChange={(event) => onChange(Number(event.currentTarget.value))}>
        {HOURS.map((value) => (
          <option key={value} value={value}>
            {value < 48 ? `${value} hours` : `${value / 24} days`}
          </option>
        ))}
      </select>
    </label>
  );
}
