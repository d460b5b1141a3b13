/** The newest of the chain: its figures, cuts, work blocks with their parents, and transactions; followed while the page is open. */
import { useState } from 'preact/hooks';
import type { RouteAnswer } from '../../protocol/api/routes.ts';
import { useNow } from '../data/hooks.ts';
import { ago, count, duration, hashRate } from '../format.ts';
import { explorerLink } from '../router.ts';
import { Amount, type Column, Figure, Placeholder, RoundedAmount, State, Table } from '../view/parts.tsx';
import { BlockGraph } from './block-graph.tsx';
import { type ListedCut, useChain } from './chain-document.ts';
import { ChainLink, CutLink } from './links.tsx';

type RecentBlock = RouteAnswer<'recentBlocks'>['blocks'][number];
type RecentTransaction = RouteAnswer<'recentTransactions'>['transactions'][number];

const cutColumns = (now: number): Column<ListedCut>[] => [
  { title: 'Cut', number: true, cell: ({ height }) => <CutLink height={height} /> },
  { title: 'Finalized', cell: ({ finalized_at_millis: at }) => ago(at, now) },
  { title: 'Blocks', number: true, cell: (cut) => count(cut.registered_work) },
  { title: 'Transactions', number: true, cell: (cut) => count(cut.transactions) },
  { title: 'Subsidy', number: true, minor: true, cell: ({ subsidy }) => <Amount atoms={subsidy} /> },
  { title: 'Fees', number: true, minor: true, cell: ({ fees }) => <Amount atoms={fees} /> },
];

const blockColumns: Column<RecentBlock>[] = [
  { title: 'Block', cell: ({ block_id: id }) => <ChainLink kind="block" id={id} /> },
  { title: 'Anchor', number: true, cell: ({ anchor_height: height }) => <CutLink height={height} /> },
  { title: 'Miner', cell: ({ payout }) => <ChainLink kind="address" id={payout} /> },
  { title: 'Tag', minor: true, cell: ({ tag }) => tag || '–' },
  { title: 'Transactions', number: true, minor: true, cell: (block) => count(block.transactions) },
  { title: 'Reward', cell: ({ reward }) => <State state={reward.state} /> },
];

const transactionColumns: Column<RecentTransaction>[] = [
  { title: 'Transaction', cell: ({ transaction_id: id }) => <ChainLink kind="transaction" id={id} /> },
  { title: 'Cut', number: true, cell: ({ finalized_height: height }) => <CutLink height={height} /> },
  { title: 'Coins', number: true, cell: ({ amount }) => <Amount atoms={amount} /> },
  { title: 'Fee', number: true, minor: true, cell: ({ fee }) => <Amount atoms={fee} /> },
  { title: 'Outcome', cell: ({ outcome }) => <State state={outcome} /> },
];

export function Overview() {
  return (
    <>
      <Head />
      <Cuts />
      <Blocks />
      <Transactions />
    </>
  );
}

function Head() {
  const { data: rates, error } = useChain<'chainRates'>('chain/rates');
  const { data: supply } = useChain<'supply'>('economics/supply');
  const { data: mempool } = useChain<'mempool'>('mempool');
  if (rates === undefined)
    return (
      <section class="card">
        <Placeholder error={error} loading empty="" />
      </section>
    );
  return (
    <div class="grid">
      <Figure
        label="Finalized cut"
        value={count(rates.finalized_height)}
        note={`one every ${(rates.cut_millis / 1000).toFixed(2)} s`}
      />
      <Figure
        label="Hash rate of the network"
        value={hashRate(Number(rates.hashrate))}
        note={`over ${count(rates.cuts)} cuts, about ${duration(rates.span_millis / 1000)}; ${count(BigInt(rates.block_work))} hashes a block`}
      />
      <Figure
        label="Supply"
        value={supply === undefined ? '…' : <RoundedAmount atoms={supply.total_supply} />}
        note={<a href={explorerLink('supply')}>Supply and emission</a>}
      />
      <Figure
        label="Waiting transactions"
        value={mempool === undefined ? '…' : count(mempool.transactions)}
        note={mempool === undefined ? '' : `minimum fee: ${mempool.min_fee_per_mass} atoms per unit of mass`}
      />
    </div>
  );
}

function Cuts() {
  const { data, error } = useChain<'cuts'>('cuts?limit=10');
  const now = useNow();
  return (
    <section class="card">
      <h2>Newest cuts</h2>
      {data === undefined ? (
        <Placeholder error={error} loading empty="" />
      ) : (
        <Table
          caption="Newest cuts"
          columns={cutColumns(now)}
          rows={data.cuts}
          keyOf={({ height }) => String(height)}
        />
      )}
    </section>
  );
}

const SHOWN_BLOCKS = 10;

function Blocks() {
  const { data, error } = useChain<'recentBlocks'>('blocks/recent?limit=80');
  const [isWhole, setWhole] = useState(false);
  return (
    <section class="card">
      <h2>Newest work blocks</h2>
      {data === undefined || data.blocks.length === 0 ? (
        <Placeholder error={error} loading={data === undefined} empty="No blocks were registered in the newest cuts." />
      ) : (
        <>
          <p class="note">
            A column for each anchor, a line to each parent. Full green dots are paid, yellow rings are registered and
            not paid yet, broken red rings have expired.
          </p>
          <BlockGraph blocks={data.blocks} />
          <Table
            caption="Newest work blocks"
            columns={blockColumns}
            rows={isWhole ? data.blocks : data.blocks.slice(0, SHOWN_BLOCKS)}
            keyOf={({ block_id: id }) => id}
          />
          {data.blocks.length <= SHOWN_BLOCKS ? null : (
            <p>
              <button type="button" onClick={() => setWhole(!isWhole)}>
                {isWhole ? 'Show fewer' : `Show all ${data.blocks.length} blocks`}
              </button>
            </p>
          )}
        </>
      )}
    </section>
  );
}

function Transactions() {
  const { data, error } = useChain<'recentTransactions'>('transactions/recent?limit=10');
  return (
    <section class="card">
      <h2>Newest transactions</h2>
      {data === undefined || data.transactions.length === 0 ? (
        <Placeholder error={error} loading={data === undefined} empty="No transactions in the newest cuts." />
      ) : (
        <Table
          caption="Newest transactions"
          columns={transactionColumns}
          rows={data.transactions}
          keyOf={({ transaction_id: id }) => id}
        />
      )}
    </section>
  );
}
