/**
 * Shares that were refused: counted in memory, bounded, and added to the database every few seconds. They are
 * statistics, not money: a crash may lose the last seconds of them.
 */
import type { RefusedShare } from '../../bridge/shares/sink.ts';
import { OTHERS } from '../../protocol/books/receipt.ts';
import { toHex } from '../../protocol/bytes.ts';
import { CODE, STRATUM_ERRORS } from '../../protocol/stratum/errors.ts';
import type { Sql } from '../database/connect.ts';
import { takeTurn } from '../database/row-turns.ts';
import { SERVICES } from '../journal/journal-record.ts';

/** Workers counted between two flushes; more share one row that only the totals see. */
const MAX_WORKERS = 50_000;

type Count = { account: string; service: number; worker: string; stale: number; rejected: number };

const NAMES = new Map<number, string>(STRATUM_ERRORS.map(({ code, name }) => [code, name]));
const nameOf = (code: number): string => NAMES.get(code) ?? 'other';

export class Refusals {
  #workers = new Map<string, Count>();
  #results = new Map<string, number>();

  add(shares: readonly RefusedShare[]): void {
    for (const share of shares) {
      const result = nameOf(share.code);
      this.#results.set(result, (this.#results.get(result) ?? 0) + 1);
      if (!share.isOfWorker) continue;
      const service = (SERVICES as readonly string[]).indexOf(share.service);
      const account = toHex(share.account);
      const key = `${account}/${service}/${share.worker}`;
      let count = this.#workers.get(key);
      if (count === undefined) {
        if (this.#workers.size >= MAX_WORKERS) continue;
        count = { account, service, worker: share.worker, stale: 0, rejected: 0 };
        this.#workers.set(key, count);
      }
      if (share.code === CODE.unknown_job) count.stale++;
      else count.rejected++;
    }
  }

  async flush(sql: Sql): Promise<void> {
    if (this.#results.size === 0) return;
    const [workers, results] = [this.#workers, this.#results];
    this.#workers = new Map();
    this.#results = new Map();
    const counts = [...workers.values()];
    const names = [...results.keys()].sort();
    try {
      await sql.begin(async (transaction) => {
        await transaction`insert into refused_shares as r (result, count)
          select * from unnest(${names}::text[], ${names.map((name) => results.get(name) as number)}::bigint[])
          on conflict (result) do update set count = r.count + excluded.count`;
        await takeTurn(transaction, 'workers');
        await transaction`update workers w set stale = w.stale + k.stale, rejected = w.rejected + k.rejected
          from (select o.id, sum(k.stale) as stale, sum(k.rejected) as rejected from unnest(${counts.map((count) => `\\x${count.account}`)}::text[], ${counts.map((count) => count.service)}::int[],
            ${counts.map((count) => count.worker)}::text[], ${counts.map((count) => count.stale)}::bigint[],
            ${counts.map((count) => count.rejected)}::bigint[]) as k(payload, service, name, stale, rejected)
          join accounts a on a.payload = k.payload::bytea
          join lateral (select id from workers w where w.account_id = a.id and w.service = k.service
            and w.name in (k.name, ${OTHERS}) order by w.name = k.name desc limit 1) o on true group by o.id) k
          where w.id = k.id`;
      });
    } catch (error) {
      this.#restore(workers, results);
      throw error;
    }
  }

  /** The database is unavailable: the counts are written in the next round. */
  #restore(workers: ReadonlyMap<string, Count>, results: ReadonlyMap<string, number>): void {
    for (const [result, count] of results) this.#results.set(result, (this.#results.get(result) ?? 0) + count);
    for (const [key, count] of workers) {
      const newer = this.#workers.get(key);
      if (newer === undefined) this.#workers.set(key, count);
      else {
        newer.stale += count.stale;
        newer.rejected += count.rejected;
      }
    }
  }
}
