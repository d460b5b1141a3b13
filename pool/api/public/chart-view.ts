/**
 * Hash rates over time, in points that a page can draw as they are: minutes for the last hour, ten minutes or hours
 * before it. A point's rate is taken over the seconds counted so far, so that the current point does not look like a
 * dip.
 */
import type { SteadyClock } from '../../../runtime/clock/clock.ts';
import type { Sql } from '../../database/connect.ts';
import { countedSeconds } from '../../stats/counted.ts';
import type { Tier } from '../../stats/fold.ts';
import { HELD, type RateBoard } from '../../stats/rates.ts';
import type { ChartDocument } from '../documents.ts';

export const CHART_HOURS = { default: 24, max: 24 * 90 } as const;
/** Up to here the pool's chart has a point for every ten minutes. */
const FINE_HOURS = 48;

export const tierOfPool = (hours: number): Tier => (hours <= 1 ? 60 : hours <= FINE_HOURS ? 600 : 3600);
/** For a single miner only hours are stored; finer points exist only in memory. */
const tierOfMiner = (hours: number): Tier => (hours <= 1 ? 60 : hours <= (HELD[600] * 600) / 3600 ? 600 : 3600);

type Sum = {
  readonly bucket: number;
  readonly work: number;
  readonly workers: number | null;
  readonly shares: number | null;
};

export class ChartView {
  readonly #sql: Sql;
  readonly #rates: RateBoard;
  readonly #now: SteadyClock;

  constructor(dependencies: { sql: Sql; rates: RateBoard; now: SteadyClock }) {
    this.#sql = dependencies.sql;
    this.#rates = dependencies.rates;
    this.#now = dependencies.now;
  }

  async pool(hours: number, service: number | undefined): Promise<ChartDocument> {
    const tier = tierOfPool(hours);
    const from = Math.floor(this.#now() / 1000 / tier) - (hours * 3600) / tier;
    const which = service === undefined ? this.#sql`` : this.#sql`and service = ${service}`;
    const rows = await this.#sql<{ bucket: number; work: string; workers: number; shares: string }[]>`select bucket,
        sum(work)::text as work, sum(workers)::int as workers, sum(shares)::text as shares from pool_history
      where tier = ${tier} and bucket >= ${from} ${which} group by bucket order by bucket`;
    const sums = rows.map((row) => ({ ...row, work: Number(row.work), shares: Number(row.shares) }));
    return this.#chart(tier, sums, this.#rates.since);
  }

  async account(accountId: number, since: number, hours: number): Promise<ChartDocument> {
    const rows = await this.#sql<DayRow[]>`select day, hours from account_days
      where account_id = ${accountId} and day >= ${this.#firstDay(hours)} order by day`;
    return this.#ofMiner(rows, hours, since, (tier) => this.#rates.workOfAccount(tier, accountId));
  }

  async worker(workerId: number, since: number, hours: number): Promise<ChartDocument> {
    const rows = await this.#sql<DayRow[]>`select day, hours from worker_days
      where worker_id = ${workerId} and day >= ${this.#firstDay(hours)} order by day`;
    return this.#ofMiner(rows, hours, since, (tier) => this.#rates.workOfWorker(tier, workerId));
  }

  #firstDay(hours: number): number {
    return Math.floor((this.#now() / 3_600_000 - hours) / 24);
  }

  /** Points in memory take precedence over the day rows, which contain them only later. */
  #ofMiner(
    rows: readonly DayRow[],
    hours: number,
    since: number,
    recent: (tier: Tier) => ReadonlyMap<number, number>,
  ): ChartDocument {
    const tier = tierOfMiner(hours);
    const first = Math.floor(this.#now() / 1000 / tier) - (hours * 3600) / tier;
    const work = new Map<number, number>();
    if (tier === 3600)
      for (const row of rows)
        for (const [i, text] of row.hours.entries()) if (text !== '0') work.set(row.day * 24 + i, Number(text));
    for (const [bucket, sum] of recent(tier)) work.set(bucket, Math.max(sum, work.get(bucket) ?? 0));
    const sums = [...work]
      .filter(([bucket]) => bucket >= first)
      .sort(([a], [b]) => a - b)
      .map(([bucket, sum]) => ({ bucket, work: sum, workers: null, shares: null }));
    // Miners connect some time before the very first share.
    return this.#chart(tier, sums, Math.max(since, this.#rates.since ?? 0));
  }

  #chart(tier: Tier, sums: readonly Sum[], since: number | undefined): ChartDocument {
    const now = this.#now() / 1000;
    return {
      api_version: 1,
      seconds_per_point: tier,
      points: sums.flatMap(({ bucket, work, workers, shares }) => {
        const seconds = countedSeconds({ tier, bucket }, since, now);
        if (seconds === undefined) return [];
        return [
          {
            at_millis: bucket * tier * 1000,
            seconds: Math.round(seconds),
            hash_rate: Math.round(work / seconds),
            workers,
            shares,
          },
        ];
      }),
    };
  }
}

type DayRow = { day: number; hours: string[] };
