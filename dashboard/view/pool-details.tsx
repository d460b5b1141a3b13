/** Below the figures of the first page: the chart, what each mode does, the newest blocks, the terms. */
import { useEffect, useState } from 'preact/hooks';
import type { BlocksDocument, PoolBlock, PoolDocument, ServiceDocument } from '../../pool/api/documents.ts';
import { useDocument, useLive } from '../data/hooks.ts';
import { usePaidIn } from '../data/paid-in.ts';
import { isPaused, usePaused } from '../data/pause.ts';
import { ago, hashRate, howOften, MODES, percent, plural } from '../format.ts';
import { linkTo } from '../router.ts';
import { blockColumns } from './blocks-page.tsx';
import { Placeholder, StartMining, Table } from './parts.tsx';
import { PoolChart } from './pool-chart.tsx';
import { sum } from './pool-figures.tsx';
import { Calculator, Questions, Terms } from './terms.tsx';

const NEWEST = 12;
const NEWS_KEPT = 100;

export function PoolDetails({ pool, now }: { pool: PoolDocument; now: number }) {
  const newest = useDocument<BlocksDocument>(`blocks?limit=${NEWEST}`);
  const [news, setNews] = useState<readonly PoolBlock[]>([]);
  useLive((frame) => {
    if (frame.type === 'block' && !isPaused())
      setNews((before) =>
        [frame.data, ...before.filter((block) => block.block_id !== frame.data.block_id)].slice(0, NEWS_KEPT),
      );
  });
  const [paused] = usePaused();
  useEffect(() => {
    // News from before the pause is older than the list that is read after it.
    if (!paused) setNews([]);
  }, [paused]);
  const paidIn = usePaidIn(pool);
  const ids = new Set(news.map((block) => block.block_id));
  // News of an older block, such as its payment, replaces its line and does not put it on top.
  const blocks = [...news, ...(newest.data?.blocks ?? []).filter((block) => !ids.has(block.block_id))]
    .sort((a, b) => b.found_millis - a.found_millis)
    .slice(0, NEWEST);
  return (
    <>
      <PoolChart rate={sum(pool.services, (service) => service.hash_rate.ten_minutes)} since={pool.since_millis} />
      <div class="grid cards">
        {pool.services.map((service) => (
          <ServiceCard key={service.service} service={service} blockWork={pool.network_figures.block_work} now={now} />
        ))}
      </div>
      <section class="card">
        <h2>Newest blocks</h2>
        {blocks.length === 0 ? (
          <Placeholder
            error={newest.error}
            loading={newest.data === undefined}
            empty={
              <>
                No blocks found yet. <StartMining />
              </>
            }
          />
        ) : (
          <Table
            caption="Newest blocks first"
            columns={blockColumns(now, paidIn)}
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
  return (
    <section class="card">
      <h2>{MODES[service.service]}</h2>
      <p class="note">
        Fee {percent(service.fee_ppm / 1e6, 2)}, {plural(service.miners, 'miner')}, {hashRate(rate)}
      </p>
      <p>
        Effort since the last block: <strong>{percent(service.effort)}</strong>
        <br />
        Luck over the last 100 blocks: {service.luck.hundred === null ? '–' : percent(service.luck.hundred)}; over the
        last day: {service.luck.day === null ? '–' : percent(service.luck.day)}
        <br />
        {rate > 0 ? `On average ${howOften('block', Number(blockWork) / rate)}` : 'No work in the last 10 minutes'};{' '}
        {service.last_block_millis === null
          ? 'no block found yet'
          : `last block ${ago(service.last_block_millis, now)}`}
      </p>
    </section>
  );
}
