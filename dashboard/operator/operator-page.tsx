/** The operator's page, behind the token: the pool and its books over time, its fastest miners, balance sheet, audit, payout queue and pause, settings, connections, bans, instances, log of what was done. */
import { useEffect, useState } from 'preact/hooks';
import type { PoolDocument } from '../../pool/api/documents.ts';
import type {
  BansDocument,
  InstancesDocument,
  OperatorStatus,
  QueueDocument,
  SettingsDocument,
} from '../../pool/api/operator/operator-documents.ts';
import { PoolChart } from '../chart/pool-chart.tsx';
import { operate, type PoolError } from '../data/client.ts';
import { useDocument } from '../data/hooks.ts';
import { keepFresh } from '../data/pause.ts';
import { ago, coins, count, shortId } from '../format.ts';
import { useHeadFocus } from '../view/focus.ts';
import { TopMiners } from '../view/miner-lists.tsx';
import { Table, When } from '../view/parts.tsx';
import { sum } from '../view/pool-figures.tsx';
import { word } from '../words/language.ts';
import { Audit } from './audit.tsx';
import { BooksOverTime } from './books-over-time.tsx';
import { Connections } from './connections.tsx';
import { EVERY_MILLIS } from './operated.ts';
import { OperatorLog } from './operator-log.tsx';
import { Settings } from './operator-settings.tsx';
import { optionName, optionValue } from './option-text.ts';
import { type Act, Queue } from './payout-queue.tsx';

type Everything = {
  readonly status: OperatorStatus;
  readonly instances: InstancesDocument['instances'];
  readonly bans: BansDocument['bans'];
  readonly queue: QueueDocument['payouts'];
  readonly settings: SettingsDocument['settings'];
  readonly config: Readonly<Record<string, unknown>>;
};

async function readAll(token: string): Promise<Everything> {
  const [status, instances, bans, queue, settings, config] = await Promise.all([
    operate<OperatorStatus>(token, 'status'),
    operate<InstancesDocument>(token, 'instances'),
    operate<BansDocument>(token, 'bans'),
    operate<QueueDocument>(token, 'queue'),
    operate<SettingsDocument>(token, 'settings'),
    operate<{ config: Record<string, unknown> }>(token, 'config'),
  ]);
  return {
    status,
    instances: instances.instances,
    bans: bans.bans,
    queue: queue.payouts,
    settings: settings.settings,
    config: config.config,
  };
}

export function OperatorPage() {
  const [token, setToken] = useState(keptToken);
  const [typed, setTyped] = useState('');
  const head = useHeadFocus(token);
  const enter = (next: string) => {
    keepToken(next);
    setToken(next);
  };
  return (
    <>
      <h1 ref={head} tabIndex={-1}>
        {word('nav.operator')}
      </h1>
      {token === '' ? (
        <form
          class="row"
          onSubmit={(event) => {
            event.preventDefault();
            enter(typed.trim());
          }}
        >
          <label class="grow">
            {word('operator.token')}
            <input
              type="password"
              autocomplete="off"
              value={typed}
              onInput={(event) => setTyped(event.currentTarget.value)}
            />
          </label>
          <button type="submit" class="primary">
            {word('operator.enter')}
          </button>
        </form>
      ) : (
        <Desk token={token} onLeave={() => enter('')} />
      )}
    </>
  );
}

const KEPT = 'svc-operator-token';

/** For this tab alone, and gone when it is closed. */
function keptToken(): string {
  try {
    return sessionStorage.getItem(KEPT) ?? '';
  } catch {
    return '';
  }
}

function keepToken(token: string): void {
  try {
    if (token === '') sessionStorage.removeItem(KEPT);
    else sessionStorage.setItem(KEPT, token);
  } catch {
    // Without storage the token is typed again after a reload.
  }
}

const UNAUTHORIZED = 401;
const problemOf = (error: PoolError): string =>
  error.status === UNAUTHORIZED ? word('operator.wrong_token') : error.message;

function Desk({ token, onLeave }: { token: string; onLeave(): void }) {
  const [all, setAll] = useState<Everything>();
  const [problem, setProblem] = useState<string>();
  /** Why the last act was refused; it stays until the next one. */
  const [refused, setRefused] = useState<string>();
  /** Rises with everything that is done here. */
  const [turn, setTurn] = useState(0);
  const load = () =>
    readAll(token).then(
      (everything) => {
        setAll(everything);
        setProblem(undefined);
      },
      (error: PoolError) => setProblem(problemOf(error)),
    );
  useEffect(() => {
    void load();
    return keepFresh(load, EVERY_MILLIS);
  }, [token]);
  const act: Act = async (path, method, body) => {
    setRefused(undefined);
    try {
      await operate(token, path, method, body);
    } catch (error) {
      setRefused(problemOf(error as PoolError));
      return false;
    }
    setTurn((now) => now + 1);
    await load();
    return true;
  };
  return (
    <>
      {problem === undefined ? null : (
        <p class="banner" role="alert">
          {problem}
        </p>
      )}
      {refused === undefined ? null : (
        <p class="banner" role="alert">
          {refused}
        </p>
      )}
      {all === undefined ? null : (
        <>
          <OverTime token={token} />
          <TopMiners />
          <Sheet status={all.status} />
          <Audit token={token} turn={turn} act={act} />
          <Queue payouts={all.queue} status={all.status} act={act} />
          <Settings settings={all.settings} act={act} />
          <Connections token={token} turn={turn} act={act} />
          <Bans bans={all.bans} act={act} />
          <Instances instances={all.instances} />
          <Options config={all.config} />
          <OperatorLog token={token} turn={turn} />
        </>
      )}
      {all === undefined && problem === undefined ? null : (
        <p>
          <button type="button" onClick={onLeave}>
            {word('operator.another_token')}
          </button>
        </p>
      )}
    </>
  );
}

function OverTime({ token }: { token: string }) {
  const pool = useDocument<PoolDocument>('pool', 10_000).data;
  if (pool === undefined) return null;
  return (
    <>
      <PoolChart rate={sum(pool.services, (service) => service.hash_rate.ten_minutes)} since={pool.since_millis} />
      <BooksOverTime token={token} since={pool.since_millis} />
    </>
  );
}

const SHEET = ['rewards', 'uncredited', 'balances', 'in_flight', 'paid', 'pool_fees', 'network_fees', 'gap'] as const;

function Sheet({ status }: { status: OperatorStatus }) {
  const { wallet } = status;
  const { term, holder, here } = status.accountant;
  return (
    <section class="card">
      <h2>{word('operator.sheet')}</h2>
      <Table
        caption={word('operator.in_coins')}
        columns={[
          { title: word('operator.item'), cell: (name) => <span class="lines">{word(`operator.sheet_${name}`)}</span> },
          {
            title: word('pay.coins'),
            number: true,
            cell: (name) => (
              <span class={name === 'gap' && status.sheet.gap !== '0' ? 'bad' : ''}>{coins(status.sheet[name])}</span>
            ),
          },
        ]}
        rows={SHEET}
        keyOf={(name) => name}
      />
      <p>
        {wallet.spendable === null
          ? word('operator.wallet_away', { reason: wallet.reason ?? word('operator.no_answer') })
          : word('operator.wallet_ready', { coins: coins(wallet.spendable), outputs: count(wallet.outputs ?? 0) })}{' '}
        {word(here ? 'operator.accountant_here' : 'operator.accountant', { term, holder })}
      </p>
    </section>
  );
}

/** The options of this instance. Most of them need a restart to change. */
const Options = ({ config }: { config: Everything['config'] }) => (
  <section class="card">
    <h2>{word('operator.options')}</h2>
    <p class="note">{word('operator.options_note')}</p>
    <Table
      caption={word('operator.options_of')}
      columns={[
        { title: word('operator.option'), cell: ([name]) => <code>{optionName(name)}</code> },
        { title: word('operator.value'), wide: true, cell: ([name, value]) => optionValue(name, value) },
      ]}
      rows={Object.entries(config)}
      keyOf={([name]) => name}
    />
  </section>
);

function Bans({ bans, act }: { bans: BansDocument['bans']; act: Act }) {
  const [key, setKey] = useState('');
  const [minutes, setMinutes] = useState('60');
  return (
    <section class="card">
      <h2>{word('operator.bans')}</h2>
      <form
        class="row"
        onSubmit={async (event) => {
          event.preventDefault();
          if (await act('bans', 'POST', { key: key.trim(), minutes: Number(minutes) })) setKey('');
        }}
      >
        <label class="grow">
          {word('operator.ban_key')}
          <input value={key} onInput={(event) => setKey(event.currentTarget.value)} />
        </label>
        <label>
          {word('operator.minutes')}
          <input
            type="number"
            min="1"
            max="525600"
            required
            value={minutes}
            onInput={(event) => setMinutes(event.currentTarget.value)}
          />
        </label>
        <button type="submit">{word('operator.ban')}</button>
      </form>
      {bans.length === 0 ? <p class="note">{word('operator.nobody_banned')}</p> : null}
      <Table
        hidden={bans.length === 0}
        caption={word('operator.banned')}
        columns={[
          { title: word('place.address'), cell: (ban) => ban.key },
          { title: word('operator.until'), cell: (ban) => <When millis={ban.until_millis} /> },
          {
            title: word('operator.action'),
            cell: (ban) => (
              <button
                type="button"
                aria-label={word('operator.lift_what', { key: ban.key })}
                onClick={() => void act('bans', 'DELETE', { key: ban.key })}
              >
                {word('operator.lift')}
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
      <h2>{word('operator.instances')}</h2>
      <Table
        caption={word('operator.processes')}
        columns={[
          {
            title: word('operator.instance'),
            cell: (one) => (
              <>
                {one.instance}
                <span class="note below">
                  {word('operator.version_boot', { version: one.version, boot: shortId(one.boot_id) })}
                </span>
              </>
            ),
          },
          {
            title: word('blocks.state'),
            cell: (one) => (
              <span class={one.ready ? 'good' : 'warn'}>
                {word(one.ready ? 'operator.serves' : 'operator.not_ready')}
              </span>
            ),
          },
          {
            title: word('operator.books'),
            minor: true,
            cell: (one) => word(one.accountant ? 'operator.keeps_books' : 'operator.stand_by'),
          },
          { title: word('operator.connections'), number: true, cell: (one) => count(one.connections) },
          { title: word('worker.accepted'), number: true, minor: true, cell: (one) => count(one.accepted) },
          { title: word('worker.rejected'), number: true, minor: true, cell: (one) => count(one.rejected) },
          { title: word('operator.waiting'), number: true, minor: true, cell: (one) => count(one.waiting) },
          { title: word('place.cut'), number: true, minor: true, cell: (one) => count(one.height) },
          { title: word('operator.seen'), minor: true, cell: (one) => ago(one.seen_millis, now) },
          {
            title: word('operator.started'),
            minor: true,
            spare: true,
            cell: (one) => <When millis={one.started_millis} />,
          },
        ]}
        rows={instances}
        keyOf={(one) => one.boot_id}
      />
      <p class="note">{word('operator.waiting_note')}</p>
    </section>
  );
}
