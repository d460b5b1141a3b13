/** One work block: who mined it on which anchor, its parents, what it carries, and what became of its reward. */
import type { BlockDocument } from '../../protocol/api/cut-documents.ts';
import { workOfTarget } from '../../protocol/ledger/target.ts';
import { coins, count } from '../format.ts';
import { Placeholder, State, When, WholeName } from '../view/parts.tsx';
import { useChain } from './chain-document.ts';
import { ChainLink, CutLink, FactList, type Facts } from './links.tsx';

const REWARDS = {
  waiting: 'no cut has registered it yet',
  pending: 'paid when its registration window closes',
  paid: '',
  expired: 'registered too late, or never: it is not paid',
} as const;

function factsOf(block: BlockDocument): Facts {
  const { reward, registered_cut: registered, parents } = block;
  return [
    ['Miner', <ChainLink key="miner" kind="address" id={block.payout} whole />],
    ['Tag', block.tag || '–'],
    ['Found', <When key="found" millis={block.timestamp_millis} />],
    ['Anchor', <CutLink key="anchor" height={block.anchor_height} />],
    ['Registered by', registered === null ? 'no cut yet' : <CutLink key="cut" height={registered.height} />],
    [
      'Reward',
      <>
        <State state={reward.state} />
        {reward.amount === null ? `, ${REWARDS[reward.state]}` : `: ${coins(reward.amount)} coins`}
        {reward.paid_height === null ? null : (
          <>
            {' '}
            by cut <CutLink height={reward.paid_height} />
          </>
        )}
      </>,
    ],
    ...(reward.amount === null
      ? [
          [
            'Registration window closes',
            <>
              cut <CutLink height={block.registration_window_end} />
            </>,
          ] as const,
        ]
      : [
          [
            'Made up of',
            `${coins(reward.work_amount ?? '0')} for the work, ${coins(reward.fee_amount ?? '0')} in fees of its transactions`,
          ] as const,
        ]),
    ['Work', `${count(workOfTarget(BigInt(`0x${block.target}`)))} hashes on average`],
    [
      'Extranonce',
      <span key="extranonce" class="mono">
        {block.extranonce}
      </span>,
    ],
    [
      'Nonce',
      <span key="nonce" class="mono">
        {block.nonce}
      </span>,
    ],
    [
      parents.length === 1 ? 'Parent' : 'Parents',
      parents.length === 0
        ? 'none'
        : parents.map((id) => (
            <div key={id}>
              <ChainLink kind="block" id={id} />
            </div>
          )),
    ],
  ];
}

export function BlockView({ id }: { id: string }) {
  const { data: block, error } = useChain<'block'>(`blocks/${encodeURIComponent(id)}`);
  return (
    <>
      <WholeName text={id} label="block id" />
      <section class="card">
        {block === undefined ? <Placeholder error={error} loading empty="" /> : <FactList facts={factsOf(block)} />}
      </section>
      {block === undefined ? null : (
        <section class="card">
          <h2>Transactions</h2>
          {block.transactions === null ? (
            <p class="note">This node no longer stores the block’s transactions.</p>
          ) : block.transactions.length === 0 ? (
            <p class="note">It carries no transactions.</p>
          ) : (
            <ul class="plain">
              {block.transactions.map((transaction) => (
                <li key={transaction}>
                  <ChainLink kind="transaction" id={transaction} />
                </li>
              ))}
            </ul>
          )}
        </section>
      )}
    </>
  );
}
