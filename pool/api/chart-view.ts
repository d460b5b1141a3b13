/** Hash rates over time, in points that a page can draw as they are: hours, or ten minutes for the pool's last day. */
import type { Sql } from '../database/connect.ts';
import type { RateBoard } from '../stats/rates.ts';

export const CHART_RANGES = { day: 1, week: 7, month: 30 } as const;
export type ChartRange = keyof typeof CHART_RANGES;

/** [Unix milliseconds of the start, hashes per second]. */
export type ChartPoint = readonly [number, number];

export class ChartView {
  readonly #sql: Sql;
  readonly #rates: RateBoard;
  readonly #now: () => number;

  constructor(dependencies: { sql: Sql; rates: RateBoard; now: () => number }) {
    this.#sql = dependencies.sql;
    this.#rates = dependencies.rates;
    this.#now = dependencies.now;
  }

  async pool(range: ChartRange, service: number | undefined) {
    const tier = range === 'day' ? 600 : 3600;
    const from = Math.floor(this.#now() / 1000 / tier) - (CHART_RANGES[range] * 86_400) / tier;
    const which = service === undefined ? this.#sql`` : this.#sql`and service = ${service}`;
    const rows = await this.#sql<{ bucket: number; work: string; workers: number; miners: number }[]>`select bucket,
        sum(work)::text as work, sum(workers)::int as workers, sum(accounts)::int as miners from pool_history
      where tier = ${tier} and bucket >= ${from} ${which} group by bucket order by bucket`;
    return {
      step_millis: tier * 1000,
      hash_rate: rows.map((row) => [row.bucket * tier * 1000, Math.round(Number(row.work) / tier)] as ChartPoint),
      workers: rows.map((row) => [row.bucket * tier * 1000, row.workers] as ChartPoint),
      miners: rows.map((row) => [row.bucket * tier * 1000, row.miners] as ChartPoint),
    };
  }

  async account(accountId: number, range: ChartRange) {
    const rows = await this.#sql<{ day: number; hours: string[] }[]>`select day, hours from account_days
      where account_id = ${accountId} and day >= ${this.#firstDay(range)} order by day`;
    return this.#points(rows, range, this.#rates.hoursOfAccount(accountId));
  }

  async worker(workerId: number, range: ChartRange) {
    const rows = await this.#sql<{ day: number; hours: string[] }[]>`select day, hours from worker_days
      where worker_id = ${workerId} and day >= ${this.#firstDay(range)} order by day`;
    return this.#points(rows, range, this.#rates.hoursOfWorker(workerId));
  }

  #firstDay(range: ChartRange): number {
    return Math.floor(this.#now() / 86_400_000) - CHART_RANGES[range];
  }

  /** Recent hours stand in memory and win over the day rows, which the same hours reach later. */
  #points(rows: readonly { day: number; hours: string[] }[], range: ChartRange, recent: ReadonlyMap<number, number>) {
    const first = Math.floor(this.#now() / 3_600_000) - CHART_RANGES[range] * 24;
    const work = new Map<number, number>();
    for (const row of rows)
      for (const [i, text] of row.hours.entries()) if (text !== '0') work.set(row.day * 24 + i, Number(text));
    for (const [hour, sum] of recent) work.set(hour, Math.max(sum, work.get(hour) ?? 0));
    const points = [...work].filter(([hour]) => hour >= first).sort(([a], [b]) => a - b);
    return {
      step_millis: 3_600_000,
      hash_rate: points.map(([hour, sum]) => [hour * 3_600_000, Math.round(sum / 3600)] as ChartPoint),
    };
  }
}
