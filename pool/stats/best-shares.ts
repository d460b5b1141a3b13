/**
 * The best share of each miner: the one whose hash met the hardest target. Improvements wait in memory, bounded, and
 * are written every few seconds. They are statistics, not money: a crash may lose the last seconds of them.
 */
import type { AcceptedShare } from '../../bridge/shares/sink.ts';
import { OTHERS } from '../../protocol/books/receipt.ts';
import { type Bytes, toHex } from '../../protocol/bytes.ts';
import type { Sql } from '../database/connect.ts';
import { SERVICES } from '../journal/journal-record.ts';

/**
 * Miners whose improvement waits to be written; beyond this number the worst are dropped until their next better share.
 */
const MAX_WAITING = 20_000;

type Best = {
  readonly account: string;
  readonly service: number;
  readonly worker: string;
  readonly work: number;
  readonly atMillis: number;
};

export class BestShares {
  /** Best of each connection, by its extranonce: for nearly every share the check ends here. */
  readonly #seen = new WeakMap<Bytes, number>();
  #waiting = new Map<string, Best>();

  add(shares: readonly AcceptedShare[]): void {
    for (const share of shares) {
      if (share.hashWork <= (this.#seen.get(share.extranonce) ?? 0)) continue;
      const account = toHex(share.account);
      const service = (SERVICES as readonly string[]).indexOf(share.service);
      const isKept = this.#keep({
        account,
        service,
        worker: share.worker,
        work: share.hashWork,
        atMillis: share.atMillis,
      });
      if (isKept) this.#seen.set(share.extranonce, share.hashWork);
    }
  }

  #keep(best: Best): boolean {
    const waiting = this.#waiting.get(best.account);
    if (waiting === undefined && this.#waiting.size >= MAX_WAITING) return false;
    if (waiting === undefined || best.work > waiting.work) this.#waiting.set(best.account, best);
    return true;
  }

  /** In one order, because every instance writes. A miner whose first share the books have not taken yet waits for the next round. */
  async flush(sql: Sql): Promise<void> {
    const bests = [...this.#waiting.values()];
    if (bests.length === 0) return;
    this.#waiting = new Map();
    try {
      const known = await sql<{ account: string }[]>`with k as (select * from unnest(
          ${bests.map((best) => best.account)}::text[], ${bests.map((best) => best.service)}::int[],
          ${bests.map((best) => best.worker)}::text[], ${bests.map((best) => best.work)}::bigint[],
          ${bests.map((best) => Math.floor(best.atMillis))}::bigint[]) as given(account, service, name, work, millis)),
        found as (select k.account, k.work, k.millis, a.id as account_id, w.id as worker_id from k
          join accounts a on a.payload = decode(k.account, 'hex')
          join lateral (select id from workers w where w.account_id = a.id and w.service = k.service
            and w.name in (k.name, ${OTHERS}) order by w.name = k.name desc limit 1) w on true),
        written as (insert into best_shares as b (account_id, worker_id, work, at)
          select account_id, worker_id, work, to_timestamp(millis / 1000.0) from found
          order by account_id
          on conflict (account_id) do update set worker_id = excluded.worker_id, work = excluded.work, at = excluded.at
          where excluded.work > b.work)
        select account from found`;
      const written = new Set(known.map(({ account }) => account));
      for (const best of bests) if (!written.has(best.account)) this.#keep(best);
    } catch (error) {
      for (const best of bests) this.#keep(best);
      throw error;
    }
  }
}
