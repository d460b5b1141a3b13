/** Below the figures of the first page: the chart, what each mode does, the newest blocks, the terms. */

import { useEffect, useState } from 'preact/hooks';
import type { BlocksDocument, PoolBlock, PoolDocument, ServiceDocument } from '../../pool/api/documents.ts';
import { PoolChart } from '../chart/pool-chart.tsx';
import { useDocument, useLive } from '../data/hooks.ts';
import { usePaidIn } from '../data/pace.ts';
import { isPaused, usePaused } from '../data/pause.ts';
import { ago, blockEvery, counted, hashRate, MODES, percent } from '../format.ts';
import { linkTo } from '../router.ts';
import { word } from '../words/language.ts';
import { blockColumns } from './blocks-page.tsx';
import { Placeholder, StartMining, Table } from './parts.tsx';
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
        <h2>{word('details.newest')}</h2>
        {blocks.length === 0 ? (
          <Placeholder
            error={newest.error}
            loading={newest.data === undefined}
            empty={
              <>
                {word('details.none')} <StartMining />
              </>
            }
          />
        ) : (
          <Table
            caption={word('details.newest_first')}
            columns={blockColumns(now, paidIn)}
            rows={blocks}
            keyOf={(block) => block.block_id}
          />
        )}
        <p>
          <a href={linkTo('blocks')}>{word('details.all')}</a>
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

const luckOf = (luck: number | null): string => (luck === null ? '–' : percent(luck));

function ServiceCard({ service, blockWork, now }: { service: ServiceDocument; blockWork: string; now: number }) {
  const rate = service.hash_rate.ten_minutes;
  return (
    <section class="card">
      <h2>{MODES[service.service]}</h2>
      <p class="note">
        {word('details.fee', {
          fee: percent(service.fee_ppm / 1e6, 2),
          miners: counted(service.miners, 'miner'),
          rate: hashRate(rate),
        })}
      </p>
      <p>
        {word('details.effort')} <strong>{percent(service.effort)}</strong>
        <br />
        {word('details.luck', { hundred: luckOf(service.luck.hundred), day: luckOf(service.luck.day) })}
        <br />
        {rate > 0 ? word('details.average', { often: blockEvery(Number(blockWork) / rate) }) : word('details.no_work')};{' '}
        {service.last_block_millis === null
          ? word('details.no_block')
          : word('details.last_block', { ago: ago(service.last_block_millis, now) })}
      </p>
    </section>
  );
}
