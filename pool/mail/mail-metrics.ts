/** Figures of the mails to miners for Prometheus. */
import type { Metrics } from '../../runtime/metrics/metrics.ts';
import type { Sql } from '../database/connect.ts';
import { readTotals } from '../read-totals.ts';

/** Counted where they are sent, in the accountant's instance; how many wait is the same everywhere. */
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
