/** Groups of news that a miner can choose, for its webhook and its e-mail. */
import type { Sql } from '../database/connect.ts';

export const NEWS_GROUPS = ['blocks', 'payments', 'workers'] as const;
export type NewsGroup = (typeof NEWS_GROUPS)[number];

const GROUPS: Readonly<Record<string, NewsGroup>> = {
  block_found: 'blocks',
  payout_sent: 'payments',
  payout_final: 'payments',
  worker_silent: 'workers',
  worker_back: 'workers',
};

/** Undefined for news that every receiver gets. */
export const newsGroup = (kind: string): NewsGroup | undefined => GROUPS[kind];

const SENT_FIRST: readonly NewsGroup[] = ['payments', 'blocks', 'workers'];
const KINDS = Object.keys(GROUPS);
const RANKS = Object.values(GROUPS).map((group) => 1 + SENT_FIRST.indexOf(group));

/**
 * For `order by`: what is of no group (such as the first news) first, then payments, blocks and workers. A group goes first by
 * ten seconds of age, not for ever: else a miner that is paid once a second would never hear of a silent rig. The queue of
 * each group is short, so a payment waits for few others.
 */
export const newsOrder = (sql: Sql) => {
  const rank = sql`coalesce((${RANKS}::int[])[array_position(${KINDS}::text[], n.kind)], 0)`;
  return sql`${rank} > 0, n.at + ${rank} * interval '10 seconds', n.id`;
};

/** In canonical order and without duplicates, as stored and signed. */
export const orderedGroups = (chosen: readonly NewsGroup[] = NEWS_GROUPS): NewsGroup[] =>
  NEWS_GROUPS.filter((group) => chosen.includes(group));
