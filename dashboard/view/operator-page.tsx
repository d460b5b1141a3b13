/** The operator's page, behind the token: balance sheet, payout queue and pause, bans, instances, log of what was done. */
import { useEffect, useState } from 'preact/hooks';
import type {
  BansDocument,
  InstancesDocument,
  OperatorLogDocument,
  OperatorStatus,
  PayoutAction,
  QueueDocument,
} from '../../pool/api/operator-documents.ts';
import { operate } from '../data/client.ts';
import { ago, coins, count, time } from '../format.ts';
import { Amount, Identifier, State, Table } from './parts.tsx';

type Everything = {
  readonly status: OperatorStatus;
  readonly instances: InstancesDocument['instances'];
  readonly bans: BansDocument['bans'];
  readonly queue: QueueDocument['payouts'];
  readonly log: OperatorLogDocument['entries'];
};

async function readAll(token: string): Promise<Everything> {
  const [status, instances, bans, queue, log] = await Promise.all([
    operate<OperatorStatus>(token, 'status'),
    operate<InstancesDocument>(token, 'instances'),
    operate<BansDocument>(token, 'bans'),
    operate<QueueDocument>(token, 'queue'),
    operate<OperatorLogDocument>(token, 'log'),
  ]);
  return { status, instances: instances.instances, bans: bans.bans, queue: queue.payouts, log: log.entries };
}

export function OperatorPage() {
  // The token stays in memory: a page reload asks for it again.
  const [token, setToken] = useState('');
  const [typed, setTyped] = useState('');
  if (token === '')
    return (
      <>
        <h1>Operator</h1>
        <form
          class="row"
          onSubmit={(event) => {
            event.preventDefault();
            setToken(typed.trim());
          }}
        >
          <label class="grow">
            Operator token (the pool wrote it into its data directory)
            <input
              type="password"
              autocomplete="off"
              value={typed}
              onInput={(event) => setTyped(event.currentTarget.value)}
            />
          </label>
          <button type="submit" class="primary">
            Enter
          </button>
        </form>
      </>
    );
  return <Desk token={token} onLeave={() => setToken('')} />;
}

function Desk({ token, onLeave }: { token: string; onLeave(): void }) {
  const [all, setAll] = useState<Everything>();
  const [problem, setProblem] = useState<string>();
  const load = () =>
    readAll(token).then(
      (everything) => {
        setAll(everything);
        setProblem(undefined);
      },
      (error: Error) => setProblem(error.message),
    );
  useEffect(() => {
    void load();
    const timer = setInterval(load, 5000);
    return () => clearInterval(timer);
  }, [token]);
  const act = (path: string, method: string, body?: object) => () =>
    void operate(token, path, method, body).then(load, (error: Error) => setProblem(error.message));
  return (
    <>
      <h1>Operator</h1>
      {problem === undefined ? null : (
        <p class="banner" role="alert">
          {problem}{' '}
          <button type="button" onClick={onLeave}>
            Another token
          </button>
        </p>
      )}
      {all === undefined ? null : (
        <>
          <Sheet status={all.status} />
          <Queue payouts={all.queue} status={all.status} act={act} />
          <Bans bans={all.bans} act={act} />
          <Instances instances={all.instances} />
          <section class="card">
            <h2>What was done</h2>
            {all.log.length === 0 ? <p class="note">Nothing yet.</p> : null}
            <Table
              hidden={all.log.length === 0}
              caption="What was done, newest first"
              columns={[
                { title: 'Time', cell: (entry) => time(entry.at_millis) },
                { title: 'Who', cell: (entry) => entry.actor },
                { title: 'What', cell: (entry) => entry.action },
                { title: 'Details', wide: true, cell: (entry) => <code>{JSON.stringify(entry.details)}</code> },
              ]}
              rows={all.log}
              keyOf={(entry) => `${entry.at_millis}/${entry.action}/${JSON.stringify(entry.details)}`}
            />
          </section>
        </>
      )}
    </>
  );
}

const SHEET = [
  ['rewards', 'Rewards the chain paid'],
  ['uncredited', 'Not credited yet'],
  ['balances', 'Balances of miners'],
  ['in_flight', 'Payouts under way'],
  ['paid', 'Paid to miners'],
  ['pool_fees', 'Fees of the pool'],
  ['network_fees', 'Fees to the network'],
  ['gap', 'Difference (must be zero)'],
] as const;

function Sheet({ status }: { status: OperatorStatus }) {
  return (
    <section class="card">
      <h2>Balance sheet</h2>
      <Table
        caption="In coins"
        columns={[
          { title: 'Item', cell: ([, title]) => title },
          {
            title: 'Coins',
            number: true,
            cell: ([name]) => (
              <span class={name === 'gap' && status.sheet.gap !== '0' ? 'bad' : ''}>{coins(status.sheet[name])}</span>
            ),
          },
        ]}
        rows={SHEET}
        keyOf={([name]) => name}
      />
      <p>
        Wallet: {status.wallet.ready ? 'ready' : `not ready: ${status.wallet.reason ?? 'no answer'}`}
        {status.wallet.spendable === null
          ? ''
          : `, ${coins(status.wallet.spendable)} coins in ${count(status.wallet.outputs ?? 0)} outputs`}
        . Accountant: term {status.accountant.term}, {status.accountant.holder}
        {status.accountant.here ? ' (this instance)' : ''}.
      </p>
    </section>
  );
}

type Act = (path: string, method: string, body?: object) => () => void;

type Payout = QueueDocument['payouts'][number];

/** What each button does, and what whoever presses it should know. None of them can make the wallet pay twice. */
const ACTIONS: Readonly<Record<PayoutAction, { readonly title: string; readonly explained: string }>> = {
  release: {
    title: 'Ask the wallet again',
    explained:
      'The wallet is asked for this payout again. If it was asked before, it is asked under the same number and pays nothing twice.',
  },
  void: {
    title: 'Give the balances back',
    explained:
      'The amounts go back to the balances and are paid with the next payout. The wallet is asked first: what it has paid is never given back.',
  },
  sent: {
    title: 'It was sent',
    explained:
      'You know the transaction that paid this. It is taken only if the wallet knows it and it pays exactly these recipients.',
  },
};

function doAction(payout: Payout, action: PayoutAction, act: Act): void {
  const { title, explained } = ACTIONS[action];
  const whom = payout.items.map(({ address, amount }) => `${coins(amount)} to ${address}`).join('\n');
  const path = `payouts/${payout.payout_id}/${action}`;
  if (action === 'sent') {
    const transaction = window.prompt(`${title}: ${explained}\n\n${whom}\n\nTransaction:`)?.trim();
    if (transaction) act(path, 'POST', { transaction_id: transaction })();
  } else if (window.confirm(`${title}? ${explained}\n\n${whom}`)) act(path, 'POST')();
}

function Queue({ payouts, status, act }: { payouts: QueueDocument['payouts']; status: OperatorStatus; act: Act }) {
  const { payouts_paused: paused, payouts_held: held } = status;
  return (
    <section class="card">
      <h2>Payouts</h2>
      {held === null ? null : (
        <p class="banner" role="alert">
          Nothing is paid: {held}. Run svc-pool repair-payouts to see what differs.
        </p>
      )}
      {status.accounts_refused.length === 0 ? null : (
        <p class="banner" role="alert">
          {status.accounts_refused.length} accounts are not paid: their books fail the audit. Run svc-pool audit, put
          the books right, then release their payouts below.
        </p>
      )}
      <div class="row">
        <strong class={paused || held !== null ? 'warn' : 'good'}>
          {paused ? 'paused' : held === null ? 'running' : 'held'}
        </strong>
        <button type="button" onClick={act(paused ? 'resume' : 'pause', 'POST')}>
          {paused ? 'Resume payouts' : 'Pause payouts'}
        </button>
      </div>
      {payouts.length === 0 ? <p class="note">Nothing is under way.</p> : null}
      <Table
        hidden={payouts.length === 0}
        caption="Payouts under way"
        columns={[
          { title: 'Made', cell: (payout) => time(payout.created_millis) },
          { title: 'Payout', cell: (payout) => <Identifier id={payout.payout_id} /> },
          { title: 'Recipients', number: true, cell: (payout) => count(payout.recipients) },
          { title: 'Coins', number: true, cell: (payout) => <Amount atoms={payout.total} /> },
          { title: 'State', cell: (payout) => <State state={payout.state} /> },
          { title: 'Needs a person', wide: true, cell: (payout) => <Trouble payout={payout} /> },
          {
            title: 'Do',
            cell: (payout) =>
              payout.actions.map((action) => (
                <button
                  key={action}
                  type="button"
                  title={ACTIONS[action].explained}
                  onClick={() => doAction(payout, action, act)}
                >
                  {ACTIONS[action].title}
                </button>
              )),
          },
        ]}
        rows={payouts}
        keyOf={(payout) => payout.payout_id}
      />
    </section>
  );
}

/** Why it waits, and for whom: a payout that needs a person is one recipient's. */
function Trouble({ payout }: { payout: Payout }) {
  if (payout.needs_person === null) return <>{payout.reason ?? '–'}</>;
  return (
    <>
      {payout.needs_person}
      {payout.items.map(({ address }) => (
        <div key={address} class="mono">
          {address}
        </div>
      ))}
    </>
  );
}

function Bans({ bans, act }: { bans: BansDocument['bans']; act: Act }) {
  const [key, setKey] = useState('');
  return (
    <section class="card">
      <h2>Bans</h2>
      <form
        class="row"
        onSubmit={(event) => {
          event.preventDefault();
          act('bans', 'POST', { key: key.trim(), minutes: 60 })();
          setKey('');
        }}
      >
        <label class="grow">
          Address to ban for an hour
          <input value={key} onInput={(event) => setKey(event.currentTarget.value)} />
        </label>
        <button type="submit">Ban</button>
      </form>
      {bans.length === 0 ? <p class="note">Nobody is banned.</p> : null}
      <Table
        hidden={bans.length === 0}
        caption="Banned"
        columns={[
          { title: 'Address', cell: (ban) => ban.key },
          { title: 'Until', cell: (ban) => time(ban.until_millis) },
          {
            title: 'Do',
            cell: (ban) => (
              <button type="button" onClick={act('bans', 'DELETE', { key: ban.key })}>
                Lift
              </button>
            ),
          },
        ]}
        rows={bans}
        keyOf={(ban) => ban.key}
      />
    </section>
  );
}

function Instances({ instances }: { instances: InstancesDocument['instances'] }) {
  const now = Date.now();
  return (
    <section class="card">
      <h2>Instances</h2>
      <Table
        caption="Processes of this pool"
        columns={[
          { title: 'Instance', cell: (one) => one.instance },
          { title: 'Boot', cell: (one) => <Identifier id={one.boot_id} /> },
          { title: 'Connections', number: true, cell: (one) => count(one.connections) },
          { title: 'Accountant', cell: (one) => (one.accountant ? 'yes' : 'stand-by') },
          { title: 'Started', cell: (one) => time(one.started_millis) },
          { title: 'Seen', cell: (one) => ago(one.seen_millis, now) },
        ]}
        rows={instances}
        keyOf={(one) => one.boot_id}
      />
    </section>
  );
}
