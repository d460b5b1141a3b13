/**
 * Which news of a miner wait (docs/notices.md, webhooks of miners). Each group has its own part of the queue, so that
 * nothing which strangers can cause displaces a payment. Of each worker only its newest state waits, and where there
 * are too many workers, those that have been known longest stay.
 */
import { NEWS_GROUPS, type NewsGroup, newsGroup } from './news-groups.ts';

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
