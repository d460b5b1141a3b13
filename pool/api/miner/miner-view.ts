/** One miner: its balances, workers, payments, credits and charts; and the list of miners by hash rate. */
import type { NetworkName } from '../../../protocol/network.ts';
import type { SteadyClock } from '../../../runtime/clock/clock.ts';
import { madeWith } from '../../books/made-accounts.ts';
import type { Sql } from '../../database/connect.ts';
import { SERVICES } from '../../journal/journal-record.ts';
import { luckOf } from '../../luck/luck-figures.ts';
import { minimumsBefore } from '../../payout/earlier-minimums.ts';
import { type RateBoard, type Rates, ratesSince } from '../../stats/rates.ts';
import { ApiRefusal } from '../api-error.ts';
import { CreditLists } from '../books/credit-lists.ts';
import { DayTotals } from '../books/day-totals.ts';
import type {
  BestSharesDocument,
  CreditDocument,
  CreditsDocument,
  EarningsDocument,
  MinerDocument,
  MinersDocument,
  RatesDocument,
  ServiceName,
  WorkersDocument,
} from '../documents.ts';
import { type Page, pageOf, readNumberCursor } from '../keyset.ts';
import { type PoolView, rateDocument } from '../public/pool-view.ts';
import { readMinerAddress } from '../route.ts';

export type Account = {
  readonly id: number;
  readonly address: string;
  readonly payload: Buffer;
  readonly balance: bigint;
  readonly inFlight: bigint;
  readonly paid: bigint;
  readonly advanced: bigint;
  readonly payoutMin: bigint | null;
  readonly sinceMillis: number;
};

type WorkerRow = {
  id: number;
  service: number;
  name: string;
  accepted: bigint;
  stale: bigint;
  rejected: bigint;
  last_millis: string | null;
};

type BestRow = { worker: string; work: bigint; at: Date };

const bestDocument = ({ worker, work, at }: BestRow) => ({ work: String(work), worker, at_millis: at.getTime() });

/** Lines of the list of best shares. */
const BEST_SHARES = 10;
/** At most this many credit lists are searched for one page of a miner's credits. */
const CREDIT_LISTS = 48;
/** A worker without a share for this long is offline, and is not counted; the board counts by ten minutes too. */
const ONLINE_MILLIS = 600_000;
export class MinerView {
  readonly #network: NetworkName;
  readonly #sql: Sql;
  readonly #rates: RateBoard;
  readonly #options: { readonly payoutMin: bigint };
  readonly #pool: PoolView;
  readonly #lists: CreditLists;
  readonly #days: DayTotals;
  readonly #now: SteadyClock;
  /** An address keeps its id and its first time, unless the database is replaced by an older copy. */
  readonly #known = new Map<number, { readonly address: string; readonly sinceMillis: number }>();

  constructor(
    options: { network: NetworkName; readonly payoutMin: bigint },
    dependencies: { sql: Sql; rates: RateBoard; pool: PoolView; now: SteadyClock },
  ) {
    this.#network = options.network;
    this.#options = options;
    this.#sql = dependencies.sql;
    this.#lists = new CreditLists(dependencies);
    this.#days = new DayTotals(dependencies);
    this.#rates = dependencies.rates;
    this.#pool = dependencies.pool;
    this.#now = dependencies.now;
  }

  /** The database was replaced by an older copy: an id may now belong to another account. */
  forget(): void {
    this.#known.clear();
    this.#lists.forget();
    this.#days.forget();
  }

  get network(): NetworkName {
    return this.#network;
  }

  async account(address: string): Promise<Account> {
    const { payload } = readMinerAddress(address, this.#network);
    const [row] = await this.#sql<
      {
        id: number;
        balance: bigint;
        in_flight: bigint;
        paid: bigint;
        advance: bigint;
        payout_min: bigint | null;
        created_at: Date;
      }[]
    >`select id, balance, in_flight, paid, advance, payout_min, created_at from accounts
      where id = ${madeWith(this.#sql, payload)}`;
    if (row === undefined) throw new ApiRefusal('not_found', 'this address has not mined here');
    return {
      id: row.id,
      address,
      payload: Buffer.from(payload),
      balance: row.balance,
      inFlight: row.in_flight,
      paid: row.paid,
      advanced: row.advance,
      payoutMin: row.payout_min,
      sinceMillis: row.created_at.getTime(),
    };
  }

  /** Sorted by hash rate of the last hour, highest first; a cursor is a rank, since the whole list is in memory. */
  async miners(page: Page): Promise<MinersDocument> {
    const from = readNumberCursor(page.cursor) ?? 0;
    const ranking = this.#rates.ranking.filter((row) => row.rates.day > 0);
    const shown = ranking.slice(from, from + page.limit);
    const ids = shown.map((row) => row.accountId);
    await this.#learn(ids);
    const lasts = await this.#sql<{ account_id: number; last_millis: string }[]>`select account_id,
      (extract(epoch from max(last_share_at)) * 1000)::bigint::text as last_millis from workers
      where account_id = any(${ids}::int[]) group by account_id`;
    const last = new Map(lasts.map((row) => [row.account_id, Number(row.last_millis)]));
    return {
      api_version: 1,
      miners: shown.map((row) => {
        const known = this.#known.get(row.accountId);
        return {
          address: known?.address ?? '',
          workers: row.workers,
          hash_rate: this.#rateDocument(row.rates, known?.sinceMillis ?? 0),
          last_share_millis: last.get(row.accountId) ?? null,
        };
      }),
      ...(from + page.limit < ranking.length ? { next_cursor: `${from + page.limit}-0` } : {}),
    };
  }

  async #learn(ids: readonly number[]): Promise<void> {
    const unknown = ids.filter((id) => !this.#known.has(id));
    if (unknown.length === 0) return;
    const rows = await this.#sql<{ id: number; address: string; created_at: Date }[]>`select id, address, created_at
      from accounts where id = any(${unknown}::int[])`;
    for (const row of rows) this.#known.set(row.id, { address: row.address, sinceMillis: row.created_at.getTime() });
  }

  /** A miner that started an hour ago has the rate of that hour, not of a day. */
  #rateDocument(rates: Rates, sinceMillis: number): RatesDocument {
    return rateDocument(ratesSince(rates, this.#rates.since, sinceMillis / 1000, this.#now() / 1000));
  }

  async miner(address: string): Promise<MinerDocument> {
    const account = await this.account(address);
    const [counts] = await this.#sql<
      { workers: number; accepted: string; stale: string; rejected: string; last_millis: string | null }[]
    >`select (count(*) filter (where last_share_at > ${new Date(this.#now() - ONLINE_MILLIS)}))::int as workers, coalesce(sum(accepted), 0)::text as accepted, coalesce(sum(stale), 0)::text as stale,
        coalesce(sum(rejected), 0)::text as rejected,
        (extract(epoch from max(last_share_at)) * 1000)::bigint::text as last_millis
      from workers where account_id = ${account.id}`;
    const [solo] = await this.#sql<{ atoms: string }[]>`select coalesce(sum(reward), 0)::text as atoms from blocks
      where service = 1 and account_id = ${account.id} and state = 'paid' and credit_list is null`;
    const [best] = await this.#sql<BestRow[]>`select w.name as worker, b.work, b.at from best_shares b
      join workers w on w.id = b.worker_id where b.account_id = ${account.id}`;
    const rates = this.#rates.account(account.id);
    const earlier = await minimumsBefore(this.#sql, account.id);
    return {
      api_version: 1,
      address,
      since_millis: account.sinceMillis,
      hash_rate: this.#rateDocument(rates, account.sinceMillis),
      online: (counts?.workers ?? 0) > 0,
      workers: counts?.workers ?? 0,
      accepted: Number(counts?.accepted ?? 0),
      stale: Number(counts?.stale ?? 0),
      rejected: Number(counts?.rejected ?? 0),
      last_share_millis: counts?.last_millis == null ? null : Number(counts.last_millis),
      balance: String(account.balance > 0n ? account.balance : 0n),
      in_flight: String(account.inFlight),
      paid: String(account.paid),
      advance: String(account.balance < 0n ? -account.balance : 0n),
      advanced: String(account.advanced),
      pending_estimate: String(this.#pool.pendingEstimate(rates) + BigInt(solo?.atoms ?? 0)),
      payout_minimum: String(account.payoutMin ?? this.#options.payoutMin),
      payout_minimums: earlier.map(({ atoms, untilMillis }) => ({ amount: String(atoms), until_millis: untilMillis })),
      best_share: best === undefined ? null : bestDocument(best),
      luck: await luckOf(this.#sql, account.id),
    };
  }

  async bestShares(): Promise<BestSharesDocument> {
    const rows = await this.#sql<(BestRow & { address: string })[]>`select a.address, w.name as worker, b.work, b.at
      from (select * from best_shares order by work desc, account_id limit ${BEST_SHARES}) b
      join accounts a on a.id = b.account_id join workers w on w.id = b.worker_id order by b.work desc, b.account_id`;
    return { api_version: 1, best_shares: rows.map((row) => ({ address: row.address, ...bestDocument(row) })) };
  }

  async workers(address: string, page: Page): Promise<WorkersDocument> {
    const account = await this.account(address);
    const from = readNumberCursor(page.cursor) ?? 0;
    const rows = await this.#sql<WorkerRow[]>`select id, service, name, accepted, stale, rejected,
        (extract(epoch from last_share_at) * 1000)::bigint::text as last_millis
      from workers where account_id = ${account.id} and id > ${from} order by id limit ${page.limit + 1}`;
    const { rows: shown, more } = pageOf(rows, page.limit, (row) => `${row.id}-0`);
    return {
      api_version: 1,
      workers: shown.map((row) => ({
        name: row.name,
        service: SERVICES[row.service] as ServiceName,
        online: row.last_millis !== null && this.#now() - Number(row.last_millis) < ONLINE_MILLIS,
        hash_rate: this.#rateDocument(this.#rates.worker(row.id), account.sinceMillis),
        accepted: Number(row.accepted),
        stale: Number(row.stale),
        rejected: Number(row.rejected),
        last_share_millis: row.last_millis === null ? null : Number(row.last_millis),
      })),
      ...more,
    };
  }

  /** The account's credits in the latest lists; each can be proven. */
  async credits(address: string, page: Page, onRead?: (credits: number) => void): Promise<CreditsDocument> {
    const account = await this.account(address);
    const before = readNumberCursor(page.cursor) ?? 2_147_483_647;
    // A page searches a limited number of lists, and the account need not be in each, so it may have fewer rows than
    // requested.
    const lists = Math.min(CREDIT_LISTS, page.limit);
    const rows = await this.#lists.before(before, lists + 1);
    const { rows: shown, more } = pageOf(rows, lists, (row) => `${row.id}-0`);
    const amounts = await this.#lists.creditsOf(
      account.id,
      shown.map((row) => row.id),
      onRead,
    );
    const credits = shown.flatMap((row): CreditDocument[] => {
      const amount = amounts.get(row.id);
      if (amount === undefined) return [];
      return [
        {
          service: SERVICES[row.service] as ServiceName,
          slice: row.slice,
          amount: String(amount),
          reward: String(row.reward),
          blocks: row.blocks,
          made_millis: row.madeMillis,
        },
      ];
    });
    return { api_version: 1, credits, ...more };
  }

  async earnings(address: string): Promise<EarningsDocument> {
    const account = await this.account(address);
    const days = await this.#days.earned(account.id, account.sinceMillis);
    return {
      api_version: 1,
      days: days.map(({ day, amount }) => ({ at_millis: day * 86_400_000, amount: String(amount) })),
    };
  }

  async workerId(account: Account, service: number, name: string): Promise<number> {
    const [row] = await this.#sql<{ id: number }[]>`select id from workers
      where account_id = ${account.id} and service = ${service} and name = ${name}`;
    if (row === undefined) throw new ApiRefusal('not_found', 'this miner has no such worker');
    return row.id;
  }
}
