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
import { coins, count, percent, roundedCoins, smallPercent } from '../format.ts';
import { linkTo } from '../router.ts';
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
  const match = /^(\d{1,10})(?:\.(\d{1,8}))?$/.exec(typed.replaceAll(',', '').trim());
  if (match === null) return undefined;
  const [, whole = '0', rest = ''] = match;
  return (BigInt(whole) * ATOMS + BigInt(rest.padEnd(DECIMALS, '0'))).toString();
}

/** A validator's commission, and an announced one. */
export function commission({ commission_bps: now, pending_commission: next }: ValidatorDocument): string {
  const shown = percent(now / BASIS_POINTS, 1);
  return next === null ? shown : `${shown}, ${percent(next.commission_bps / BASIS_POINTS, 1)} from epoch ${next.epoch}`;
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
  windows === null ? '–' : `${windows} of ${WINDOWS}`;

/** Jailed or waiting: until when. */
function stateNote({ state, jailed_until_epoch: jailed, seat_from_epoch: seat }: ValidatorDocument, epoch: number) {
  if (jailed !== null) return ` until epoch ${jailed}`;
  return state === 'eligible' && seat > epoch ? ` from epoch ${seat}` : '';
}

export const stateOfPosition = ({ state, withdrawable, release_height: release }: StakingPosition): string =>
  state === 'bonded' ? 'bonded' : withdrawable ? 'withdrawable' : `unbonding until cut ${count(release ?? 0)}`;

const positionColumns: Column<StakingPosition>[] = [
  { title: 'Position', cell: (position) => <Identifier id={position.position_id} /> },
  { title: 'Kind', minor: true, cell: ({ kind }) => (kind === 'self_bond' ? 'self-bond' : kind) },
  { title: 'Validator', cell: ({ validator }) => <ChainLink kind="validator" id={validator} /> },
  { title: 'Principal', number: true, cell: ({ principal }) => <Amount atoms={principal} /> },
  { title: 'State', cell: stateOfPosition },
  { title: 'Rewards to', minor: true, cell: ({ reward_address: to }) => <ChainLink kind="address" id={to} /> },
];

const rewardColumns: Column<HistoryEvent>[] = [
  { title: 'Cut', number: true, cell: ({ finalized_height: height }) => count(height) },
  { title: 'Coins', number: true, cell: ({ amount }) => <Amount atoms={amount} /> },
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
      <h2>Estimate</h2>
      <form class="row" onSubmit={(event) => event.preventDefault()}>
        <label class="grow">
          Coins to stake
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
        text={atoms === undefined ? 'Enter a number of coins, such as 1000 or 250.5.' : ''}
      />
      {atoms === undefined ? null : data === undefined ? (
        <Placeholder error={error} loading empty="" />
      ) : (
        <>
          <div class="grid">
            <Figure
              label="Reward per day"
              value={roundedCoins(data.reward_per_day)}
              note={`coins; ${smallPercent(share)} of the stake`}
            />
            <Figure
              label="Paid to stakers per day"
              value={roundedCoins(data.pool_per_day)}
              note={`coins, shared by ${roundedCoins(data.sharing_stake)} coins staked with the committee`}
            />
          </div>
          <p class="note">
            Estimated from the current epoch (about a day), fees included, before the validator’s commission. It is paid
            only while the validator is in the committee and attends. None of it is guaranteed.
          </p>
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
    { title: 'Validator', cell: ({ validator_id: id }) => <ChainLink kind="validator" id={id} /> },
    {
      title: 'State',
      cell: (one) => (
        <>
          <State state={one.state} />
          {stateNote(one, epoch)}
        </>
      ),
    },
    { title: 'Stake', number: true, cell: ({ stake }) => <Amount atoms={stake} /> },
    { title: 'Commission', cell: commissionCell },
    { title: 'Attended', minor: true, cell: attendance },
    { title: 'Self-bond', minor: true, number: true, cell: ({ self_bond: own }) => <Amount atoms={own} /> },
    { title: 'Delegations', minor: true, number: true, cell: ({ delegations }) => count(delegations) },
  ];
  // Those with the most stake first, as far as the node's page goes.
  const rows = [...(data?.validators ?? [])].sort((a, b) => (BigInt(a.stake) < BigInt(b.stake) ? 1 : -1));
  return (
    <section class="card">
      <h2>Validators</h2>
      {data === undefined ? null : (
        <p class="note">
          Epoch {count(data.epoch)} at cut {count(data.finalized_height)}. A member that attends fewer than 9 of 12
          windows of an epoch earns nothing in it, and neither do its delegators.
        </p>
      )}
      {rows.length === 0 ? (
        <Placeholder error={error} loading={data === undefined} empty="There are no validators yet." />
      ) : (
        <Table caption="Validators" columns={columns} rows={rows} keyOf={({ validator_id: id }) => id} />
      )}
      <Pager cursor={cursor} next={data?.next_cursor} onMove={setCursor} words={['First', 'More']} />
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
      <h2>Positions</h2>
      {rows.length === 0 ? (
        <Placeholder
          error={error}
          loading={data === undefined}
          empty="This address owns no stake. Choose a validator below and stake with svc-wallet."
        />
      ) : (
        <Table caption="Positions" columns={positionColumns} rows={rows} keyOf={({ position_id: id }) => id} />
      )}
      {data?.next_cursor === undefined ? null : (
        <p class="note">There are more positions. The command svc-wallet positions lists all positions of a wallet.</p>
      )}
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
      <h2>Rewards</h2>
      {rows.length === 0 ? (
        <Placeholder
          error={error}
          loading={data === undefined}
          empty="No staking rewards were paid to this address in this part of its history."
        />
      ) : (
        <>
          <p class="note">
            {coins(sum)} coins in these rows. Rewards are paid automatically, once a day, to the reward address of a
            position.
          </p>
          <Table
            caption="Staking rewards, newest first"
            columns={rewardColumns}
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
      <h1>Staking</h1>
      <section class="card">
        <p class="note">
          Read-only: staking is done with svc-wallet. The figures come from the pool’s node. To use your own node, run
          svcd on this computer with the option --browser-origin {location.origin} and enter its address here.
        </p>
        <div class="row">
          <EnteredText
            label="Node to read from"
            inputMode="url"
            value={own}
            placeholder="http://127.0.0.1:28701"
            onEnter={(typed) => {
              setOwn(typed);
              rememberCheckNode(typed);
            }}
          />
          <EnteredText
            label="Address of a staker"
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
