/**
 * The one queue of miners' news (docs/notices.md, webhooks of miners), whatever carries them: webhooks, channels for people,
 * mails. Events of the pool are put into it once: the position is stored in the same transaction. Each group of news has
 * its own part of the queue, so that nothing which strangers can cause displaces a payment. Of each worker only its newest
 * state waits, and where there are too many workers, those that have been known longest stay.
 */
import { eventsAfter } from '../api/public/event-follower.ts';
import type { PoolEvent } from '../api/public/live.ts';
import type { Sql, Transaction } from '../database/connect.ts';
import { NEWS_GROUPS, type NewsGroup, newsGroup } from './news-groups.ts';
import { isForPeople } from './news-text.ts';
import { FIRST_NEWS } from './notice-request.ts';

/** The row of the table settings with the position. */
const THROUGH = 'miner_news_through';
/** Older news are dropped and counted. */
export const NEWS_KEPT_MILLIS = 86_400_000;

/** News of one miner that wait, by group; more are dropped and counted. */
export const ROOM: Readonly<Record<NewsGroup, number>> = { payments: 40, blocks: 30, workers: 30 };
export const MOST_WAITING = NEWS_GROUPS.reduce((sum, group) => sum + ROOM[group], 0);

type News = { readonly kind: string; readonly data: Readonly<Record<string, unknown>> };
export type WaitingNews = News & { readonly id: bigint };

/** `merge`: an older state of the same worker goes. `displace`: another worker's news goes, and counts as dropped. */
export type Place =
  | { readonly kind: 'add' | 'drop' }
  | { readonly kind: 'merge' | 'displace'; readonly instead: bigint };

const sinceOf = ({ data }: News): number => Number(data.since_millis ?? 0);

export function placeOf(news: News, waiting: readonly WaitingNews[]): Place {
  const group = newsGroup(news.kind);
  if (group === undefined) return { kind: 'add' };
  const own = waiting.filter(({ kind }) => newsGroup(kind) === group);
  if (group === 'workers') {
    const { worker, service } = news.data;
    const same = own.find(({ data }) => data.worker === worker && data.service === service);
    if (same !== undefined) return { kind: 'merge', instead: same.id };
  }
  if (own.length < ROOM[group]) return { kind: 'add' };
  if (group !== 'workers') return { kind: 'drop' };
  const youngest = own.reduce((a, b) => (sinceOf(b) > sinceOf(a) ? b : a));
  return sinceOf(youngest) > sinceOf(news) ? { kind: 'displace', instead: youngest.id } : { kind: 'drop' };
}

export type MinerNews = {
  readonly eventId: number;
  readonly address: string;
  readonly kind: string;
  readonly atMillis: number;
  readonly data: Readonly<Record<string, unknown>>;
};

type Payout = {
  readonly payout_id: string;
  readonly transaction_id: string;
  readonly recipients: readonly { readonly address: string; readonly amount: string }[];
};

/** The news in an event for each miner that it concerns: only the part that concerns this miner. */
export function newsOf({ id: eventId, kind, atMillis, data }: PoolEvent): MinerNews[] {
  const one = (address: unknown, own: Readonly<Record<string, unknown>>): MinerNews[] =>
    typeof address === 'string' ? [{ eventId, address, kind, atMillis, data: own }] : [];
  switch (kind) {
    case 'block_found': {
      const { finder, ...block } = data as Record<string, unknown>;
      return one(finder, block);
    }
    case 'payout_sent':
    case 'payout_final': {
      const { payout_id, transaction_id, recipients } = data as Payout;
      return (recipients ?? []).flatMap(({ address, amount }) => one(address, { payout_id, transaction_id, amount }));
    }
    case 'worker_silent':
    case 'worker_back': {
      const { address, ...worker } = data as Record<string, unknown>;
      return one(address, worker);
    }
    default:
      return [];
  }
}

/** True while there may be more. Those who carry news may all call it, also at the same time. */
export async function feedNews(sql: Sql, now: number): Promise<boolean> {
  await sql`insert into settings values (${THROUGH}, (select coalesce(max(id), 0)::text from events))
    on conflict do nothing`;
  return sql.begin(async (transaction) => {
    const [row] = await transaction<{ value: string }[]>`select value from settings where name = ${THROUGH} for update`;
    const events = await eventsAfter(transaction, Number(row?.value ?? 0));
    const last = events.at(-1);
    if (last === undefined) return false;
    for (const news of events.flatMap(newsOf)) await queueNews(transaction, news, now);
    await transaction`update settings set value = ${String(last.id)} where name = ${THROUGH}`;
    return true;
  });
}

/** Queues one news item for every receiver of its miner that is to get such news. */
export async function queueNews(transaction: Transaction, news: MinerNews, now: number): Promise<void> {
  const { address, kind } = news;
  const group = newsGroup(kind) ?? null;
  const hooks = await transaction<{ id: number; channel: string }[]>`select h.account_id as id, h.channel
    from miner_webhooks h join accounts a on a.id = h.account_id where a.address = ${address} and h.url is not null
      and (${group}::text is null or ${group} = any(h.events)) order by h.channel for update of h`;
  for (const { id, channel } of hooks)
    if (channel === 'webhook' || isForPeople(kind)) await queueFor(transaction, { id, channel }, news, now);
  if (!isForPeople(kind)) return;
  const [mail] = await transaction<{ id: number }[]>`select m.account_id as id
    from miner_mails m join accounts a on a.id = m.account_id where a.address = ${address} and m.mailbox is not null
      and m.confirmed and ${group ?? ''} = any(m.events) for update of m`;
  if (mail !== undefined) await queueFor(transaction, { id: mail.id, channel: 'mail' }, news, now);
}

/** The first news of a receiver, to it alone. */
export const queueFirst = (
  transaction: Transaction,
  receiver: { readonly id: number; readonly channel: string },
  { address, now }: { readonly address: string; readonly now: number },
): Promise<void> =>
  queueFor(transaction, receiver, { eventId: 0, kind: FIRST_NEWS, data: {}, address, atMillis: now }, now);

/** Whoever calls it holds the row of the receiver. */
async function queueFor(
  transaction: Transaction,
  { id, channel }: { readonly id: number; readonly channel: string },
  { eventId, kind, atMillis, data }: MinerNews,
  now: number,
): Promise<void> {
  const waiting = await transaction<WaitingNews[]>`select id, kind, data from miner_news
    where account_id = ${id} and channel = ${channel}`;
  const isOld = atMillis <= now - NEWS_KEPT_MILLIS;
  const place = isOld ? ({ kind: 'drop' } as const) : placeOf({ kind, data }, waiting);
  if (place.kind === 'drop' || place.kind === 'displace')
    await (channel === 'mail'
      ? transaction`update miner_mails set dropped = dropped + 1 where account_id = ${id}`
      : transaction`update miner_webhooks set dropped = dropped + 1 where account_id = ${id} and channel = ${channel}`);
  if ('instead' in place) await transaction`delete from miner_news where id = ${place.instead}`;
  if (place.kind !== 'drop')
    await transaction`insert into miner_news (account_id, channel, event_id, at, kind, data)
      values (${id}, ${channel}, ${eventId}, ${new Date(atMillis)}, ${kind}, ${transaction.json(data as never)})`;
}
