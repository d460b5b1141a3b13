/** The pool over time: blocks found, their luck, the network's difficulty at them, and payments. */
import type { SteadyClock } from '../../../runtime/clock/clock.ts';
import type { Sql } from '../../database/connect.ts';
import type { HistoryDocument } from '../documents.ts';
import { ratio } from './pool-view.ts';

/** Ranges of the API, with the seconds per point. Each is one query, shared by all callers. */
export const HISTORY_SECONDS = { '1': 60, '6': 600, '24': 3600, '168': 21_600, '720': 86_400 } as const;
export type HistoryHours = keyof typeof HISTORY_SECONDS;

type FoundBlocks = { bucket: number; blocks: number; target: string; effort: string };

export class HistoryView {
  readonly #sql: Sql;
  readonly #now: SteadyClock;

  constructor(dependencies: { sql: Sql; now: SteadyClock }) {
    this.#sql = dependencies.sql;
    this.#now = dependencies.now;
  }

  async history(hours: HistoryHours): Promise<HistoryDocument> {
    const seconds = HISTORY_SECONDS[hours];
    const first = Math.floor(this.#now() / 1000 / seconds) - (Number(hours) * 3600) / seconds;
    const from = new Date(first * seconds * 1000);
    const found = await this.#sql<FoundBlocks[]>`select floor(extract(epoch from found_at) / ${seconds})::int as bucket,
        count(*)::int as blocks, sum(target_work)::text as target, sum(effort_work)::text as effort
      from blocks where found_at >= ${from} group by 1`;
    const sent = await this.#sql<{ bucket: number; paid: string }[]>`select
        floor(extract(epoch from p.created_at) / ${seconds})::int as bucket, sum(i.amount)::text as paid
      from payouts p join payout_items i on i.payout_id = p.id
      where p.created_at >= ${from} and p.state in ('submitted', 'finalized') group by 1`;
    const paid = new Map(sent.map((row) => [row.bucket, row.paid]));
    const blocks = new Map(found.map((row) => [row.bucket, row]));
    const buckets = [...new Set([...blocks.keys(), ...paid.keys()])].sort((a, b) => a - b);
    return {
      api_version: 1,
      seconds_per_point: seconds,
      points: buckets.map((bucket) => {
        const row = blocks.get(bucket);
        return {
          at_millis: bucket * seconds * 1000,
          blocks: row?.blocks ?? 0,
          luck: row === undefined || row.effort === '0' ? null : ratio(BigInt(row.target), BigInt(row.effort)),
          block_work: row === undefined ? null : String(BigInt(row.target) / BigInt(row.blocks)),
          paid: paid.get(bucket) ?? '0',
        };
      }),
    };
  }
}
