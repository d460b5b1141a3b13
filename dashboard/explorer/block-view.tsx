/** One work block: who mined it on which anchor, its parents, what it carries, and what became of its reward. */

import type { BlockDocument } from '../../protocol/api/cut-documents.ts';
import { workOfTarget } from '../../protocol/ledger/target.ts';
import { coins, count } from '../format.ts';
import { Placeholder, State, When, WholeName } from '../view/parts.tsx';
import { word, wordAround } from '../words/language.ts';
import { useChain } from './chain-document.ts';
import { ChainLink, CutLink, FactList, type Facts } from './links.tsx';

/** What a state means as long as there is no amount. */
const rewardNote = (state: BlockDocument['reward']['state']): string =>
  state === 'paid' ? '' : `, ${word(`chain.reward_${state}`)}`;

function factsOf(block: BlockDocument): Facts {
  const { reward, registered_cut: registered, parents } = block;
  return [
    [word('chain.miner'), <ChainLink key="miner" kind="address" id={block.payout} whole />],
    [word('chain.tag'), block.tag || '–'],
    [word('blocks.found'), <When key="found" millis={block.timestamp_millis} />],
    [word('blocks.anchor'), <CutLink key="anchor" height={block.anchor_height} />],
    [
      word('chain.registered_by'),
      registered === null ? word('chain.no_cut') : <CutLink key="cut" height={registered.height} />,
    ],
    [
      word('blocks.reward'),
      <>
        <State state={reward.state} />
        {reward.amount === null ? rewardNote(reward.state) : word('chain.coins', { coins: coins(reward.amount) })}
        {reward.paid_height === null ? null : (
          <> {wordAround('chain.by_cut', { cut: <CutLink height={reward.paid_height} /> })}</>
        )}
      </>,
    ],
    ...(reward.amount === null
      ? [
          [
            word('chain.window_closes'),
            wordAround('chain.at_cut', { cut: <CutLink height={block.registration_window_end} /> }),
          ] as const,
        ]
      : [
          [
            word('chain.made_of'),
            word('chain.work_and_fees', {
              work: coins(reward.work_amount ?? '0'),
              fees: coins(reward.fee_amount ?? '0'),
            }),
          ] as const,
        ]),
    [word('chain.work'), word('chain.hashes_average', { count: count(workOfTarget(BigInt(`0x${block.target}`))) })],
    [
      word('chain.extranonce'),
      <span key="extranonce" class="mono">
        {block.extranonce}
      </span>,
    ],
    [
      word('chain.nonce'),
      <span key="nonce" class="mono">
        {block.nonce}
      </span>,
    ],
    [
      word(parents.length === 1 ? 'chain.parent' : 'chain.parents'),
      parents.length === 0
        ? word('chain.none')
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
      <WholeName text={id} label={word('chain.block_id')} />
      <section class="card">
        {block === undefined ? <Placeholder error={error} loading empty="" /> : <FactList facts={factsOf(block)} />}
      </section>
      {block === undefined ? null : (
        <section class="card">
          <h2>{word('chain.transactions')}</h2>
          {block.transactions === null ? (
            <p class="note">{word('chain.not_stored')}</p>
          ) : block.transactions.length === 0 ? (
            <p class="note">{word('chain.carries_none')}</p>
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
