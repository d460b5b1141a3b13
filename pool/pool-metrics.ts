/** Figures of the pool for Prometheus. Totals come from the database, so they survive restarts and are the same everywhere. */
import type { Metrics } from '../runtime/metrics/metrics.ts';
import type { PoolApi } from './api/pool-api.ts';
import { balanceSheet } from './books/sheet.ts';
import type { Sql } from './database/connect.ts';
import { SERVICES } from './journal/journal-record.ts';
import { countSuspects } from './luck/luck-figures.ts';
import { payoutsHeld } from './payout/payout-hold.ts';

export type PoolMetricsDependencies = {
  readonly sql: Sql;
  readonly api: PoolApi;
  /** Connections of this instance by service. */
  readonly connections: () => Readonly<Record<string, number>>;
  /** Of these the farm sessions, and the rigs that they have named. */
  readonly farms: () => { readonly farms: number; readonly farmRigs: number };
  /** Entries in this instance's journals that the books have not taken. */
  readonly waiting: () => number;
  /** Bytes of journals that the books have and that are kept for a database that might be restored. */
  readonly kept: () => number;
  /** Files of journals with bytes that were not understood. */
  readonly damaged: () => number;
  readonly isAccountant: () => boolean;
  /** The newest finalized cut of this instance's node; 0 while there is none. */
  readonly headHeight: () => number;
  /** Values in Redis that were left unread, by reason; undefined without a Redis. */
  readonly unread: (() => Readonly<Record<string, number>>) | undefined;
  /** Mails to miners since the start, by result; undefined where the pool sends none. */
  readonly mails: (() => Readonly<Record<string, number>>) | undefined;
};

/** A total from the database as a counter: it grows by what was added since the last read. */
function readTotal(add: (amount: number) => void): (total: number) => void {
  let known = 0;
  return (total) => {
    if (total <= known) return;
    add(total - known);
    known = total;
  };
}

export function readTotals(add: (amount: number, label: string) => void): (total: number, label: string) => void {
  const totals = new Map<string, (total: number) => void>();
  return (total, label) => {
    const set = totals.get(label) ?? readTotal((amount) => add(amount, label));
    totals.set(label, set);
    set(total);
  };
}

/** Mails to miners. Counted where they are sent, in the accountant's instance; how many wait is the same everywhere. */
export function mailMetrics(
  metrics: Metrics,
  tally: () => Readonly<Record<string, number>>,
  sql: Sql,
): () => Promise<void> {
  const total = metrics.counter('svc_pool_mails_total', {
    help: 'Mails to miners by result: sent, or why not',
    labels: ['result'],
  });
  const results = readTotals((amount, result) => total.add(amount, { result }));
  const waiting = metrics.gauge('svc_pool_mails_waiting', {
    help: 'Miners whose next mail waits, by kind',
    labels: ['kind'],
  });
  for (const result of Object.keys(tally())) total.add(0, { result });
  metrics.beforeScrape(() => {
    for (const [result, count] of Object.entries(tally())) results(count, result);
  });
  return async () => {
    const [counts] = await sql<{ confirmation: number; news: number }[]>`select
      count(*) filter (where not confirmed and asked_at is null)::int as confirmation,
      count(*) filter (where confirmed and exists
        (select 1 from miner_news n where n.account_id = m.account_id and n.channel = 'mail'))::int as news
      from miner_mails m where mailbox is not null`;
    waiting.set(counts?.confirmation ?? 0, { kind: 'confirmation' });
    waiting.set(counts?.news ?? 0, { kind: 'news' });
  };
}

export function poolMetrics(metrics: Metrics, dependencies: PoolMetricsDependencies): () => Promise<void> {
  const { sql, api } = dependencies;
  const connections = metrics.gauge('svc_pool_connections', {
    help: 'Stratum connections of this instance',
    labels: ['service'],
  });
  const farms = metrics.gauge('svc_pool_farms', { help: 'Connections of this instance that are farm sessions' });
  const farmRigs = metrics.gauge('svc_pool_farm_rigs', { help: 'Rigs that they have named' });
  const rate = metrics.gauge('svc_pool_hash_rate', { help: 'Hashes per second over ten minutes', labels: ['service'] });
  const workers = metrics.gauge('svc_pool_workers', {
    help: 'Workers with a share in the last hour',
    labels: ['service'],
  });
  const sharesTotal = metrics.counter('svc_pool_shares_total', {
    help: 'Shares by result',
    labels: ['result'],
    maxSeries: 40,
  });
  const shares = readTotals((amount, result) => sharesTotal.add(amount, { result }));
  const total = (name: string, help: string) => {
    const counter = metrics.counter(name, { help });
    return readTotal((amount) => counter.add(amount));
  };
  const found = total('svc_pool_blocks_found_total', 'Blocks found');
  const paid = total('svc_pool_blocks_paid_total', 'Blocks that the chain paid');
  const expired = total('svc_pool_blocks_expired_total', 'Blocks whose window closed without them');
  const held = metrics.gauge('svc_pool_rewards_held', {
    help: 'Blocks whose reward is not confirmed yet; one that stays needs the operator',
  });
  const payoutsTotal = metrics.counter('svc_pool_payouts_total', {
    help: 'Payouts by the state they reached',
    labels: ['state'],
  });
  const payouts = readTotals((amount, state) => payoutsTotal.add(amount, { state }));
  const open = metrics.gauge('svc_pool_payouts_open', { help: 'Payouts under way by state', labels: ['state'] });
  const stopped = metrics.gauge('svc_pool_payouts_held', { help: '1 while the books and the wallet do not agree' });
  const person = metrics.gauge('svc_pool_payouts_need_person', { help: 'Payouts that wait for the operator' });
  const paidAtoms = metrics.gauge('svc_pool_paid_atoms', { help: 'Atoms paid to miners' });
  const owed = metrics.gauge('svc_pool_owed_atoms', { help: 'Atoms that miners have to get' });
  const gap = metrics.gauge('svc_pool_books_gap_atoms', {
    help: 'Difference of the balance sheet; not 0 is an alarm',
  });
  const waiting = metrics.gauge('svc_pool_journal_waiting', { help: 'Journal entries that the books have not taken' });
  const kept = metrics.gauge('svc_pool_journal_kept_bytes', { help: 'Journals kept in case the database is restored' });
  const lost = metrics.gauge('svc_pool_journal_lost_entries', {
    help: 'Entries that no journal holds any more and the books lack; not 0 is an alarm',
  });
  const damaged = metrics.gauge('svc_pool_journal_damaged_files', {
    help: 'Files of journals with bytes that were not understood; not 0 is an alarm',
  });
  const aside = metrics.gauge('svc_pool_journal_unread_records', {
    help: 'Records of journals that could not be read and were set aside; not 0 is an alarm',
  });
  const behind = metrics.gauge('svc_pool_books_behind_cuts', {
    help: 'Finalized cuts of this instance’s node that the books have not taken in',
  });
  const accountant = metrics.gauge('svc_pool_accountant', { help: '1 in the instance that keeps the books' });
  const deadlocks = total(
    'svc_pool_database_deadlocks_total',
    'Transactions that PostgreSQL ended because they waited for each other; not 0 is a bug',
  );
  const withholding = metrics.gauge('svc_pool_withholding_suspects', {
    help: 'Accounts that worked in the last day and found too few blocks for their work: not luck, once in 10,000 accounts',
  });
  const live = metrics.gauge('svc_pool_live_pages', { help: 'Open live pages' });

  const unreadTotal = metrics.counter('svc_pool_redis_unread_total', {
    help: 'Values in Redis that no instance of this release wrote, by reason; not 0 is an alarm',
    labels: ['reason'],
  });
  const unread = readTotals((amount, reason) => unreadTotal.add(amount, { reason }));
  const mails = dependencies.mails === undefined ? undefined : mailMetrics(metrics, dependencies.mails, sql);

  /** The newest cut in the books. */
  let taken: number | undefined;
  metrics.beforeScrape(() => {
    for (const [reason, total] of Object.entries(dependencies.unread?.() ?? {})) unread(total, reason);
    const counts = dependencies.connections();
    const farming = dependencies.farms();
    farms.set(farming.farms);
    farmRigs.set(farming.farmRigs);
    for (const [id, service] of SERVICES.entries()) {
      connections.set(counts[service] ?? 0, { service });
      rate.set(api.rates.service(id).tenMinutes, { service });
      workers.set(api.rates.service(id).workers, { service });
    }
    waiting.set(dependencies.waiting());
    kept.set(dependencies.kept());
    damaged.set(dependencies.damaged());
    accountant.set(dependencies.isAccountant() ? 1 : 0);
    // Computed from the last values of the database: while it is unavailable the books fall behind. A pool without a
    // first cut is not behind.
    behind.set(taken === undefined ? 0 : Math.max(0, dependencies.headHeight() - taken));
    live.set(api.live.pages);
  });

  return async () => {
    const [totals] = await sql<
      { accepted: string; found: string; paid: string; expired: string; held: string }[]
    >`select
      (select coalesce(sum(accepted), 0)::text from workers) as accepted,
      coalesce(sum(count), 0)::text as found, coalesce(sum(count) filter (where state = 'paid'), 0)::text as paid,
      coalesce(sum(count) filter (where state = 'expired'), 0)::text as expired,
      coalesce(sum(count) filter (where state = 'held'), 0)::text as held from block_totals`;
    shares(Number(totals?.accepted ?? 0), 'accepted');
    found(Number(totals?.found ?? 0));
    paid(Number(totals?.paid ?? 0));
    expired(Number(totals?.expired ?? 0));
    held.set(Number(totals?.held ?? 0));
    const [server] = await sql<{ deadlocks: bigint }[]>`select deadlocks from pg_stat_database
      where datname = current_database()`;
    deadlocks(Number(server?.deadlocks ?? 0));
    const refused = await sql<{ result: string; count: bigint }[]>`select result, count from refused_shares`;
    for (const row of refused) shares(Number(row.count), row.result);
    const states = await sql<{ state: string; count: number; person: number }[]>`select state, count(*)::int as count,
      count(*) filter (where needs_person is not null)::int as person from payouts group by state`;
    const countOf = (state: string) => states.find((row) => row.state === state)?.count ?? 0;
    for (const state of ['finalized', 'void'] as const) payouts(countOf(state), state);
    for (const state of ['reserved', 'submitting', 'submitted']) open.set(countOf(state), { state });
    stopped.set((await payoutsHeld(sql)) === null ? 0 : 1);
    person.set(states.reduce((sum, row) => sum + row.person, 0));
    const [holes] = await sql<
      { lost: string }[]
    >`select coalesce(sum(until - after - 1), 0)::text as lost from journal_holes`;
    lost.set(Number(holes?.lost ?? 0));
    const [unreadable] = await sql<{ count: number }[]>`select count(*)::int as count from unread_records`;
    aside.set(unreadable?.count ?? 0);
    const [height] = await sql<{ value: string }[]>`select value from settings where name = 'chain_height'`;
    taken = height === undefined ? undefined : Number(height.value);
    const sheet = await balanceSheet(sql);
    paidAtoms.set(Number(sheet.paid));
    owed.set(Number(sheet.balances + sheet.inFlight));
    gap.set(Number(sheet.gap));
    withholding.set(await countSuspects(sql));
    await mails?.();
  };
}
