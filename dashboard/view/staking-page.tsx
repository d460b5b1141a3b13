/**
 * For stakers, to read: what an amount may earn, the validators, and what one address has staked and was paid. From the pool's node, or one on the reader's own machine; staking itself is done with
 * the wallet, which has the keys.
 */

import { useState } from 'preact/hooks';
import type { addressHistory } from '../../protocol/api/address-documents.ts';
import type { Infer } from '../../protocol/api/schema.ts';
import type {
  StakingPosition,
  stakingEstimate,
  stakingPositions,
  stakingValidators,
  ValidatorDocument,
} from '../../protocol/api/staking-documents.ts';
import { query } from '../data/client.ts';
import { checkNode, poolNode, rememberCheckNode } from '../data/node.ts';
import { type NodeRequest, useNodeDocument } from '../data/node-document.ts';
import { ChainLink } from '../explorer/links.tsx';
import { coins, count, fixed, percent, plainNumber, roundedCoins, smallPercent } from '../format.ts';
import { linkTo } from '../router.ts';
import { word } from '../words/language.ts';
import {
  Amount,
  type Column,
  EnteredText,
  FieldProblem,
  Figure,
  Identifier,
  Pager,
  Placeholder,
  State,
  Table,
} from './parts.tsx';

type History = Infer<typeof addressHistory>;
type HistoryEvent = History['events'][number];

const ATOMS = 100_000_000n;
const DECIMALS = 8;
const WINDOWS = 12;
const BASIS_POINTS = 10_000;

/** Atoms of a typed number of coins; undefined if it is not a number. */
export function atomsOf(typed: string): string | undefined {
  const match = /^(\d{1,10})(?:\.(\d{1,8}))?$/.exec(plainNumber(typed) ?? '');
  if (match === null) return undefined;
  const [, whole = '0', rest = ''] = match;
  return (BigInt(whole) * ATOMS + BigInt(rest.padEnd(DECIMALS, '0'))).toString();
}

/** A validator's commission, and an announced one. */
export function commission({ commission_bps: now, pending_commission: next }: ValidatorDocument): string {
  const shown = percent(now / BASIS_POINTS, 1);
  return next === null
    ? shown
    : word('stake.from_epoch', {
        now: shown,
        next: percent(next.commission_bps / BASIS_POINTS, 1),
        epoch: next.epoch,
      });
}

/** A phone shows the present one. */
function commissionCell(one: ValidatorDocument) {
  const present = commission({ ...one, pending_commission: null });
  return (
    <>
      {present}
      <span class="minor">{commission(one).slice(present.length)}</span>
    </>
  );
}

const attendance = ({ attended_windows: windows }: ValidatorDocument): string =>
  windows === null ? '–' : word('stake.attended_of', { count: windows, all: WINDOWS });

/** Jailed or waiting: until when. */
function stateNote({ state, jailed_until_epoch: jailed, seat_from_epoch: seat }: ValidatorDocument, epoch: number) {
  if (jailed !== null) return ` ${word('stake.jailed_until', { epoch: jailed })}`;
  return state === 'eligible' && seat > epoch ? ` ${word('stake.seat_from', { epoch: seat })}` : '';
}

export const stateOfPosition = ({ state, withdrawable, release_height: release }: StakingPosition): string =>
  state === 'bonded'
    ? word('stake.bonded')
    : withdrawable
      ? word('stake.withdrawable')
      : word('stake.unbonding_until', { height: count(release ?? 0) });

const positionColumns = (): Column<StakingPosition>[] => [
  { title: word('stake.position'), cell: (position) => <Identifier id={position.position_id} /> },
  {
    title: word('stake.kind'),
    minor: true,
    cell: ({ kind }) => word(kind === 'self_bond' ? 'stake.kind_self' : 'stake.kind_delegation'),
  },
  { title: word('place.validator'), cell: ({ validator }) => <ChainLink kind="validator" id={validator} /> },
  { title: word('stake.principal'), number: true, cell: ({ principal }) => <Amount atoms={principal} /> },
  { title: word('blocks.state'), cell: stateOfPosition },
  {
    title: word('stake.rewards_to'),
    minor: true,
    cell: ({ reward_address: to }) => <ChainLink kind="address" id={to} />,
  },
];

const rewardColumns = (): Column<HistoryEvent>[] => [
  { title: word('place.cut'), number: true, cell: ({ finalized_height: height }) => count(height) },
  { title: word('pay.coins'), number: true, cell: ({ amount }) => <Amount atoms={amount} /> },
];

function Estimate({ node }: { node: string }) {
  const [typed, setTyped] = useState('1000');
  const atoms = atomsOf(typed);
  const request =
    atoms === undefined ? undefined : { path: `/v1/economics/estimate/staking${query({ amount: atoms })}` };
  const { data, error } = useNodeDocument<Infer<typeof stakingEstimate>>(node, request);
  const share = data === undefined || data.amount === '0' ? 0 : Number(data.reward_per_day) / Number(data.amount);
  return (
    <section class="card">
      <h2>{word('stake.estimate')}</h2>
      <form class="row" onSubmit={(event) => event.preventDefault()}>
        <label class="grow">
          {word('stake.coins')}
          <input
            inputMode="decimal"
            value={typed}
            aria-invalid={atoms === undefined}
            aria-describedby="stake-problem"
            onInput={(event) => setTyped(event.currentTarget.value)}
          />
        </label>
      </form>
      <FieldProblem
        id="stake-problem"
        text={atoms === undefined ? word('stake.enter', { example: fixed(250.5, 1) }) : ''}
      />
      {atoms === undefined ? null : data === undefined ? (
        <Placeholder error={error} loading empty="" />
      ) : (
        <>
          <div class="grid">
            <Figure
              label={word('stake.per_day')}
              value={roundedCoins(data.reward_per_day)}
              note={word('stake.per_day_note', { part: smallPercent(share) })}
            />
            <Figure
              label={word('stake.pool_per_day')}
              value={roundedCoins(data.pool_per_day)}
              note={word('stake.pool_note', { coins: roundedCoins(data.sharing_stake) })}
            />
          </div>
          <p class="note">{word('stake.estimated')}</p>
        </>
      )}
    </section>
  );
}

function Validators({ node }: { node: string }) {
  const [cursor, setCursor] = useState<string>();
  const { data, error } = useNodeDocument<Infer<typeof stakingValidators>>(node, {
    path: `/v1/staking/validators${query({ cursor, limit: 64 })}`,
  });
  const epoch = data?.epoch ?? 0;
  const columns: Column<ValidatorDocument>[] = [
    { title: word('place.validator'), cell: ({ validator_id: id }) => <ChainLink kind="validator" id={id} /> },
    {
      title: word('blocks.state'),
      cell: (one) => (
        <>
          <State state={one.state} />
          {stateNote(one, epoch)}
        </>
      ),
    },
    { title: word('chain.stake'), number: true, cell: ({ stake }) => <Amount atoms={stake} /> },
    { title: word('chain.commission'), minor: true, cell: commissionCell },
    { title: word('stake.attended'), minor: true, cell: attendance },
    { title: word('chain.self_bond'), minor: true, number: true, cell: ({ self_bond: own }) => <Amount atoms={own} /> },
    { title: word('chain.delegations'), minor: true, number: true, cell: ({ delegations }) => count(delegations) },
  ];
  // Those with the most stake first, as far as the node's page goes.
  const rows = [...(data?.validators ?? [])].sort((a, b) => (BigInt(a.stake) < BigInt(b.stake) ? 1 : -1));
  return (
    <section class="card">
      <h2>{word('stake.validators')}</h2>
      {data === undefined ? null : (
        <p class="note">{word('stake.epoch', { epoch: count(data.epoch), height: count(data.finalized_height) })}</p>
      )}
      {rows.length === 0 ? (
        <Placeholder error={error} loading={data === undefined} empty={word('stake.no_validators')} />
      ) : (
        <Table caption={word('stake.validators')} columns={columns} rows={rows} keyOf={({ validator_id: id }) => id} />
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

function Positions({ node, address }: { node: string; address: string }) {
  const body = { addresses: [address] };
  const { data, error } = useNodeDocument<Infer<typeof stakingPositions>>(node, {
    path: '/v1/staking/positions',
    body,
  });
  const rows = data?.positions ?? [];
  return (
    <section class="card">
      <h2>{word('stake.positions')}</h2>
      {rows.length === 0 ? (
        <Placeholder error={error} loading={data === undefined} empty={word('stake.no_positions')} />
      ) : (
        <Table
          caption={word('stake.positions')}
          columns={positionColumns()}
          rows={rows}
          keyOf={({ position_id: id }) => id}
        />
      )}
      {data?.next_cursor === undefined ? null : <p class="note">{word('stake.more_positions')}</p>}
    </section>
  );
}

function Rewards({ node, address }: { node: string; address: string }) {
  const [cursor, setCursor] = useState<string>();
  const request: NodeRequest = {
    path: `/v1/address/${encodeURIComponent(address)}/history${query({ cursor, limit: 256 })}`,
  };
  const { data, error } = useNodeDocument<History>(node, request);
  const rows = (data?.events ?? []).filter(({ source, kind }) => source === 'stake_reward' && kind === 'received');
  const sum = rows.reduce((total, { amount }) => total + BigInt(amount), 0n);
  return (
    <section class="card">
      <h2>{word('stake.rewards')}</h2>
      {rows.length === 0 ? (
        <Placeholder error={error} loading={data === undefined} empty={word('stake.no_rewards')} />
      ) : (
        <>
          <p class="note">{word('stake.sum', { coins: coins(sum) })}</p>
          <Table
            caption={word('stake.rewards_newest')}
            columns={rewardColumns()}
            rows={rows}
            keyOf={({ outpoint }) => `${outpoint.transaction_id}/${outpoint.output_index}`}
          />
        </>
      )}
      <Pager cursor={cursor} next={data?.next_cursor} onMove={setCursor} />
    </section>
  );
}

export function StakingPage({ address }: { address: string | undefined }) {
  const [own, setOwn] = useState(checkNode());
  const node = own === '' ? poolNode() : own;
  return (
    <>
      <h1>{word('nav.staking')}</h1>
      <section class="card">
        <p class="note">{word('stake.read_only', { origin: location.origin })}</p>
        <div class="row">
          <EnteredText
            label={word('stake.node')}
            inputMode="url"
            value={own}
            placeholder="http://127.0.0.1:28701"
            onEnter={(typed) => {
              setOwn(typed);
              rememberCheckNode(typed);
            }}
          />
          <EnteredText
            label={word('stake.address')}
            value={address ?? ''}
            onEnter={(typed) => {
              location.hash = linkTo('staking', typed === '' ? undefined : typed);
            }}
          />
        </div>
      </section>
      {address === undefined ? null : (
        <div key={address}>
          <Positions node={node} address={address} />
          <Rewards node={node} address={address} />
        </div>
      )}
      <Estimate node={node} />
      <Validators node={node} />
    </>
  );
}
