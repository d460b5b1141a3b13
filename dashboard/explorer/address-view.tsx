/** One address: its balance, and what it received and spent. */

import { useState } from 'preact/hooks';
import type { RouteAnswer } from '../../protocol/api/routes.ts';
import { query } from '../data/client.ts';
import { count } from '../format.ts';
import { linkTo } from '../router.ts';
import { Amount, type Column, Figure, Pager, Placeholder, RoundedAmount, Table, WholeName } from '../view/parts.tsx';
import { type WordKey, word } from '../words/language.ts';
import { useChain } from './chain-document.ts';
import { isAlone } from './explorer-node.ts';
import { ChainLink, CutLink } from './links.tsx';

type Event = RouteAnswer<'addressHistory'>['events'][number];

const SOURCES: Readonly<Record<Event['source'], WordKey>> = {
  regular: 'chain.payment',
  work_reward: 'chain.work_reward',
  stake_reward: 'chain.stake_reward',
  genesis: 'chain.genesis',
  stake_withdrawal: 'chain.withdrawal',
};

const columns = (): Column<Event>[] => [
  { title: word('place.cut'), number: true, cell: ({ finalized_height: height }) => <CutLink height={height} /> },
  { title: word('chain.what'), cell: ({ kind, source }) => word(kind === 'spent' ? 'chain.spent' : SOURCES[source]) },
  {
    title: word('pay.coins'),
    number: true,
    cell: ({ kind, amount }) => (
      <span class={kind === 'spent' ? '' : 'good'}>
        {kind === 'spent' ? '−' : '+'}
        <Amount atoms={amount} />
      </span>
    ),
  },
  {
    title: word('place.transaction'),
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
      <WholeName text={address} label={word('miner.address')} />
      {balance.data === undefined ? null : (
        <div class="grid">
          <Figure
            label={word('chain.balance')}
            value={<RoundedAmount atoms={balance.data.balance} />}
            note={word('chain.outputs', { count: count(balance.data.utxos) })}
          />
          {isAlone() ? null : (
            <Figure
              label={word('chain.other_pages')}
              value={<a href={linkTo('miner', address)}>{word('chain.mining_here')}</a>}
              note={<a href={linkTo('staking', address)}>{word('nav.staking')}</a>}
            />
          )}
        </div>
      )}
      <section class="card">
        <h2>{word('chain.history')}</h2>
        {data === undefined || data.events.length === 0 ? (
          <Placeholder error={error} loading={data === undefined} empty={word('chain.never_paid')} />
        ) : (
          <Table
            caption={word('chain.history_newest')}
            columns={columns()}
            rows={data.events}
            keyOf={({ kind, outpoint }) => `${kind}/${outpoint.transaction_id}/${outpoint.output_index}`}
          />
        )}
        <Pager cursor={cursor} next={data?.next_cursor} onMove={setCursor} />
      </section>
    </>
  );
}
