/** Hash rates over time, in points that a page can draw as they are: hours, or ten minutes for the pool's last day. */
import type { Sql } from '../database/connect.ts';
import type { RateBoard } from '../stats/rates.ts';
import type { ChartDocument } from './documents.ts';

export const CHART_HOURS = { default: 24, max: 24 * 90 } as const;
/** Up to here the pool's chart has a point for every ten minutes. */
const FINE_HOURS = 48;

export class ChartView {
  readonly #sql: Sql;
  readonly #rates: RateBoard;
  readonly #now: () => number;

  constructor(dependencies: { sql: Sql; rates: RateBoard; now: () => number }) {
    this.#sql = dependencies.sql;
    this.#rates = dependencies.rates;
    this.#now = dependencies.now;
  }

  async pool(hours: number, service: number | undefined): Promise<ChartDocument> {
    const tier = hours <= FINE_HOURS ? 600 : 3600;
    const from = Math.floor(this.#now() / 1000 / tier) - (hours * 3600) / tier;
    const which = service === undefined ? this.#sql`` : this.#sql`and service = ${service}`;
    const rows = await this.#sql<{ bucket: number; work: string; workers: number }[]>`select bucket,
        sum(work)::text as work, sum(workers)::int as workers from pool_history
      where tier = ${tier} and bucket >= ${from} ${which} group by bucket order by bucket`;
    return {
      api_version: 1,
      seconds_per_point: tier,
      points: rows.map((row) => ({
        at_millis: row.bucket * tier * 1000,
        hash_rate: Math.round(Number(row.work) / tier),
        workers: row.workers,
      })),
    };
  }

  async account(accountId: number, hours: number): Promise<ChartDocument> {
    const rows = await this.#sql<DayRow[]>`select day, hours from account_days
      where account_id = ${accountId} and day >= ${this.#firstDay(hours)} order by day`;
    return this.#points(rows, hours, this.#rates.hoursOfAccount(accountId));
  }

  async worker(workerId: number, hours: number): Promise<ChartDocument> {
    const rows = await this.#sql<DayRow[]>`select day, hours from worker_days
      where worker_id = ${workerId} and day >= ${this.#firstDay(hours)} order by day`;
    return this.#points(rows, hours, this.#rates.hoursOfWorker(workerId));
  }

  #firstDay(hours: number): number {
    return Math.floor((this.#now() / 3_600_000 - hours) / 24);
  }

  /** Recent hours are in memory and take precedence over the day rows, which contain them later. */
  #points(rows: readonly DayRow[], hours: number, recent: ReadonlyMap<number, number>): ChartDocument {
    const first = Math.floor(this.#now() / 3_600_000) - hours;
    const work = new Map<number, number>();
    for (const row of rows)
      for (const [i, text] of row.hours.entries()) if (text !== '0') work.set(row.day * 24 + i, Number(text));
    for (const [hour, sum] of recent) work.set(hour, Math.max(sum, work.get(hour) ?? 0));
    return {
      api_version: 1,
      seconds_per_point: 3600,
      points: [...work]
        .filter(([hour]) => hour >= first)
        .sort(([a], [b]) => a - b)
        .map(([hour, sum]) => ({ at_millis: hour * 3_600_000, hash_rate: Math.round(sum / 3600), workers: null })),
    };
  }
}

type DayRow = { day: number; hours: string[] };
