/** One transaction: where it is in its life, and, once a cut has executed it, what it spent and made. */
import { useEffect, useState } from 'preact/hooks';
import type { RouteAnswer } from '../../protocol/api/routes.ts';
import { query } from '../data/client.ts';
import { count } from '../format.ts';
import { Amount, type Column, Placeholder, State, Table, WholeName } from '../view/parts.tsx';
import { type ExecutedTransaction, readChain, useChain } from './chain-document.ts';
import { ChainLink, CutLink, FactList, type Facts } from './links.tsx';

type Status = RouteAnswer<'transactionStatus'>;

const STEPS = ['processing', 'receiving', 'registered', 'finalized'] as const;
/** What a step is while it is the last one or is still to come, and what it was. */
const EXPLAINED = {
  processing: ['waits in the mempool', 'was in the mempool'],
  receiving: ['is in a work block', 'was put into a work block'],
  registered: ['its block is registered by a cut', 'its block was registered by a cut'],
  finalized: ['is executed; it cannot be undone', ''],
} as const;

export function TransactionView({ id }: { id: string }) {
  const { data: status, error } = useChain<'transactionStatus'>(`transactions/${encodeURIComponent(id)}/status`);
  const height = status?.finalized_cut?.height;
  const { transaction, problem } = useExecuted(id, height);
  return (
    <>
      <WholeName text={id} label="transaction id" />
      <section class="card">
        {status === undefined ? <Placeholder error={error} loading empty="" /> : <Life status={status} />}
        {status === undefined && error !== undefined ? (
          <p class="note">
            Rewards and genesis payments also have ids of this form, but are not transactions. A transaction that was
            never sent, or was dropped before a cut, leaves no trace.
          </p>
        ) : null}
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
      : [['Block', <ChainLink key="block" kind="block" id={status.observed_work.block_id} />] as const]),
    ...(status.registered_cut === null
      ? []
      : [['Registered by', <CutLink key="registered" height={status.registered_cut.height} />] as const]),
    ...(status.finalized_cut === null
      ? []
      : [['Executed by', <CutLink key="finalized" height={status.finalized_cut.height} />] as const]),
  ];
  return (
    <>
      {lifecycle === 'failed' ? (
        <p>
          <State state="failed" />: {failure}. {failure === 'no_effect' ? 'It was executed and changed nothing.' : ''}
        </p>
      ) : (
        <ol class="steps">
          {STEPS.map((step, index) => {
            const isDone = index < reached || (index === reached && step === 'finalized');
            return (
              <li key={step} class={isDone ? 'done' : ''} aria-current={index === reached ? 'step' : undefined}>
                {isDone ? <span class="hidden-text">done: </span> : null}
                <strong>{step}</strong> {EXPLAINED[step][index < reached ? 1 : 0]}
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
        if (found === undefined) setProblem(new Error('The node does not list it in that cut.'));
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

const inputColumns: Column<Input>[] = [
  { title: 'Address', cell: ({ address }) => (address === null ? '–' : <ChainLink kind="address" id={address} />) },
  { title: 'Coins', number: true, cell: ({ amount }) => <Amount atoms={amount} /> },
  {
    title: 'Created by',
    minor: true,
    cell: ({ outpoint }) => (
      <>
        output {outpoint.output_index} of <ChainLink kind="transaction" id={outpoint.transaction_id} />
      </>
    ),
  },
];

const outputColumns: Column<Output>[] = [
  { title: 'Address', cell: ({ address }) => <ChainLink kind="address" id={address} /> },
  { title: 'Coins', number: true, cell: ({ amount }) => <Amount atoms={amount} /> },
];

function Executed({ transaction }: { transaction: ExecutedTransaction }) {
  const { outcome, fee, mass, payload_hex: payload, inputs, outputs } = transaction;
  const facts: Facts = [
    ['Outcome', <State key="outcome" state={outcome} />],
    ['Fee', <Amount key="fee" atoms={fee} />],
    ['Mass', count(mass)],
    ['Valid', `from cut ${count(transaction.valid_from_height)} to ${count(transaction.valid_until_height)}`],
    ...(payload === ''
      ? []
      : [
          [
            'Payload',
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
        <h2>Spent</h2>
        <Table
          caption="Outputs it spent"
          columns={inputColumns}
          rows={inputs}
          keyOf={({ outpoint }) => `${outpoint.transaction_id}/${outpoint.output_index}`}
        />
      </section>
      <section class="card">
        <h2>Created</h2>
        <Table
          caption="Outputs it created"
          columns={outputColumns}
          rows={outputs}
          keyOf={({ output_index: index }) => String(index)}
        />
      </section>
    </>
  );
}
