/** The miners that are connected to this instance, to be looked for and banned. */
import { useState } from 'preact/hooks';
import type { ConnectionsDocument } from '../../pool/api/operator/operator-documents.ts';
import { query } from '../data/client.ts';
import { ago, count, MODES, shortId } from '../format.ts';
import { EnteredText, ListSaid, MinerLink, Table } from '../view/parts.tsx';
import { useOperated } from './operated.ts';
import type { Act } from './payout-queue.tsx';

const TIMES = [
  ['10 minutes', 10],
  ['1 hour', 60],
  ['1 day', 1_440],
  ['30 days', 43_200],
  ['1 year', 525_600],
] as const;

export function Connections({ token, turn, act }: { token: string; turn: number; act: Act }) {
  const [search, setSearch] = useState('');
  const [minutes, setMinutes] = useState(60);
  const list = useOperated<ConnectionsDocument>(token, `connections${query({ search })}`, turn);
  const time = TIMES.find(([, value]) => value === minutes)?.[0] ?? '';
  const ban = (key: string) => {
    if (window.confirm(`Ban ${key} for ${time}? All its connections are closed, at every instance.`))
      void act('bans', 'POST', { key, minutes });
  };
  const rows = list?.connections ?? [];
  const now = Date.now();
  return (
    <section class="card">
      <h2>Connections</h2>
      <div class="row">
        <EnteredText
          label="IP address, network, mining address, or part of a worker’s or program’s name"
          value={search}
          onEnter={setSearch}
        />
        <label>
          Ban for
          <select value={minutes} onChange={(event) => setMinutes(Number(event.currentTarget.value))}>
            {TIMES.map(([name, value]) => (
              <option key={value} value={value}>
                {name}
              </option>
            ))}
          </select>
        </label>
      </div>
      <p class="note">
        {list === undefined
          ? 'Loading…'
          : `${count(list.found)} of ${count(list.all)} connections of this instance${list.found > rows.length ? `; the newest ${count(rows.length)} are listed` : ''}. A ban holds at every instance.`}
      </p>
      <ListSaid rows={list?.connections} what="connections" />
      <Table
        hidden={rows.length === 0}
        caption="Connections, newest first"
        columns={[
          { title: 'IP address', cell: (one) => <span class="mono ip">{one.ip}</span> },
          {
            title: 'Ban',
            cell: ({ ip, address }) => (
              <span class="pair">
                <button type="button" aria-label={`Ban the IP address ${ip}`} onClick={() => ban(ip)}>
                  IP
                </button>
                {address === null ? null : (
                  <button type="button" aria-label={`Ban the miner ${shortId(address)}`} onClick={() => ban(address)}>
                    Miner
                  </button>
                )}
              </span>
            ),
          },
          {
            title: 'Miner',
            cell: (one) => (one.address === null ? 'not logged in' : <MinerLink address={one.address} />),
          },
          { title: 'Worker', minor: true, wide: true, cell: (one) => one.worker || '–' },
          { title: 'Program', minor: true, spare: true, cell: (one) => one.agent || '–' },
          { title: 'Mode', minor: true, spare: true, cell: (one) => MODES[one.service] },
          { title: 'Connected', minor: true, cell: (one) => ago(one.since_millis, now) },
          { title: 'Accepted', number: true, minor: true, cell: (one) => count(one.accepted) },
          { title: 'Stale', number: true, minor: true, spare: true, cell: (one) => count(one.stale) },
          { title: 'Rejected', number: true, minor: true, cell: (one) => count(one.rejected) },
        ]}
        rows={rows}
        keyOf={(one) => `${one.ip} ${one.address} ${one.worker} ${one.since_millis}`}
      />
    </section>
  );
}
