/** Lists of miners: the fastest, those that found most blocks, and those with the best shares. */

import { useState } from 'preact/hooks';
import type {
  BestOfMiner,
  BestSharesDocument,
  LeaderDocument,
  LeadersDocument,
  MinerSummary,
  MinersDocument,
  PoolDocument,
} from '../../pool/api/documents.ts';
import { query } from '../data/client.ts';
import { useDocument, useNow } from '../data/hooks.ts';
import { ago, count, hashes, hashRate, smallPercent } from '../format.ts';
import { linkTo } from '../router.ts';
import { word } from '../words/language.ts';
import { Amount, type Column, MinerLink, Pager, Placeholder, StartMining, Table } from './parts.tsx';

const minerColumns = (): Column<MinerSummary>[] => [
  { title: word('chain.miner'), cell: (miner) => <MinerLink address={miner.address} /> },
  { title: word('chart.workers'), number: true, cell: (miner) => count(miner.workers) },
  { title: word('worker.ten_minutes'), number: true, cell: (miner) => hashRate(miner.hash_rate.ten_minutes) },
  { title: word('worker.hour'), number: true, minor: true, cell: (miner) => hashRate(miner.hash_rate.hour) },
  { title: word('worker.day'), number: true, minor: true, cell: (miner) => hashRate(miner.hash_rate.day) },
];

export function Miners() {
  const [cursor, setCursor] = useState<string>();
  const miners = useDocument<MinersDocument>(`miners${query({ cursor, limit: 50 })}`, 10_000);
  const now = useNow();
  const rows = miners.data?.miners ?? [];
  const columns = [
    ...minerColumns(),
    { title: word('worker.last'), minor: true, cell: (miner: MinerSummary) => ago(miner.last_share_millis, now) },
  ];
  return (
    <section class="card">
      <h2>{word('list.miners')}</h2>
      {rows.length === 0 ? (
        <Placeholder
          error={miners.error}
          loading={miners.data === undefined}
          empty={
            <>
              {word('list.nobody')} <StartMining />
            </>
          }
        />
      ) : (
        <Table caption={word('list.fastest_first')} columns={columns} rows={rows} keyOf={(miner) => miner.address} />
      )}
      <Pager
        cursor={cursor}
        next={miners.data?.next_cursor}
        onMove={setCursor}
        words={[word('list.fastest'), word('list.more')]}
      />
    </section>
  );
}

const TOP = 10;

/** For the operator: who the pool lives on. */
export function TopMiners() {
  const miners = useDocument<MinersDocument>(`miners?limit=${TOP}`, 10_000);
  const pool = useDocument<PoolDocument>('pool', 10_000).data;
  const all = pool?.services.reduce((sum, { hash_rate }) => sum + hash_rate.hour, 0) ?? 0;
  const rows = miners.data?.miners ?? [];
  const part = ({ hash_rate }: MinerSummary) => (all > 0 ? smallPercent(Math.min(1, hash_rate.hour / all)) : '–');
  const columns: Column<MinerSummary>[] = [...minerColumns(), { title: word('list.part'), number: true, cell: part }];
  return (
    <section class="card">
      <h2>{word('list.top')}</h2>
      {rows.length === 0 ? (
        <Placeholder error={miners.error} loading={miners.data === undefined} empty={word('list.nobody')} />
      ) : (
        <Table caption={word('list.top_caption')} columns={columns} rows={rows} keyOf={(miner) => miner.address} />
      )}
      <p>
        {word('list.part_note')} <a href={linkTo('miner')}>{word('list.all_miners')}</a>
      </p>
    </section>
  );
}

const leaderColumns = (): Column<LeaderDocument>[] => [
  { title: word('chain.miner'), cell: (leader) => <MinerLink address={leader.address} /> },
  { title: word('nav.blocks'), number: true, cell: (leader) => count(leader.blocks) },
  { title: word('credit.rewards'), number: true, cell: (leader) => <Amount atoms={leader.reward} /> },
  { title: word('list.lowest_effort'), number: true, minor: true, cell: (leader) => smallPercent(leader.luckiest) },
];

export function Leaders() {
  const leaders = useDocument<LeadersDocument>('leaders', 60_000);
  const rows = leaders.data?.leaders ?? [];
  return (
    <section class="card">
      <h2>{word('list.leaders')}</h2>
      {rows.length === 0 ? (
        <Placeholder
          error={leaders.error}
          loading={leaders.data === undefined}
          empty={
            <>
              {word('list.leaders_none')} <a href={linkTo('blocks')}>{word('details.all')}</a>
            </>
          }
        />
      ) : (
        <>
          <Table
            caption={word('list.most_first')}
            columns={leaderColumns()}
            rows={rows}
            keyOf={(leader) => leader.address}
          />
          <p class="note">
            <span class="minor">{word('list.lowest_note')} </span>
            {word('list.pplns_note')}
          </p>
        </>
      )}
    </section>
  );
}

/** The work of a block at the current difficulty, and the part of it that a share represents. */
export const useBlockWork = (): string | undefined =>
  useDocument<PoolDocument>('pool', 60_000).data?.network_figures.block_work;

export const partOfBlock = (work: string, blockWork: string | undefined): string =>
  blockWork === undefined || blockWork === '0' ? '–' : smallPercent(Number(work) / Number(blockWork));

export function BestShares() {
  const best = useDocument<BestSharesDocument>('best-shares', 60_000);
  const blockWork = useBlockWork();
  const now = useNow();
  const rows = best.data?.best_shares ?? [];
  const columns: Column<BestOfMiner>[] = [
    { title: word('chain.miner'), cell: (row) => <MinerLink address={row.address} /> },
    { title: word('blocks.worker'), minor: true, cell: (row) => row.worker || word('miner.no_name') },
    { title: word('list.hashes'), number: true, cell: (row) => hashes(row.work) },
    { title: word('list.of_block'), number: true, cell: (row) => partOfBlock(row.work, blockWork) },
    { title: word('list.when'), minor: true, cell: (row) => ago(row.at_millis, now) },
  ];
  return (
    <section class="card">
      <h2>{word('list.best')}</h2>
      {rows.length === 0 ? (
        <Placeholder
          error={best.error}
          loading={best.data === undefined}
          empty={
            <>
              {word('list.best_none')} <StartMining />
            </>
          }
        />
      ) : (
        <>
          <Table caption={word('list.best_first')} columns={columns} rows={rows} keyOf={(row) => row.address} />
          <p class="note">{word('list.best_note')}</p>
        </>
      )}
    </section>
  );
}
