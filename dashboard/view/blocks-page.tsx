/** All blocks of the pool with the state of their rewards, by service, state and finder, in pages. */

import { useState } from 'preact/hooks';
import type { BlockDocument, BlocksDocument, PoolBlock, PoolDocument } from '../../pool/api/documents.ts';
import { formatCoins } from '../../protocol/amount.ts';
import { query } from '../data/client.ts';
import { type CsvColumn, csvTime } from '../data/csv.ts';
import { useDocument, useNow } from '../data/hooks.ts';
import { type PaidIn, usePaidIn } from '../data/pace.ts';
import { ChainLink, CutLink, FactList, type Facts } from '../explorer/links.tsx';
import { ago, coins, count, fullTime, MODES, percent } from '../format.ts';
import { explorerLink, linkTo } from '../router.ts';
import { word } from '../words/language.ts';
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
  stateText,
  Table,
  When,
  WholeName,
} from './parts.tsx';

const effortText = (effort: number): string =>
  effort > 0 && effort < 0.01 ? word('blocks.below_one') : percent(effort);

export const blockColumns = (now: number, paidIn: PaidIn): Column<PoolBlock>[] => [
  {
    title: word('blocks.found'),
    cell: (block) => <span title={fullTime(block.found_millis)}>{ago(block.found_millis, now)}</span>,
  },
  {
    title: word('blocks.anchor'),
    number: true,
    minor: true,
    spare: true,
    cell: (block) => <CutLink height={block.anchor_height} />,
  },
  { title: word('blocks.block'), cell: (block) => <BlockLink id={block.block_id} /> },
  { title: word('blocks.mode'), minor: true, cell: (block) => MODES[block.service] },
  { title: word('blocks.finder'), minor: true, spare: true, cell: (block) => <MinerLink address={block.finder} /> },
  { title: word('blocks.worker'), minor: true, spare: true, cell: (block) => block.worker || '–' },
  { title: word('blocks.effort'), number: true, minor: true, cell: (block) => effortText(block.effort) },
  { title: word('blocks.reward'), number: true, cell: (block) => <Amount atoms={block.reward} /> },
  {
    title: word('blocks.state'),
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
          [word('blocks.state'), <State key="state" state={block.state} />],
          ...(block.reason === null ? [] : [[word('blocks.reason'), block.reason] as [string, string]]),
          [
            word('blocks.found'),
            <>
              <When millis={block.found_millis} />, {ago(block.found_millis, now)}
            </>,
          ],
          [
            word('blocks.reward'),
            block.reward === null
              ? (paidIn(block) ?? word('blocks.not_paid'))
              : word('part.coins', { coins: coins(block.reward) }),
          ],
          [word('blocks.mode'), MODES[block.service]],
          [
            word('blocks.finder'),
            <a key="finder" class="mono" href={linkTo('miner', block.finder)}>
              {block.finder}
            </a>,
          ],
          [word('blocks.worker'), block.worker || '–'],
          [word('blocks.effort'), effortText(block.effort)],
          [word('blocks.anchor'), <CutLink key="anchor" height={block.anchor_height} />],
          [word('blocks.on_chain'), <ChainLink key="chain" kind="block" id={block.block_id} />],
          [
            word('blocks.slice'),
            word(block.credited ? 'blocks.credited' : 'blocks.not_credited', { slice: count(block.slice) }),
          ],
        ];
  return (
    <>
      <h1>{word('blocks.block')}</h1>
      <WholeName text={id} label={word('blocks.id')} />
      <section class="card">
        {block === undefined ? (
          error?.status === 404 || error?.status === 400 ? (
            <p role="status">
              {word('blocks.unknown')} <a href={explorerLink('find', id)}>{word('blocks.look')}</a>
            </p>
          ) : (
            <Placeholder error={error} loading empty="" />
          )
        ) : (
          <FactList facts={facts} />
        )}
      </section>
      <p>
        <a href={linkTo('blocks')}>{word('details.all')}</a>
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
      <h1>{word('nav.blocks')}</h1>
      <div class="row">
        <label>
          {word('blocks.mode')}
          <select value={service} onChange={(event) => chosen(setService)(event.currentTarget.value)}>
            <option value="">{word('blocks.all_states')}</option>
            <option value="pplns">{MODES.pplns}</option>
            <option value="solo">{MODES.solo}</option>
          </select>
        </label>
        <label>
          {word('blocks.state')}
          <select value={state} onChange={(event) => chosen(setState)(event.currentTarget.value)}>
            <option value="">{word('blocks.all_states')}</option>
            {STATES.map((name) => (
              <option key={name} value={name}>
                {stateText(name)}
              </option>
            ))}
          </select>
        </label>
        <EnteredText label={word('blocks.search')} value={finder} onEnter={search} />
      </div>
      <section class="card">
        <CsvButton
          name="blocks"
          columns={BLOCKS_CSV}
          pathOf={(cursor) => `blocks${query({ service, state, finder, cursor, limit: 200 })}`}
          rowsOf={(document: BlocksDocument) => document.blocks}
          feed={`feeds/blocks.atom${query({ address: finder })}`}
        />
        <ListSaid rows={blocks.data?.blocks} what={word('blocks.blocks')} />
        {rows.length === 0 ? (
          <Placeholder
            error={blocks.error}
            loading={blocks.data === undefined}
            empty={
              service + state + finder === '' ? (
                <>
                  {word('details.none')} <StartMining />
                </>
              ) : (
                <>
                  {word('blocks.no_match')}{' '}
                  <button
                    type="button"
                    class="link"
                    onClick={() => {
                      for (const set of [setService, setState, setFinder]) chosen(set)('');
                      // The button goes; the keyboard stays on the page.
                      document.getElementById('main')?.focus({ preventScroll: true });
                    }}
                  >
                    {word('blocks.show_all')}
                  </button>
                </>
              )
            }
          />
        ) : (
          <Table
            caption={word('blocks.newest_first')}
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
