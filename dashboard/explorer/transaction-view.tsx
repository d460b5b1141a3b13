/** One transaction: where it is in its life, and, once a cut has executed it, what it spent and made. */

import { useEffect, useState } from 'preact/hooks';
import type { RouteAnswer } from '../../protocol/api/routes.ts';
import { query } from '../data/client.ts';
import { count } from '../format.ts';
import { Amount, type Column, Placeholder, State, stateText, Table, WholeName } from '../view/parts.tsx';
import { word, wordAround } from '../words/language.ts';
import { type ExecutedTransaction, readChain, useChain } from './chain-document.ts';
import { ChainLink, CutLink, FactList, type Facts } from './links.tsx';

type Status = RouteAnswer<'transactionStatus'>;

const STEPS = ['processing', 'receiving', 'registered', 'finalized'] as const;
/** What a step is while it is the last one or is still to come, and what it was. */
const EXPLAINED = {
  processing: ['chain.processing_now', 'chain.processing_then'],
  receiving: ['chain.receiving_now', 'chain.receiving_then'],
  registered: ['chain.registered_now', 'chain.registered_then'],
  finalized: ['chain.finalized_now', 'chain.finalized_now'],
} as const;
const NAMES = {
  processing: 'chain.processing',
  receiving: 'chain.receiving',
  registered: 'chain.registered',
  finalized: 'chain.step_finalized',
} as const;

export function TransactionView({ id }: { id: string }) {
  const { data: status, error } = useChain<'transactionStatus'>(`transactions/${encodeURIComponent(id)}/status`);
  const height = status?.finalized_cut?.height;
  const { transaction, problem } = useExecuted(id, height);
  return (
    <>
      <WholeName text={id} label={word('chain.transaction_id')} />
      <section class="card">
        {status === undefined ? <Placeholder error={error} loading empty="" /> : <Life status={status} />}
        {status === undefined && error !== undefined ? <p class="note">{word('chain.no_transaction')}</p> : null}
      </section>
      {height === undefined ? null : transaction === undefined ? (
        <section class="card">
          <Placeholder error={problem} loading empty="" />
        </section>
      ) : (
        <Executed transaction={transaction} />
      )}
    </>
  );
}

function Life({ status }: { status: Status }) {
  const { lifecycle, failure } = status;
  const reached = STEPS.indexOf(lifecycle as (typeof STEPS)[number]);
  const facts: Facts = [
    ...(status.observed_work === null
      ? []
      : [[word('blocks.block'), <ChainLink key="block" kind="block" id={status.observed_work.block_id} />] as const]),
    ...(status.registered_cut === null
      ? []
      : [[word('chain.registered_by'), <CutLink key="registered" height={status.registered_cut.height} />] as const]),
    ...(status.finalized_cut === null
      ? []
      : [[word('chain.executed_by'), <CutLink key="finalized" height={status.finalized_cut.height} />] as const]),
  ];
  return (
    <>
      {lifecycle === 'failed' ? (
        <p>
          <State state="failed" />: {stateText(failure ?? '–')}.{' '}
          {failure === 'no_effect' ? word('chain.no_effect') : ''}
        </p>
      ) : (
        <ol class="steps">
          {STEPS.map((step, index) => {
            const isDone = index < reached || (index === reached && step === 'finalized');
            return (
              <li key={step} class={isDone ? 'done' : ''} aria-current={index === reached ? 'step' : undefined}>
                {isDone ? <span class="hidden-text">{word('chain.done')} </span> : null}
                <strong>{word(NAMES[step])}</strong> {word(EXPLAINED[step][index < reached ? 1 : 0])}
              </li>
            );
          })}
        </ol>
      )}
      <FactList facts={facts} />
    </>
  );
}

/** The most transactions of a page of a cut, and pages that are looked through for one of them. */
const PAGE = 64;
const PAGES = 64;

async function findIn(height: number, id: string, isOver: () => boolean): Promise<ExecutedTransaction | undefined> {
  let cursor: string | undefined;
  for (let page = 0; page < PAGES && !isOver(); page++) {
    const answer = await readChain<'cutTransactions'>(`cuts/${height}/transactions${query({ cursor, limit: PAGE })}`);
    const found = answer.transactions.find((one) => one.transaction_id === id);
    if (found !== undefined || answer.next_cursor === undefined) return found;
    cursor = answer.next_cursor;
  }
  return undefined;
}

/** What the cut of that height made of it. A cut has no index of its transactions, so that its pages are read in turn. */
function useExecuted(id: string, height: number | undefined) {
  const [transaction, setTransaction] = useState<ExecutedTransaction>();
  const [problem, setProblem] = useState<Error>();
  useEffect(() => {
    if (height === undefined) return;
    let over = false;
    findIn(height, id, () => over).then(
      (found) => {
        if (over) return;
        setTransaction(found);
        if (found === undefined) setProblem(new Error(word('chain.not_listed')));
      },
      (error: Error) => {
        if (!over) setProblem(error);
      },
    );
    return () => {
      over = true;
    };
  }, [id, height]);
  return { transaction, problem };
}

type Input = ExecutedTransaction['inputs'][number];
type Output = ExecutedTransaction['outputs'][number];

const inputColumns = (): Column<Input>[] => [
  {
    title: word('place.address'),
    cell: ({ address }) => (address === null ? '–' : <ChainLink kind="address" id={address} />),
  },
  { title: word('pay.coins'), number: true, cell: ({ amount }) => <Amount atoms={amount} /> },
  {
    title: word('chain.created_by'),
    minor: true,
    cell: ({ outpoint }) => (
      <>
        {wordAround('chain.output_of', {
          index: outpoint.output_index,
          transaction: <ChainLink kind="transaction" id={outpoint.transaction_id} />,
        })}
      </>
    ),
  },
];

const outputColumns = (): Column<Output>[] => [
  { title: word('place.address'), cell: ({ address }) => <ChainLink kind="address" id={address} /> },
  { title: word('pay.coins'), number: true, cell: ({ amount }) => <Amount atoms={amount} /> },
];

function Executed({ transaction }: { transaction: ExecutedTransaction }) {
  const { outcome, fee, mass, payload_hex: payload, inputs, outputs } = transaction;
  const facts: Facts = [
    [word('chain.outcome'), <State key="outcome" state={outcome} />],
    [word('chain.fee'), <Amount key="fee" atoms={fee} />],
    [word('chain.mass'), count(mass)],
    [
      word('chain.valid'),
      word('chain.valid_between', {
        from: count(transaction.valid_from_height),
        until: count(transaction.valid_until_height),
      }),
    ],
    ...(payload === ''
      ? []
      : [
          [
            word('chain.payload'),
            <span key="payload" class="mono">
              {payload}
            </span>,
          ] as const,
        ]),
  ];
  return (
    <>
      <section class="card">
        <FactList facts={facts} />
      </section>
      <section class="card">
        <h2>{word('chain.spent_outputs')}</h2>
        <Table
          caption={word('chain.spent_caption')}
          columns={inputColumns()}
          rows={inputs}
          keyOf={({ outpoint }) => `${outpoint.transaction_id}/${outpoint.output_index}`}
        />
      </section>
      <section class="card">
        <h2>{word('chain.created')}</h2>
        <Table
          caption={word('chain.created_caption')}
          columns={outputColumns()}
          rows={outputs}
          keyOf={({ output_index: index }) => String(index)}
        />
      </section>
    </>
  );
}
