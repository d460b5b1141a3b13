/** All blocks of the pool with the state of their rewards, by service, state and finder, in pages. */
import { useState } from 'preact/hooks';
import type { BlockDocument, BlocksDocument, PoolBlock, PoolDocument } from '../../pool/api/documents.ts';
import { formatCoins } from '../../protocol/amount.ts';
import { query } from '../data/client.ts';
import { type CsvColumn, csvTime } from '../data/csv.ts';
import { useDocument, useNow } from '../data/hooks.ts';
import { type PaidIn, usePaidIn } from '../data/paid-in.ts';
import { ChainLink, CutLink, FactList, type Facts } from '../explorer/links.tsx';
import { ago, coins, count, fullTime, MODES, percent } from '../format.ts';
import { explorerLink, linkTo } from '../router.ts';
import { CsvButton } from './csv-button.tsx';
import {
  Amount,
  BlockLink,
  type Column,
  EnteredText,
  ListSaid,
  MinerLink,
  Pager,
  Placeholder,
  StartMining,
  State,
  Table,
  When,
  WholeName,
} from './parts.tsx';

const effortText = (effort: number): string => (effort > 0 && effort < 0.01 ? 'below 1 %' : percent(effort));

export const blockColumns = (now: number, paidIn: PaidIn): Column<PoolBlock>[] => [
  { title: 'Found', cell: (block) => <span title={fullTime(block.found_millis)}>{ago(block.found_millis, now)}</span> },
  {
    title: 'Anchor',
    number: true,
    minor: true,
    spare: true,
    cell: (block) => <CutLink height={block.anchor_height} />,
  },
  { title: 'Block', cell: (block) => <BlockLink id={block.block_id} /> },
  { title: 'Mode', minor: true, cell: (block) => MODES[block.service] },
  { title: 'Finder', minor: true, spare: true, cell: (block) => <MinerLink address={block.finder} /> },
  { title: 'Worker', minor: true, spare: true, cell: (block) => block.worker || '–' },
  { title: 'Effort', number: true, minor: true, cell: (block) => effortText(block.effort) },
  { title: 'Reward', number: true, cell: (block) => <Amount atoms={block.reward} /> },
  {
    title: 'State',
    cell: (block) => (
      <span title={block.reason ?? ''}>
        <State state={block.state} />
        <span class="note below minor">{paidIn(block)}</span>
      </span>
    ),
  },
];

const BLOCKS_CSV: CsvColumn<PoolBlock>[] = [
  ['found', (block) => csvTime(block.found_millis)],
  ['block', (block) => block.block_id],
  ['mode', (block) => block.service],
  ['finder', (block) => block.finder],
  ['worker', (block) => block.worker],
  ['anchor', (block) => block.anchor_height],
  ['effort', (block) => block.effort],
  ['state', (block) => block.state],
  ['reward_coins', (block) => (block.reward === null ? null : formatCoins(BigInt(block.reward)))],
];

const STATES = ['found', 'accepted', 'registered', 'held', 'paid', 'expired', 'refused'];

const BLOCK_ID = /^[0-9a-f]{96}$/;

export const BlocksPage = ({ block }: { block: string | undefined }) =>
  block === undefined ? <BlockList /> : <OneBlock id={block} />;

function OneBlock({ id }: { id: string }) {
  const { data: block, error } = useDocument<BlockDocument>(`blocks/${encodeURIComponent(id)}`, 5000);
  const paidIn = usePaidIn(useDocument<PoolDocument>('pool', 5_000).data);
  const now = useNow();
  const facts: Facts =
    block === undefined
      ? []
      : [
          ['State', <State key="state" state={block.state} />],
          ...(block.reason === null ? [] : [['Reason', block.reason] as [string, string]]),
          [
            'Found',
            <>
              <When millis={block.found_millis} />, {ago(block.found_millis, now)}
            </>,
          ],
          ['Reward', block.reward === null ? (paidIn(block) ?? 'not paid yet') : `${coins(block.reward)} coins`],
          ['Mode', MODES[block.service]],
          [
            'Finder',
            <a key="finder" class="mono" href={linkTo('miner', block.finder)}>
              {block.finder}
            </a>,
          ],
          ['Worker', block.worker || '–'],
          ['Effort', effortText(block.effort)],
          ['Anchor', <CutLink key="anchor" height={block.anchor_height} />],
          ['On the chain', <ChainLink key="chain" kind="block" id={block.block_id} />],
          ['Slice', `${count(block.slice)}${block.credited ? ', credited' : ', not credited yet'}`],
        ];
  return (
    <>
      <h1>Block</h1>
      <WholeName text={id} label="block id" />
      <section class="card">
        {block === undefined ? (
          error?.status === 404 || error?.status === 400 ? (
            <p role="status">
              This pool found no such block. <a href={explorerLink('find', id)}>Look for it on the chain</a>
            </p>
          ) : (
            <Placeholder error={error} loading empty="" />
          )
        ) : (
          <FactList facts={facts} />
        )}
      </section>
      <p>
        <a href={linkTo('blocks')}>All blocks</a>
      </p>
    </>
  );
}

function BlockList() {
  const [service, setService] = useState('');
  const [state, setState] = useState('');
  const [finder, setFinder] = useState('');
  const [cursor, setCursor] = useState<string>();
  const blocks = useDocument<BlocksDocument>(`blocks${query({ service, state, finder, cursor, limit: 50 })}`);
  const paidIn = usePaidIn(useDocument<PoolDocument>('pool').data);
  const now = useNow(10_000);
  const chosen = (set: (value: string) => void) => (value: string) => {
    setCursor(undefined);
    set(value);
  };
  const search = (text: string) => {
    if (BLOCK_ID.test(text.toLowerCase())) location.hash = linkTo('blocks', text.toLowerCase());
    else chosen(setFinder)(text);
  };
  const rows = blocks.data?.blocks ?? [];
  return (
    <>
      <h1>Blocks</h1>
      <div class="row">
        <label>
          Mode
          <select value={service} onChange={(event) => chosen(setService)(event.currentTarget.value)}>
            <option value="">all</option>
            <option value="pplns">PPLNS</option>
            <option value="solo">Solo</option>
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
        <EnteredText label="Finder’s address or block id" value={finder} onEnter={search} />
      </div>
      <section class="card">
        <CsvButton
          name="blocks"
          columns={BLOCKS_CSV}
          pathOf={(cursor) => `blocks${query({ service, state, finder, cursor, limit: 200 })}`}
          rowsOf={(document: BlocksDocument) => document.blocks}
          feed={`feeds/blocks.atom${query({ address: finder })}`}
        />
        <ListSaid rows={blocks.data?.blocks} what="blocks" />
        {rows.length === 0 ? (
          <Placeholder
            error={blocks.error}
            loading={blocks.data === undefined}
            empty={
              service + state + finder === '' ? (
                <>
                  No blocks found yet. <StartMining />
                </>
              ) : (
                <>
                  No blocks match these filters.{' '}
                  <button
                    type="button"
                    class="link"
                    onClick={() => {
                      for (const set of [setService, setState, setFinder]) chosen(set)('');
                      // The button goes; the keyboard stays on the page.
                      document.getElementById('main')?.focus({ preventScroll: true });
                    }}
                  >
                    Show all blocks
                  </button>
                </>
              )
            }
          />
        ) : (
          <Table
            caption="Blocks, newest first"
            columns={blockColumns(now, paidIn)}
            rows={rows}
            keyOf={(block) => block.block_id}
          />
        )}
        <Pager cursor={cursor} next={blocks.data?.next_cursor} onMove={setCursor} />
      </section>
    </>
  );
}
