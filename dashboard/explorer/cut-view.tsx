/** One cut: what it says of itself, the transactions it executed and the blocks it paid. */
import { useState } from 'preact/hooks';
import type { RouteAnswer } from '../../protocol/api/routes.ts';
import { workOfTarget } from '../../protocol/ledger/target.ts';
import { query } from '../data/client.ts';
import { count } from '../format.ts';
import { explorerLink } from '../router.ts';
import { Amount, type Column, Pager, Placeholder, State, Table, When } from '../view/parts.tsx';
import { type ExecutedTransaction, FINAL_MILLIS, type ListedCut, useChain } from './chain-document.ts';
import { ChainLink, FactList, type Facts } from './links.tsx';

type Reward = RouteAnswer<'cutRewards'>['rewards'][number];

const factsOf = (cut: ListedCut): Facts => [
  ['Finalized', <When key="finalized" millis={cut.finalized_at_millis} />],
  [
    'Id',
    <span key="id" class="mono">
      {cut.cut_id}
    </span>,
  ],
  [
    'State root',
    <span key="root" class="mono">
      {cut.state_root}
    </span>,
  ],
  [
    'Committee',
    <span key="set" class="mono">
      {cut.validator_set_id}
    </span>,
  ],
  ['Blocks registered', count(cut.registered_work)],
  ['Blocks executed', count(cut.executed_work)],
  ['Transactions', count(cut.transactions)],
  ['Subsidy', <Amount key="subsidy" atoms={cut.subsidy} />],
  ['Fees', <Amount key="fees" atoms={cut.fees} />],
  ['Work of a block', `${count(workOfTarget(BigInt(`0x${cut.target}`)))} hashes`],
];

const sumOf = ({ outputs }: ExecutedTransaction): string =>
  String(outputs.reduce((total, { amount }) => total + BigInt(amount), 0n));

const transactionColumns: Column<ExecutedTransaction>[] = [
  { title: 'Transaction', cell: ({ transaction_id: id }) => <ChainLink kind="transaction" id={id} /> },
  { title: 'Outcome', cell: ({ outcome }) => <State state={outcome} /> },
  { title: 'Coins', number: true, cell: (one) => <Amount atoms={sumOf(one)} /> },
  { title: 'Fee', number: true, minor: true, cell: ({ fee }) => <Amount atoms={fee} /> },
  { title: 'Block', minor: true, cell: ({ block_id: id }) => <ChainLink kind="block" id={id} /> },
];

const rewardColumns: Column<Reward>[] = [
  { title: 'Block', cell: ({ block_id: id }) => <ChainLink kind="block" id={id} /> },
  { title: 'Coins', number: true, cell: ({ amount }) => <Amount atoms={amount} /> },
];

export function CutView({ height }: { height: number }) {
  const isHeight = Number.isSafeInteger(height) && height >= 0;
  const { data, error } = useChain<'cuts'>(isHeight ? `cuts?before=${height + 1}&limit=1` : undefined);
  if (!isHeight) return <p role="status">This is not the height of a cut.</p>;
  const cut = data?.cuts.find((one) => one.height === height);
  if (cut === undefined)
    return (
      <section class="card">
        {data === undefined ? (
          <Placeholder error={error} loading empty="" />
        ) : (
          <p role="status">
            {height > data.finalized_height
              ? `Cut ${count(height)} does not exist yet; the newest is ${count(data.finalized_height)}.`
              : 'The node no longer has this cut.'}
          </p>
        )}
      </section>
    );
  return (
    <>
      <section class="card">
        <div class="row head">
          <h2>Cut {count(height)}</h2>
          <span>
            {height > 0 ? <a href={explorerLink('cut', height - 1)}>Previous</a> : null}{' '}
            {data !== undefined && height < data.finalized_height ? (
              <a href={explorerLink('cut', height + 1)}>Next</a>
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
      <h2>Transactions</h2>
      {data === undefined || data.transactions.length === 0 ? (
        <Placeholder error={error} loading={data === undefined} empty="This cut executed no transactions." />
      ) : (
        <Table
          caption="Transactions, in the order of execution"
          columns={transactionColumns}
          rows={data.transactions}
          keyOf={({ transaction_id: id }) => id}
        />
      )}
      <Pager cursor={cursor} next={data?.next_cursor} onMove={setCursor} words={['First', 'More']} />
    </section>
  );
}

function Rewards({ height }: { height: number }) {
  const [cursor, setCursor] = useState<string>();
  const { data, error } = useChain<'cutRewards'>(`cuts/${height}/rewards${query({ cursor, limit: 64 })}`, FINAL_MILLIS);
  return (
    <section class="card">
      <h2>Blocks paid by this cut</h2>
      {data === undefined || data.rewards.length === 0 ? (
        <Placeholder error={error} loading={data === undefined} empty="This cut paid for no blocks." />
      ) : (
        <Table caption="Blocks paid" columns={rewardColumns} rows={data.rewards} keyOf={({ block_id: id }) => id} />
      )}
      <Pager cursor={cursor} next={data?.next_cursor} onMove={setCursor} words={['First', 'More']} />
    </section>
  );
}
