/** The newest of the chain: its figures, cuts, work blocks with their parents, and transactions; followed while the page is open. */

import { useState } from 'preact/hooks';
import type { RouteAnswer } from '../../protocol/api/routes.ts';
import { useNow } from '../data/hooks.ts';
import { ago, count, duration, fixed, hashRate } from '../format.ts';
import { explorerLink } from '../router.ts';
import { Amount, type Column, Figure, Placeholder, RoundedAmount, State, Table } from '../view/parts.tsx';
import { word } from '../words/language.ts';
import { BlockGraph } from './block-graph.tsx';
import { type ListedCut, useChain } from './chain-document.ts';
import { ChainLink, CutLink } from './links.tsx';

type RecentBlock = RouteAnswer<'recentBlocks'>['blocks'][number];
type RecentTransaction = RouteAnswer<'recentTransactions'>['transactions'][number];

const cutColumns = (now: number): Column<ListedCut>[] => [
  { title: word('place.cut'), number: true, cell: ({ height }) => <CutLink height={height} /> },
  { title: word('chain.finalized'), cell: ({ finalized_at_millis: at }) => ago(at, now) },
  { title: word('nav.blocks'), number: true, cell: (cut) => count(cut.registered_work) },
  { title: word('chain.transactions'), number: true, cell: (cut) => count(cut.transactions) },
  { title: word('chain.subsidy'), number: true, minor: true, cell: ({ subsidy }) => <Amount atoms={subsidy} /> },
  { title: word('chain.fees'), number: true, minor: true, cell: ({ fees }) => <Amount atoms={fees} /> },
];

const blockColumns = (): Column<RecentBlock>[] => [
  { title: word('blocks.block'), cell: ({ block_id: id }) => <ChainLink kind="block" id={id} /> },
  { title: word('blocks.anchor'), number: true, cell: ({ anchor_height: height }) => <CutLink height={height} /> },
  { title: word('chain.miner'), cell: ({ payout }) => <ChainLink kind="address" id={payout} /> },
  { title: word('chain.tag'), minor: true, cell: ({ tag }) => tag || '–' },
  { title: word('chain.transactions'), number: true, minor: true, cell: (block) => count(block.transactions) },
  { title: word('blocks.reward'), cell: ({ reward }) => <State state={reward.state} /> },
];

const transactionColumns = (): Column<RecentTransaction>[] => [
  { title: word('place.transaction'), cell: ({ transaction_id: id }) => <ChainLink kind="transaction" id={id} /> },
  { title: word('place.cut'), number: true, cell: ({ finalized_height: height }) => <CutLink height={height} /> },
  { title: word('pay.coins'), number: true, cell: ({ amount }) => <Amount atoms={amount} /> },
  { title: word('chain.fee'), number: true, minor: true, cell: ({ fee }) => <Amount atoms={fee} /> },
  { title: word('chain.outcome'), cell: ({ outcome }) => <State state={outcome} /> },
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
        label={word('chain.finalized_cut')}
        value={count(rates.finalized_height)}
        note={word('chain.one_every', { time: `${fixed(rates.cut_millis / 1000, 2)} s` })}
      />
      <Figure
        label={word('chain.rate')}
        value={hashRate(Number(rates.hashrate))}
        note={word('chain.rate_note', {
          cuts: count(rates.cuts),
          time: duration(rates.span_millis / 1000),
          work: count(BigInt(rates.block_work)),
        })}
      />
      <Figure
        label={word('chain.supply')}
        value={supply === undefined ? '…' : <RoundedAmount atoms={supply.total_supply} />}
        note={<a href={explorerLink('supply')}>{word('place.supply')}</a>}
      />
      <Figure
        label={word('chain.waiting')}
        value={mempool === undefined ? '…' : count(mempool.transactions)}
        note={mempool === undefined ? '' : word('chain.min_fee', { fee: mempool.min_fee_per_mass })}
      />
    </div>
  );
}

function Cuts() {
  const { data, error } = useChain<'cuts'>('cuts?limit=10');
  const now = useNow();
  return (
    <section class="card">
      <h2>{word('chain.newest_cuts')}</h2>
      {data === undefined ? (
        <Placeholder error={error} loading empty="" />
      ) : (
        <Table
          caption={word('chain.newest_cuts')}
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
      <h2>{word('chain.newest_blocks')}</h2>
      {data === undefined || data.blocks.length === 0 ? (
        <Placeholder error={error} loading={data === undefined} empty={word('chain.no_blocks')} />
      ) : (
        <>
          <p class="note">{word('chain.graph')}</p>
          <BlockGraph blocks={data.blocks} />
          <Table
            caption={word('chain.newest_blocks')}
            columns={blockColumns()}
            rows={isWhole ? data.blocks : data.blocks.slice(0, SHOWN_BLOCKS)}
            keyOf={({ block_id: id }) => id}
          />
          {data.blocks.length <= SHOWN_BLOCKS ? null : (
            <p>
              <button type="button" onClick={() => setWhole(!isWhole)}>
                {isWhole ? word('chain.fewer') : word('chain.all_blocks', { count: data.blocks.length })}
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
      <h2>{word('chain.newest_transactions')}</h2>
      {data === undefined || data.transactions.length === 0 ? (
        <Placeholder error={error} loading={data === undefined} empty={word('chain.no_transactions')} />
      ) : (
        <Table
          caption={word('chain.newest_transactions')}
          columns={transactionColumns()}
          rows={data.transactions}
          keyOf={({ transaction_id: id }) => id}
        />
      )}
    </section>
  );
}
