/** One address: its balance, and what it received and spent. */
import { useState } from 'preact/hooks';
import type { RouteAnswer } from '../../protocol/api/routes.ts';
import { query } from '../data/client.ts';
import { count } from '../format.ts';
import { linkTo } from '../router.ts';
import { Amount, type Column, Figure, Pager, Placeholder, RoundedAmount, Table, WholeName } from '../view/parts.tsx';
import { useChain } from './chain-document.ts';
import { isAlone } from './explorer-node.ts';
import { ChainLink, CutLink } from './links.tsx';

type Event = RouteAnswer<'addressHistory'>['events'][number];

const SOURCES: Readonly<Record<Event['source'], string>> = {
  regular: 'payment',
  work_reward: 'reward of a work block',
  stake_reward: 'staking reward',
  genesis: 'genesis',
  stake_withdrawal: 'stake withdrawn',
};

const columns: Column<Event>[] = [
  { title: 'Cut', number: true, cell: ({ finalized_height: height }) => <CutLink height={height} /> },
  { title: 'What', cell: ({ kind, source }) => (kind === 'spent' ? 'spent' : SOURCES[source]) },
  {
    title: 'Coins',
    number: true,
    cell: ({ kind, amount }) => (
      <span class={kind === 'spent' ? '' : 'good'}>
        {kind === 'spent' ? '−' : '+'}
        <Amount atoms={amount} />
      </span>
    ),
  },
  {
    title: 'Transaction',
    cell: ({ kind, source, transaction_id: id }) =>
      kind === 'spent' || source === 'regular' ? <ChainLink kind="transaction" id={id} /> : '–',
  },
];

export function AddressView({ address }: { address: string }) {
  const path = `address/${encodeURIComponent(address)}`;
  const [cursor, setCursor] = useState<string>();
  const balance = useChain<'addressBalance'>(`${path}/balance`);
  const { data, error } = useChain<'addressHistory'>(`${path}/history${query({ cursor, limit: 50 })}`);
  return (
    <>
      <WholeName text={address} label="address" />
      {balance.data === undefined ? null : (
        <div class="grid">
          <Figure
            label="Balance"
            value={<RoundedAmount atoms={balance.data.balance} />}
            note={`in ${count(balance.data.utxos)} outputs`}
          />
          {isAlone() ? null : (
            <Figure
              label="Other pages"
              value={<a href={linkTo('miner', address)}>Mining at this pool</a>}
              note={<a href={linkTo('staking', address)}>Staking</a>}
            />
          )}
        </div>
      )}
      <section class="card">
        <h2>History</h2>
        {data === undefined || data.events.length === 0 ? (
          <Placeholder error={error} loading={data === undefined} empty="Nothing was ever paid to this address." />
        ) : (
          <Table
            caption="What it received and spent, newest first"
            columns={columns}
            rows={data.events}
            keyOf={({ kind, outpoint }) => `${kind}/${outpoint.transaction_id}/${outpoint.output_index}`}
          />
        )}
        <Pager cursor={cursor} next={data?.next_cursor} onMove={setCursor} />
      </section>
    </>
  );
}
