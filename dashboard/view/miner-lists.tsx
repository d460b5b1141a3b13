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
import { partOfBlock, useBlockWork } from '../data/block-work.ts';
import { query } from '../data/client.ts';
import { useDocument, useNow } from '../data/hooks.ts';
import { ago, count, hashes, hashRate, smallPercent } from '../format.ts';
import { linkTo } from '../router.ts';
import { Amount, type Column, MinerLink, Pager, Placeholder, StartMining, Table } from './parts.tsx';

const MINERS: Column<MinerSummary>[] = [
  { title: 'Miner', cell: (miner) => <MinerLink address={miner.address} /> },
  { title: 'Workers', number: true, cell: (miner) => count(miner.workers) },
  { title: '10 min', number: true, cell: (miner) => hashRate(miner.hash_rate.ten_minutes) },
  { title: '1 h', number: true, minor: true, cell: (miner) => hashRate(miner.hash_rate.hour) },
  { title: '24 h', number: true, minor: true, cell: (miner) => hashRate(miner.hash_rate.day) },
];

export function Miners() {
  const [cursor, setCursor] = useState<string>();
  const miners = useDocument<MinersDocument>(`miners${query({ cursor, limit: 50 })}`, 10_000);
  const now = useNow();
  const rows = miners.data?.miners ?? [];
  const columns = [
    ...MINERS,
    { title: 'Last share', minor: true, cell: (miner: MinerSummary) => ago(miner.last_share_millis, now) },
  ];
  return (
    <section class="card">
      <h2>Miners of this pool</h2>
      {rows.length === 0 ? (
        <Placeholder
          error={miners.error}
          loading={miners.data === undefined}
          empty={
            <>
              Nobody is mining here yet. <StartMining />
            </>
          }
        />
      ) : (
        <Table caption="Fastest first" columns={columns} rows={rows} keyOf={(miner) => miner.address} />
      )}
      <Pager cursor={cursor} next={miners.data?.next_cursor} onMove={setCursor} words={['Fastest', 'More']} />
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
  const columns: Column<MinerSummary>[] = [...MINERS, { title: 'Part', number: true, cell: part }];
  return (
    <section class="card">
      <h2>Top miners</h2>
      {rows.length === 0 ? (
        <Placeholder error={miners.error} loading={miners.data === undefined} empty="Nobody is mining here yet." />
      ) : (
        <Table caption="Fastest of the last hour" columns={columns} rows={rows} keyOf={(miner) => miner.address} />
      )}
      <p>
        ‘Part’ is that of the pool’s hash rate of the last hour. <a href={linkTo('miner')}>All miners</a>
      </p>
    </section>
  );
}

const LEADERS: Column<LeaderDocument>[] = [
  { title: 'Miner', cell: (leader) => <MinerLink address={leader.address} /> },
  { title: 'Blocks', number: true, cell: (leader) => count(leader.blocks) },
  { title: 'Rewards', number: true, cell: (leader) => <Amount atoms={leader.reward} /> },
  { title: 'Lowest effort', number: true, minor: true, cell: (leader) => smallPercent(leader.luckiest) },
];

export function Leaders() {
  const leaders = useDocument<LeadersDocument>('leaders', 60_000);
  const rows = leaders.data?.leaders ?? [];
  return (
    <section class="card">
      <h2>Most blocks in the last day</h2>
      {rows.length === 0 ? (
        <Placeholder
          error={leaders.error}
          loading={leaders.data === undefined}
          empty={
            <>
              No blocks in the last day. <a href={linkTo('blocks')}>All blocks</a>
            </>
          }
        />
      ) : (
        <>
          <Table caption="Most blocks first" columns={LEADERS} rows={rows} keyOf={(leader) => leader.address} />
          <p class="note">
            <span class="minor">‘Lowest effort’ is that of the miner’s luckiest block. </span>
            With PPLNS everybody shares in every block.
          </p>
        </>
      )}
    </section>
  );
}

export function BestShares() {
  const best = useDocument<BestSharesDocument>('best-shares', 60_000);
  const blockWork = useBlockWork();
  const now = useNow();
  const rows = best.data?.best_shares ?? [];
  const columns: Column<BestOfMiner>[] = [
    { title: 'Miner', cell: (row) => <MinerLink address={row.address} /> },
    { title: 'Worker', minor: true, cell: (row) => row.worker || '(no name)' },
    { title: 'Hashes', number: true, cell: (row) => hashes(row.work) },
    { title: 'Of a block', number: true, cell: (row) => partOfBlock(row.work, blockWork) },
    { title: 'When', minor: true, cell: (row) => ago(row.at_millis, now) },
  ];
  return (
    <section class="card">
      <h2>Best shares</h2>
      {rows.length === 0 ? (
        <Placeholder
          error={best.error}
          loading={best.data === undefined}
          empty={
            <>
              No shares yet. <StartMining />
            </>
          }
        />
      ) : (
        <>
          <Table caption="Best share first" columns={columns} rows={rows} keyOf={(row) => row.address} />
          <p class="note">
            The number of hashes that a share this good takes on average. 100 % of a block or more is a block at today’s
            difficulty.
          </p>
        </>
      )}
    </section>
  );
}
