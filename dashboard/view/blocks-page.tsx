/** All blocks of the pool with the state of their rewards, by service, state and finder, in pages. */
import { useState } from 'preact/hooks';
import type { BlocksDocument, PoolBlock } from '../../pool/api/documents.ts';
import { query } from '../data/client.ts';
import { useDocument, useNow } from '../data/hooks.ts';
import { ago, count, percent, time } from '../format.ts';
import { Amount, type Column, Identifier, MinerLink, Pager, Placeholder, State, Table } from './parts.tsx';

export const blockColumns = (now: number): Column<PoolBlock>[] => [
  { title: 'Found', cell: (block) => <span title={time(block.found_millis)}>{ago(block.found_millis, now)}</span> },
  { title: 'Anchor', number: true, cell: (block) => count(block.anchor_height) },
  { title: 'Block', cell: (block) => <Identifier id={block.block_id} /> },
  { title: 'Mode', cell: (block) => block.service },
  { title: 'Finder', cell: (block) => <MinerLink address={block.finder} /> },
  { title: 'Worker', cell: (block) => block.worker || '–' },
  { title: 'Effort', number: true, cell: (block) => percent(block.effort) },
  { title: 'Reward', number: true, cell: (block) => <Amount atoms={block.reward} /> },
  {
    title: 'State',
    cell: (block) => (
      <span title={block.reason ?? ''}>
        <State state={block.state} />
      </span>
    ),
  },
];

const STATES = ['found', 'accepted', 'registered', 'paid', 'expired', 'refused'];

export function BlocksPage() {
  const [service, setService] = useState('');
  const [state, setState] = useState('');
  const [finder, setFinder] = useState('');
  const [cursor, setCursor] = useState<string>();
  const blocks = useDocument<BlocksDocument>(`blocks${query({ service, state, finder, cursor, limit: 50 })}`);
  const now = useNow(10_000);
  const chosen = (set: (value: string) => void) => (value: string) => {
    setCursor(undefined);
    set(value);
  };
  const rows = blocks.data?.blocks ?? [];
  return (
    <>
      <h1>Blocks</h1>
      <form class="row" onSubmit={(event) => event.preventDefault()}>
        <label>
          Mode
          <select value={service} onChange={(event) => chosen(setService)(event.currentTarget.value)}>
            <option value="">all</option>
            <option value="pplns">PPLNS</option>
            <option value="solo">solo</option>
          </select>
        </label>
        <label>
          State
          <select value={state} onChange={(event) => chosen(setState)(event.currentTarget.value)}>
            <option value="">all</option>
            {STATES.map((name) => (
              <option key={name} value={name}>
                {name}
              </option>
            ))}
          </select>
        </label>
        <label class="grow">
          Finder’s address
          <input
            type="search"
            value={finder}
            spellcheck={false}
            onChange={(event) => chosen(setFinder)(event.currentTarget.value.trim())}
          />
        </label>
      </form>
      <section class="card">
        {rows.length === 0 ? (
          <Placeholder error={blocks.error} loading={blocks.data === undefined} empty="No block matches." />
        ) : (
          <Table
            caption="Blocks, newest first"
            columns={blockColumns(now)}
            rows={rows}
            keyOf={(block) => block.block_id}
          />
        )}
        <Pager
          first={cursor === undefined}
          next={blocks.data?.next_cursor !== undefined}
          onFirst={() => setCursor(undefined)}
          onNext={() => setCursor(blocks.data?.next_cursor)}
        />
      </section>
    </>
  );
}
