/** The miners that are connected to this instance, to be looked for and banned. */
import { useState } from 'preact/hooks';
import type { ConnectionsDocument } from '../../pool/api/operator/operator-documents.ts';
import { query } from '../data/client.ts';
import { ago, count, MODES, shortId } from '../format.ts';
import { EnteredText, ListSaid, MinerLink, Table } from '../view/parts.tsx';
import { word } from '../words/language.ts';
import { useOperated } from './operated.ts';
import type { Act } from './payout-queue.tsx';

/** By minutes. */
const times = () =>
  [
    [word('operator.ten_minutes'), 10],
    [word('chart.hour'), 60],
    [word('operator.one_day'), 1_440],
    [word('chart.days', { count: 30 }), 43_200],
    [word('operator.one_year'), 525_600],
  ] as const;

export function Connections({ token, turn, act }: { token: string; turn: number; act: Act }) {
  const [search, setSearch] = useState('');
  const [minutes, setMinutes] = useState(60);
  const list = useOperated<ConnectionsDocument>(token, `connections${query({ search })}`, turn);
  const time = times().find(([, value]) => value === minutes)?.[0] ?? '';
  const ban = (key: string) => {
    if (window.confirm(word('operator.ban_asked', { key, time }))) void act('bans', 'POST', { key, minutes });
  };
  const rows = list?.connections ?? [];
  const now = Date.now();
  return (
    <section class="card">
      <h2>{word('operator.connections')}</h2>
      <div class="row">
        <EnteredText label={word('operator.search')} value={search} onEnter={setSearch} />
        <label>
          {word('operator.ban_for')}
          <select value={minutes} onChange={(event) => setMinutes(Number(event.currentTarget.value))}>
            {times().map(([name, value]) => (
              <option key={value} value={value}>
                {name}
              </option>
            ))}
          </select>
        </label>
      </div>
      <p class="note">
        {list === undefined
          ? word('lazy.loading')
          : word(list.found > rows.length ? 'operator.listed_newest' : 'operator.listed', {
              found: count(list.found),
              all: count(list.all),
              rows: count(rows.length),
            })}
      </p>
      <ListSaid rows={list?.connections} what={word('operator.connections_listed')} />
      <Table
        hidden={rows.length === 0}
        caption={word('operator.newest_connections')}
        columns={[
          { title: word('operator.ip'), cell: (one) => <span class="mono ip">{one.ip}</span> },
          {
            title: word('operator.ban'),
            cell: ({ ip, address }) => (
              <span class="pair">
                <button type="button" aria-label={word('operator.ban_ip', { ip })} onClick={() => ban(ip)}>
                  IP
                </button>
                {address === null ? null : (
                  <button
                    type="button"
                    aria-label={word('operator.ban_miner', { miner: shortId(address) })}
                    onClick={() => ban(address)}
                  >
                    {word('chain.miner')}
                  </button>
                )}
              </span>
            ),
          },
          {
            title: word('chain.miner'),
            cell: (one) =>
              one.address === null ? word('operator.not_logged_in') : <MinerLink address={one.address} />,
          },
          {
            title: word('blocks.worker'),
            minor: true,
            cell: (one) => <span class="worker">{one.worker || '–'}</span>,
          },
          {
            title: word('operator.program'),
            minor: true,
            spare: true,
            cell: (one) => <span class="worker">{one.agent || '–'}</span>,
          },
          { title: word('blocks.mode'), minor: true, spare: true, cell: (one) => MODES[one.service] },
          { title: word('operator.connected'), minor: true, cell: (one) => ago(one.since_millis, now) },
          { title: word('worker.accepted'), number: true, minor: true, cell: (one) => count(one.accepted) },
          { title: word('worker.stale'), number: true, minor: true, spare: true, cell: (one) => count(one.stale) },
          { title: word('worker.rejected'), number: true, minor: true, cell: (one) => count(one.rejected) },
        ]}
        rows={rows}
        keyOf={(one) => `${one.ip} ${one.address} ${one.worker} ${one.since_millis}`}
      />
    </section>
  );
}
