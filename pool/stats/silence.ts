/**
 * Workers that stopped sending, and those that came back (docs/notices.md). Silence is measured by when the books took a worker's newest share, against the newest one of the
 * whole pool: an outage of the feed or the database makes no worker silent, and neither does a front end whose clock is wrong or whose shares come late. Anybody can begin a worker
 * of any address: only one that has had figures of its own for a day (pool/books/own-workers.ts), or that the key of the address names, makes news.
 */
import { OTHERS } from '../../protocol/books/receipt.ts';
import type { Transaction } from '../database/connect.ts';

export async function noteSilentWorkers(transaction: Transaction, silentMillis: number): Promise<number> {
  const seconds = silentMillis / 1000;
  const back = await transaction<{ id: number }[]>`delete from silent_workers s using workers w
    where w.id = s.worker_id and w.last_taken_at > s.since returning w.id`;
  await tellOf(
    transaction,
    'worker_back',
    back.map(({ id }) => id),
  );
  const [newest] = await transaction<{ at: Date | null }[]>`select max(last_taken_at) as at from workers`;
  if (newest?.at == null) return 0;
  // Workers silent for more than a day left long ago: they are not reported.
  const rows = await transaction<{ worker_id: number }[]>`insert into silent_workers (worker_id, since)
    select id, last_taken_at from workers
    where name <> ${OTHERS} and (since < now() - interval '1 day' or exists (select from named_workers n
        where n.account_id = workers.account_id and n.name = workers.name and n.is_named))
      and last_taken_at < ${newest.at}::timestamptz - make_interval(secs => ${seconds})
      and last_taken_at > ${newest.at}::timestamptz - make_interval(secs => ${seconds + 86_400})
    on conflict (worker_id) do nothing returning worker_id`;
  await tellOf(
    transaction,
    'worker_silent',
    rows.map(({ worker_id }) => worker_id),
  );
  return rows.length;
}

const tellOf = (transaction: Transaction, kind: 'worker_silent' | 'worker_back', workers: readonly number[]) =>
  transaction`select tell(${kind}, jsonb_build_object('address', a.address, 'worker', w.name,
      'service', (array['pplns', 'solo'])[w.service + 1],
      'last_share_millis', (extract(epoch from w.last_share_at) * 1000)::bigint,
      'since_millis', (extract(epoch from w.since) * 1000)::bigint))
    from workers w join accounts a on a.id = w.account_id where w.id = any(${[...workers]}::int[]) order by w.id`;
