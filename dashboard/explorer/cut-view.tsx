/** One cut: what it says of itself, the transactions it executed and the blocks it paid. */

import { useState } from 'preact/hooks';
import type { RouteAnswer } from '../../protocol/api/routes.ts';
import { workOfTarget } from '../../protocol/ledger/target.ts';
import { query } from '../data/client.ts';
import { count } from '../format.ts';
import { explorerLink } from '../router.ts';
import { Amount, type Column, Pager, Placeholder, State, Table, When } from '../view/parts.tsx';
import { word } from '../words/language.ts';
import { type ExecutedTransaction, FINAL_MILLIS, type ListedCut, useChain } from './chain-document.ts';
import { ChainLink, FactList, type Facts } from './links.tsx';

type Reward = RouteAnswer<'cutRewards'>['rewards'][number];

const factsOf = (cut: ListedCut): Facts => [
  [word('chain.finalized'), <When key="finalized" millis={cut.finalized_at_millis} />],
  [
    word('chain.id'),
    <span key="id" class="mono">
      {cut.cut_id}
    </span>,
  ],
  [
    word('chain.state_root'),
    <span key="root" class="mono">
      {cut.state_root}
    </span>,
  ],
  [
    word('chain.committee'),
    <span key="set" class="mono">
      {cut.validator_set_id}
    </span>,
  ],
  [word('chain.registered_blocks'), count(cut.registered_work)],
  [word('chain.executed_blocks'), count(cut.executed_work)],
  [word('chain.transactions'), count(cut.transactions)],
  [word('chain.subsidy'), <Amount key="subsidy" atoms={cut.subsidy} />],
  [word('chain.fees'), <Amount key="fees" atoms={cut.fees} />],
  [word('chain.block_work'), word('chain.hashes', { count: count(workOfTarget(BigInt(`0x${cut.target}`))) })],
];

const sumOf = ({ outputs }: ExecutedTransaction): string =>
  String(outputs.reduce((total, { amount }) => total + BigInt(amount), 0n));

const transactionColumns = (): Column<ExecutedTransaction>[] => [
  { title: word('place.transaction'), cell: ({ transaction_id: id }) => <ChainLink kind="transaction" id={id} /> },
  { title: word('chain.outcome'), cell: ({ outcome }) => <State state={outcome} /> },
  { title: word('pay.coins'), number: true, cell: (one) => <Amount atoms={sumOf(one)} /> },
  { title: word('chain.fee'), number: true, minor: true, cell: ({ fee }) => <Amount atoms={fee} /> },
  { title: word('blocks.block'), minor: true, cell: ({ block_id: id }) => <ChainLink kind="block" id={id} /> },
];

const rewardColumns = (): Column<Reward>[] => [
  { title: word('blocks.block'), cell: ({ block_id: id }) => <ChainLink kind="block" id={id} /> },
  { title: word('pay.coins'), number: true, cell: ({ amount }) => <Amount atoms={amount} /> },
];

export function CutView({ height }: { height: number }) {
  const isHeight = Number.isSafeInteger(height) && height >= 0;
  const { data, error } = useChain<'cuts'>(isHeight ? `cuts?before=${height + 1}&limit=1` : undefined);
  if (!isHeight) return <p role="status">{word('chain.not_height')}</p>;
  const cut = data?.cuts.find((one) => one.height === height);
  if (cut === undefined)
    return (
      <section class="card">
        {data === undefined ? (
          <Placeholder error={error} loading empty="" />
        ) : (
          <p role="status">
            {height > data.finalized_height
              ? word('chain.cut_to_come', { height: count(height), newest: count(data.finalized_height) })
              : word('chain.cut_gone')}
          </p>
        )}
      </section>
    );
  return (
    <>
      <section class="card">
        <div class="row head">
          <h2>{word('chain.cut', { height: count(height) })}</h2>
          <span>
            {height > 0 ? <a href={explorerLink('cut', height - 1)}>{word('chain.previous')}</a> : null}{' '}
            {data !== undefined && height < data.finalized_height ? (
              <a href={explorerLink('cut', height + 1)}>{word('chain.next')}</a>
            ) : null}
          </span>
        </div>
        <FactList facts={factsOf(cut)} />
      </section>
      <Transactions height={height} />
      <Rewards height={height} />
    </>
  );
}

function Transactions({ height }: { height: number }) {
  const [cursor, setCursor] = useState<string>();
  const { data, error } = useChain<'cutTransactions'>(
    `cuts/${height}/transactions${query({ cursor, limit: 20 })}`,
    FINAL_MILLIS,
  );
  return (
    <section class="card">
      <h2>{word('chain.transactions')}</h2>
      {data === undefined || data.transactions.length === 0 ? (
        <Placeholder error={error} loading={data === undefined} empty={word('chain.cut_empty')} />
      ) : (
        <Table
          caption={word('chain.in_order')}
          columns={transactionColumns()}
          rows={data.transactions}
          keyOf={({ transaction_id: id }) => id}
        />
      )}
      <Pager
        cursor={cursor}
        next={data?.next_cursor}
        onMove={setCursor}
        words={[word('chain.first'), word('list.more')]}
      />
    </section>
  );
}

function Rewards({ height }: { height: number }) {
  const [cursor, setCursor] = useState<string>();
  const { data, error } = useChain<'cutRewards'>(`cuts/${height}/rewards${query({ cursor, limit: 64 })}`, FINAL_MILLIS);
  return (
    <section class="card">
      <h2>{word('chain.paid_by_cut')}</h2>
      {data === undefined || data.rewards.length === 0 ? (
        <Placeholder error={error} loading={data === undefined} empty={word('chain.paid_none')} />
      ) : (
        <Table
          caption={word('chain.paid_blocks')}
          columns={rewardColumns()}
          rows={data.rewards}
          keyOf={({ block_id: id }) => id}
        />
      )}
      <Pager
        cursor={cursor}
        next={data?.next_cursor}
        onMove={setCursor}
        words={[word('chain.first'), word('list.more')]}
      />
    </section>
  );
}
